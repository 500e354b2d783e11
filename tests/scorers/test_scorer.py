# ruff: noqa: E501 - a row of a table stands on one line
from __future__ import annotations

import subprocess
import sys
from dataclasses import FrozenInstanceError, dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from evalkit.errors import ScorerError
from evalkit.records import Case, Reply, Score
from evalkit.scorers import SCORERS, Scorer, build_scorer, scorer_hash
from evalkit.scorers.contract import JsonContract
from evalkit.scorers.scorer import settings_of
from evalkit.scorers.text import Contains, Length


@dataclass(frozen=True)
class Mine:
    """A scorer of a user's own."""

    words: tuple[str, ...] = ()
    weights: dict[str, float] | None = None
    note: str = ""

    VERSION: ClassVar[int] = 3

    def __call__(self, case: Case, reply: Reply) -> Score:
        return Score(1.0, "mine")


def test_a_scorer_is_built_from_the_settings_of_a_suite(tmp_path: Path) -> None:
    built = build_scorer("contains", {"texts": ["a", "b"], "need": "any"}, tmp_path)
    assert built == Contains(texts=("a", "b"), need="any")
    assert isinstance(built, Scorer)
    assert build_scorer("length", {"max_words": 3}, tmp_path) == Length(max_words=3)
    assert build_scorer("number_match", {"tolerance": 1}, tmp_path) is not None


def test_files_are_read_beside_the_suite(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('\ufeff{"type": "object"}', encoding="utf-8")
    built = build_scorer("json_contract", {"schema": "s.json"}, tmp_path)
    assert built == JsonContract(schema={"type": "object"})
    assert build_scorer("json_contract", {"schema": {"type": "object"}}, tmp_path) == built
    with pytest.raises(ScorerError, match=r"'json_contract': schema = 'gone.json' cannot be read"):
        build_scorer("json_contract", {"schema": "gone.json"}, tmp_path)
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    with pytest.raises(ScorerError, match=r"schema = 'bad.json' cannot be read"):
        build_scorer("json_contract", {"schema": "bad.json"}, tmp_path)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("nothing", {}, r"there is no scorer 'nothing'. There are: allowed_hosts, "),
        ("contains", {"txt": "a", "zz": 1}, r"'contains' has no setting txt, zz. It has: text, texts, "),
        ("matches", {}, r"'matches' needs the setting pattern."),
        ("contains", {"texts": "a"}, r"'contains': texts = 'a': Input should be a valid (array|tuple)"),
        ("contains", {"texts": ["a", 1]}, r"'contains': texts.1 = 1: Input should be a valid string"),
        ("contains", {"need": "some", "text": "a"}, r"'contains': need = 'some': Input should be 'all' or 'any'"),
        ("length", {"max_words": "3"}, r"'length': max_words = '3': Input should be a valid integer"),
        ("length", {"max_words": 2.5}, r"'length': max_words = 2.5"),
        ("contains", {"text": "a", "ignore_case": "yes"}, r"'contains': ignore_case = 'yes'"),
        ("no.such.module:Thing", {}, r"'no.such.module:Thing' cannot be imported"),
        ("pathlib:Thing", {}, r"'pathlib:Thing' cannot be imported"),
        ("pathlib:Path", {}, r"'pathlib:Path' is no scorer"),
        (":Path", {}, r"':Path' cannot be imported"),
    ],
)  # fmt: skip
def test_wrong_names_and_settings_are_one_sentence(
    name: str, settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ScorerError, match=message):
        build_scorer(name, settings, tmp_path)


def test_a_scorer_of_the_users_own_is_named_by_module_and_class(tmp_path: Path) -> None:
    name = f"{__name__}:Mine"
    built = build_scorer(name, {"words": ["a"], "weights": {"a": 1}}, tmp_path)
    assert built == Mine(words=("a",), weights={"a": 1})
    assert scorer_hash(built) == scorer_hash(Mine(words=("a",), weights={"a": 1.0}))


def test_the_hash_covers_name_version_and_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Contains(text="a")
    assert scorer_hash(one) == scorer_hash(Contains(text="a"))
    assert scorer_hash(one) != scorer_hash(Contains(text="b"))
    assert scorer_hash(Contains(text="a")) != scorer_hash(SCORERS["forbids"](text="a"))
    monkeypatch.setattr(Contains, "VERSION", 2)
    assert scorer_hash(one) != PINNED
    assert len(scorer_hash(one)) == 12
    monkeypatch.setattr(Contains, "VERSION", 1)
    # pinned: equal on every machine and Python; a change of scoring is a new VERSION
    assert scorer_hash(one) == PINNED


PINNED = "904ded6bb1f4"


def test_settings_are_what_the_hash_sees() -> None:
    assert settings_of(Length(max_words=3)) == {
        "min_chars": None,
        "max_chars": None,
        "min_words": None,
        "max_words": 3,
    }


@pytest.mark.parametrize("name", SCORERS)
def test_every_scorer_is_a_frozen_dataclass_with_a_version(name: str) -> None:
    kind = SCORERS[name]
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert isinstance(kind.VERSION, int)
    assert isinstance(getattr(kind, "GATES", True), bool)
    assert kind.__doc__
    assert list(SCORERS) == sorted(SCORERS)


def test_versions_are_pinned_so_that_a_new_one_is_a_decision() -> None:
    newer = {name: kind.VERSION for name, kind in SCORERS.items() if kind.VERSION != 1}
    assert newer == {}


def test_a_scorer_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Contains(text="a").text = "b"  # type: ignore[misc]


def test_building_scorers_loads_nothing_heavy() -> None:
    heavy = {"jsonschema", "pandas", "numpy", "sklearn", "pypdf", "pylatexenc", "bibtexparser", "httpx", "idna", "pydantic"}  # fmt: skip
    code = (
        "import sys; from evalkit.scorers import build_scorer; "
        f"print(sorted({heavy!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
