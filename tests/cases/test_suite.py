"""A suite's file is read exactly; its digests move with what they pin and with nothing else."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from evalkit.cases.suite import Sampling, Suite, Task, load_suite, parse_suite
from evalkit.errors import CaseError, SuiteError
from evalkit.records import Case

TOML = """\
name = "tiny"
domain = "test/en"

[task]
kind = "chat"
model = "local/small"
prompt = "prompts/a.md"
app_version = "v1"
temperature = 0.7
max_tokens = 220

[sampling]
mix = { easy = 0.75, hard = 0.25 }
repeats = 3
seed = 7

[[criteria]]
name = "contract"
scorer = "json_contract"
schema = "c.schema.json"
min = 1.0
hard = true

[[criteria]]
name = "phrase"
scorer = "contains"
text = "no"
where = { stratum = "hard" }
min = 0.95

[[criteria]]
name = "faithfulness"
judge = "judges/f.md"
min = 0.90
max_drop = 0.02
gate = false
"""
ROWS = [
    {"id": f"c{i}", "stratum": "hard" if i > 2 else "easy", "inputs": {"q": i}} for i in range(4)
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("prompts", "judges", "pages"):
        (tmp_path / name).mkdir()
    (tmp_path / "suite.toml").write_text(TOML, encoding="utf-8")
    (tmp_path / "c.schema.json").write_text('{"type": "object"}\n', encoding="utf-8")
    (tmp_path / "pages" / "p.md").write_text("page", encoding="utf-8")
    (tmp_path / "prompts" / "a.md").write_text("# user\nhi", encoding="utf-8")
    write_cases(tmp_path, ROWS)
    return tmp_path


def write_cases(folder: Path, rows: list[dict[str, object]]) -> None:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "cases.jsonl").write_text(text, encoding="utf-8")


def edited(folder: Path, old: str, new: str) -> Suite:
    assert old in TOML
    (folder / "suite.toml").write_text(TOML.replace(old, new), encoding="utf-8")
    return load_suite(folder)


def test_a_suite_holds_what_its_file_says(folder: Path) -> None:
    suite = load_suite(folder)
    assert (suite.name, suite.domain, len(suite.cases)) == ("tiny", "test/en", 4)
    assert suite.task == Task("chat", "local/small", "prompts/a.md", "", "v1", 0.7, 220)
    assert suite.sampling == Sampling({"easy": 0.75, "hard": 0.25}, 3, 7)
    assert suite.prompt_path == folder / "prompts" / "a.md"
    assert suite.prompts == (folder / "prompts" / "a.md",)
    assert suite.judges == ()
    contract, phrase, faithful = suite.criteria
    assert contract.hard
    assert contract.settings == {"schema": "c.schema.json"}
    assert phrase.settings == {"text": "no"}
    assert (faithful.judge, faithful.max_drop, faithful.gate) == ("judges/f.md", 0.02, False)
    assert suite.criterion("phrase") is phrase
    with pytest.raises(SuiteError, match="no criterion 'x'; it has contract, phrase"):
        suite.criterion("x")


def test_where_selects_cases(folder: Path) -> None:
    phrase = load_suite(folder).criterion("phrase")
    assert [phrase.applies_to(Case("x", stratum)) for stratum in ("easy", "hard")] == [False, True]
    tagged = edited(folder, '{ stratum = "hard" }', '{ stratum = ["hard", "easy"], id = "c1" }')
    assert [c.id for c in tagged.cases if tagged.criterion("phrase").applies_to(c)] == ["c1"]


def test_one_matching_tag_is_enough(folder: Path) -> None:
    write_cases(folder, [*ROWS[:3], ROWS[3] | {"tags": ["a", "b"]}])
    suite = edited(folder, '{ stratum = "hard" }', '{ tags = ["b", "z"] }')
    assert [c.id for c in suite.cases if suite.criterion("phrase").applies_to(c)] == ["c3"]


@pytest.mark.parametrize("name", ["nowhere", ""])
def test_a_missing_suite_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(SuiteError) as caught:
        load_suite(tmp_path / name)
    assert str(caught.value).endswith("there is no suite.toml in it")
    assert str(caught.value).startswith(f"no suite at '{tmp_path / name}'")
    with pytest.raises(SuiteError, match=r"^no suite at 'nowhere': there is no suite.toml in it$"):
        load_suite("nowhere")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "tiny"', 'nmae = "tiny"', "'name' is missing"),
        ('name = "tiny"', 'name = "../x"', "'name' is '../x'"),
        ('domain = "test/en"', "", "'domain' is missing"),
        ('domain = "test/en"', 'domain = "d"\ndomian = "x"', "'domian'; did you mean 'domain'?"),
        ("temperature = 0.7", "temprature = 0.7", "'task.temprature'; did you mean 'temperature'?"),
        ("temperature = 0.7", 'temperature = "warm"', "'task.temperature' must be a number"),
        ("max_tokens = 220", "max_tokens = 0", "'task.max_tokens' is 0"),
        ('kind = "chat"', 'kind = "cat"', "'task.kind' is 'cat'; allowed: 'chat' or 'python'"),
        ('kind = "chat"', 'kind = "python"', "a python task names its 'entry'"),
        ('model = "local/small"', 'model = "small"', "write it as endpoint/model"),
        ('model = "local/small"', "", "a chat task names its 'model' and its 'prompt'"),
        ('"prompts/a.md"', '"../a.md"', "'task.prompt' lies outside"),
        ("repeats = 3", "repeats = true", "'sampling.repeats' must be a whole number, not True"),
        ("repeats = 3", "repeat = 3", "'sampling.repeat'; did you mean 'repeats'?"),
        ("hard = 0.25", "hard = 0.35", "sum to 1.1, not 1"),
        ("hard = 0.25", "hard = 0.2, odd = 0.05", "names stratum 'odd', but no case is in it"),
        ("[[criteria]]", "[[criterion]]", "'criterion'; did you mean 'criteria'?"),
        ('name = "phrase"', "", "[[criteria]] number 2: 'name' is missing"),
        ('name = "phrase"', 'name = "contract"', "criterion 'contract' stands twice"),
        ('scorer = "contains"', "", "'phrase': names either a 'scorer' or a 'judge'"),
        ('scorer = "contains"', 'scorer = "contains"\njudge = "j.md"', "either a 'scorer' or"),
        ("max_drop = 0.02", "max_dorp = 0.02", "unknown key 'max_dorp'; did you mean 'max_drop'?"),
        ("min = 0.95", "min = 95", "'min' is 95, but a rate is in 0..1"),
        ("min = 0.95", "min = nan", "'min' must be finite, not nan"),
        ("min = 0.95", 'min = "high"', "'min' must be a number"),
        ("min = 0.95", "", "'phrase': gates without a threshold"),
        ("min = 0.95", "min_win_rate = 0.5", "'against' and 'min_win_rate' belong together"),
        ("min = 0.95", 'statistic = "median"', "allowed: 'mean' or 'rate'"),
        ("min = 0.95", "pass_at = 4", "'pass_at' needs 'statistic"),
        ("gate = false", 'statistic = "rate"', "needs 'pass_at'"),
        ("gate = false", "hard = true", "'hard' is for a scorer that gates"),
        ('{ stratum = "hard" }', '{ strata = "hard" }', "'where'; did you mean 'stratum'?"),
        ('{ stratum = "hard" }', '{ stratum = "hrad" }', "criterion 'phrase' fits no case"),
        ('{ stratum = "hard" }', '{ stratum = "" }', "'where.stratum' is empty"),
        ('{ stratum = "hard" }', "{ stratum = [] }", "'where.stratum' is empty"),
        ('name = "tiny"', "name = tiny", "is not TOML"),
    ],
)
def test_what_is_wrong_is_named_in_one_sentence(
    folder: Path, old: str, new: str, said: str
) -> None:
    with pytest.raises(SuiteError) as caught:
        edited(folder, old, new)
    text = str(caught.value)
    assert said in text
    assert str(folder / "suite.toml") in text
    assert "\n" not in text


def test_a_suite_without_criteria_measures_nothing(folder: Path) -> None:
    (folder / "suite.toml").write_text(TOML.split("[[criteria]]")[0], encoding="utf-8")
    with pytest.raises(SuiteError, match="a suite without one measures nothing"):
        load_suite(folder)


def test_a_stratum_that_the_mix_does_not_know_is_a_case_error(folder: Path) -> None:
    write_cases(folder, [*ROWS, {"id": "x", "stratum": "esy", "inputs": {"q": 1}}])
    with pytest.raises(CaseError, match=r"cases.jsonl:5: case 'x': stratum 'esy' .* 'easy'"):
        load_suite(folder)


def test_a_scale_is_in_levels_and_a_rate_of_it_in_shares(folder: Path) -> None:
    scale = edited(folder, "min = 0.90\nmax_drop", 'min = 3.5\nstatistic = "mean"\nmax_drop')
    assert scale.criterion("faithfulness").min == 3.5
    rate = edited(folder, "min = 0.90", 'min = 0.90\nstatistic = "rate"\npass_at = 4')
    assert rate.criterion("faithfulness").pass_at == 4
    with pytest.raises(SuiteError, match=r"'min' is 3\.5"):
        edited(folder, "min = 0.90", "min = 3.5")


def test_allow_repair_reaches_the_scorer_when_it_is_stated(folder: Path) -> None:
    assert "allow_repair" not in load_suite(folder).criterion("contract").settings
    suite = edited(folder, "hard = true", "hard = true\nallow_repair = true")
    assert suite.criterion("contract").allow_repair
    assert suite.criterion("contract").settings["allow_repair"] is True


def test_a_python_task_needs_no_model_and_no_prompt(folder: Path) -> None:
    suite = edited(
        folder,
        'kind = "chat"\nmodel = "local/small"\nprompt = "prompts/a.md"',
        'kind = "python"\nentry = "my_app.rag:answer"',
    )
    assert suite.task.entry == "my_app.rag:answer"
    assert suite.prompt_path is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("min = 0.95", "min = 0.90"),
        ("max_drop = 0.02", "max_drop = 0.03"),
        ("gate = false", "gate = true"),
    ],
)
def test_a_threshold_moves_its_own_hash_and_not_the_digest(
    folder: Path, old: str, new: str
) -> None:
    before, after = load_suite(folder), edited(folder, old, new)
    assert after.digest == before.digest
    assert after.thresholds_hash != before.thresholds_hash


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("seed = 7", "seed = 8"),
        ("repeats = 3", "repeats = 1"),
        ('"local/small"', '"local/large"'),
        ('"v1"', '"v2"'),
        ("temperature = 0.7", "temperature = 0"),
        ("# ", "# "),
        ("min = 0.95", "min = 0.95 # a comment"),
    ],
)
def test_what_a_run_pins_by_itself_moves_neither_hash(folder: Path, old: str, new: str) -> None:
    before = load_suite(folder)
    after = edited(folder, old, new) if old in TOML else load_suite(folder)
    assert (after.digest, after.thresholds_hash) == (before.digest, before.thresholds_hash)


def test_what_is_measured_moves_the_digest_and_the_order_of_cases_does_not(folder: Path) -> None:
    digests = {load_suite(folder).digest}
    for old, new in [
        ('text = "no"', 'text = "yes"'),
        ('stratum = "hard" }', 'stratum = "easy" }'),
        ("easy = 0.75, hard = 0.25", "easy = 0.25, hard = 0.75"),
        ("test/en", "test/de"),
    ]:
        digests.add(edited(folder, old, new).digest)
    (folder / "suite.toml").write_text(TOML, encoding="utf-8")
    (folder / "c.schema.json").write_text('{"type": "array"}\n', encoding="utf-8")
    digests.add(load_suite(folder).digest)
    write_cases(folder, [*ROWS[:3], ROWS[3] | {"why": "changed"}])
    digests.add(load_suite(folder).digest)
    assert len(digests) == 7
    write_cases(folder, [*ROWS[:3], ROWS[3] | {"why": "changed"}][::-1])
    assert load_suite(folder).digest in digests


def test_a_file_or_folder_that_a_setting_names_is_part_of_the_digest(folder: Path) -> None:
    suite = edited(folder, 'text = "no"', 'pages = "pages"')
    (folder / "pages" / "q.md").write_text("another", encoding="utf-8")
    assert load_suite(folder).digest != suite.digest
    outside = edited(folder, 'text = "no"', 'text = "../"')
    (folder.parent / "stray").write_text("x", encoding="utf-8")
    assert load_suite(folder).digest == outside.digest


def test_line_endings_move_no_digest(folder: Path) -> None:
    before = load_suite(folder).digest
    for name in ("suite.toml", "cases.jsonl", "c.schema.json"):
        path = folder / name
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_suite(folder).digest == before


def test_thresholds_can_be_read_from_a_text_alone(folder: Path) -> None:
    suite = load_suite(folder)
    earlier = parse_suite(TOML.replace("min = 0.95", "min = 0.99"), folder)
    assert earlier.cases == ()
    assert earlier.thresholds()["phrase"]["min"] == 0.99
    assert suite.thresholds()["phrase"] == {
        "min": 0.95,
        "statistic": "mean",
        "hard": False,
        "gate": True,
    }


def test_a_suite_survives_the_way_to_another_process(folder: Path) -> None:
    suite = load_suite(folder)
    assert pickle.loads(pickle.dumps(suite)) == suite
