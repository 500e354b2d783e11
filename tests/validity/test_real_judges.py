"""The recorded real judges, ruled by the product, against figures other software computed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalkit.errors import AnchorError
from evalkit.validity.real import Replayed, main, replay
from evalkit.validity.real_figures import differences

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
present = pytest.mark.skipif(
    not DATA.exists(), reason="the recorded judge data are not beside the project"
)


@pytest.fixture(scope="module")
def found() -> Replayed:
    return replay(DATA)


@present
def test_every_figure_equals_the_reference(found: Replayed) -> None:
    theirs = json.loads((DATA / "reference_values.json").read_text(encoding="utf-8"))
    assert set(found.blocks) == set(theirs) - {"_meta", "vicuna_gpt4_three_runs"}
    assert len(found.blocks["llmbar_natural_verdicts"]["judges"]) == 46
    assert differences(found.blocks, theirs) == []


@present
def test_a_figure_that_differs_would_be_named(found: Replayed) -> None:
    theirs = json.loads((DATA / "reference_values.json").read_text(encoding="utf-8"))
    theirs["asap_set4_gpt35"]["qwk"] += 2e-6
    theirs["pandalm_testset"]["raters"]["fleiss_kappa"] = None
    assert [line.split(":")[0] for line in differences(found.blocks, theirs)] == [
        "/asap_set4_gpt35/qwk",
        "/pandalm_testset/raters/fleiss_kappa",
    ]


@present
@pytest.mark.parametrize(
    ("judge", "state", "why"),
    [
        ("ASAP set 4/GPT-3.5", "MARGINAL", "WEAK_RANKING"),
        ("SummEval coherence/gpt-4-0314:rts", "ELIMINATED", "WEAK_RANKING, unconfirmed"),
        ("SummEval coherence/llama-2-7b-chat-hf:rts", "ELIMINATED", "WEAK_RANKING"),
        ("LLM-Rubric Q4/argmax", "ELIMINATED", "WEAK_RANKING, unconfirmed"),
        ("XSTest gpt4/gpt4", "AUTOMATE", "least recall 0.87"),
        ("XSTest llama2orig/gpt4", "KEEP_HUMAN", "agreement_below_bar, kappa_below_bar"),
        ("LLMBar natural/GPT-4/Vanilla", "gate PASS", "proven"),
        ("LLMBar natural/ChatGPT/Vanilla", "gate FAIL", "below_threshold"),
        ("LLMBar natural/PaLM2/Metrics", "gate BROKEN", "missing_data_decides"),
        ("LLMBar natural/PaLM2/Vanilla", "gate PASS", "not proven at .70"),
    ],
)
def test_states_and_diagnoses_of_real_judges(
    found: Replayed, judge: str, state: str, why: str
) -> None:
    line = next(line for line in found.lines if f"{line[0]}/{line[1]}" == judge)
    assert line[-2:] == (state, why)


@present
def test_one_command_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data", str(DATA)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("data  ")
    assert "figures compared with reference_values.json at 1e-6: 0 differ." in out


def test_without_the_data_nothing_is_put_in_their_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AnchorError, match="none of the recorded judge data"):
        replay(tmp_path)
    assert main(["--data", str(tmp_path)]) == 2
    assert "none of the recorded judge data" in capsys.readouterr().out
