"""Flags: a number that is none, a limit below 0 and an empty variable are usage errors."""

from __future__ import annotations

import pytest

from evalkit.params import GateParams, parse


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--max-cost", "nan"], "not a finite number"),
        (["--max-cost", "inf"], "not a finite number"),
        (["--max-cost", "-1"], "-1 is less than 0"),
        (["--deadline", "-0.5"], "-0.5 is less than 0"),
        (["--baseline-ref", ""], "it is empty"),
        (["--baseline="], "it is empty"),
    ],
)
def test_what_would_decide_nothing_is_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(GateParams, arguments)
    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert said in message
    assert message.count("\n") == 1


def test_what_is_left_out_has_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse(GateParams, []) == GateParams()
    with pytest.raises(SystemExit) as ended:
        parse(GateParams, ["--help"])
    assert ended.value.code == 0
    assert "(default: )" not in capsys.readouterr().out
