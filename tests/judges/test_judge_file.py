from __future__ import annotations

from pathlib import Path

import pytest

from evalkit.errors import JudgeError, UsageError
from evalkit.judges import JUDGES, load_judge, parse_judge_file, template_path
from evalkit.judges.file import family_of
from evalkit.records import Case, Document, Reply

ROOT = Path(__file__).resolve().parents[2]
BODY = "---\n# system\nJudge.\n# user\n{{ draft }}\n"
GOOD = "---\nkind: scale\nmodel: local/m\nlevels:\n  1: wrong\n  2: right\n" + BODY


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (changed("levels:\n  1: wrong\n  2: right\n", ""), "without anchors"),
        (changed("  1: wrong\n  2: right\n", "  1:\n  2: right\n"), "level 1 has no description"),
        (changed("levels:\n  1: wrong\n  2: right\n", "levels: [1, 2]\n"), "mapping"),
        (changed("  2: right", "  3: right"), "holes"),
        (changed("  2: right\n", ""), "at least two"),
        (changed("kind: scale", "kind: vibes"), "'kind'"),
        (changed("kind: scale", "kind: criteria"), "criteria"),
        (changed("model: local/m", "model: m"), "'model'"),
        (changed("model: local/m", "model: local/m\nstrict: true"), "unknown key 'strict'"),
        (changed("model: local/m", "model: local/m\npass_at: 9"), "pass_at 9"),
        (changed("model: local/m", "model: local/m\ncriteria: {a: is it so}"), "kind criteria"),
        (changed("model: local/m", "model: local/m\nlanguage: fr"), "'language'"),
        ("# system\nno header\n# user\nx\n", "'kind'"),
        (changed("# user\n{{ draft }}", "{{ draft }}"), "# user"),
        (changed("{{ draft }}", "{{ draft"), "template"),
    ],
)
def test_a_wrong_judge_file_is_one_clear_sentence(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "judge.md"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(JudgeError) as caught:
        load_judge(path)
    assert isinstance(caught.value, UsageError)
    assert says in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_judge_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(JudgeError, match=r"nowhere\.md"):
        load_judge(tmp_path / "nowhere.md")


def test_the_hash_covers_header_and_prompt_but_not_name_comment_or_line_endings() -> None:
    def hash_of(text: str, name: str = "j") -> str:
        return parse_judge_file(text, name).hash

    base = hash_of(GOOD)
    assert hash_of(GOOD, "another") == base
    assert hash_of(GOOD.replace("\n", "\r\n")) == base
    assert hash_of(changed("kind: scale", "# a note\nkind: scale")) == base
    changes = [
        changed("1: wrong", "1: all wrong"),
        changed("model: local/m", "model: local/n"),
        changed("Judge.", "Judge well."),
        changed("kind: scale", "kind: scale\npass_at: 2"),
        changed("kind: scale", "kind: scale\ntemperature: 0.5"),
    ]
    assert len({base, *map(hash_of, changes)}) == 1 + len(changes)


def test_the_judge_hash_is_the_same_on_every_machine() -> None:
    assert parse_judge_file(GOOD, "golden").hash == "09defa51c30f"


def test_another_model_makes_another_judge(tmp_path: Path) -> None:
    path = tmp_path / "j.md"
    path.write_text(GOOD, encoding="utf-8")
    one, other = load_judge(path), load_judge(path, model="openai/gpt-4o")
    assert (other.model, other.family) == ("openai/gpt-4o", "gpt")
    assert one.hash != other.hash
    with pytest.raises(JudgeError, match="endpoint/model"):
        load_judge(path, model="gpt")


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("openai/gpt-4o-mini", "gpt"),
        ("openai/o3", "gpt"),
        ("local/smollm2-135m-instruct", "smollm"),
        ("x/Qwen2.5-7B", "qwen"),
        ("x/anthropic/claude-sonnet-4", "claude"),
        ("x/mixtral-8x7b", "mistral"),
        ("x/7b", ""),
    ],
)
def test_a_models_name_tells_its_family(model: str, family: str) -> None:
    assert family_of(model) == family


def test_a_variable_the_case_does_not_have_is_named() -> None:
    file = parse_judge_file(changed("{{ draft }}", "{{ inputs.colour }}"), "j")
    judge = JUDGES["scale"](file)
    with pytest.raises(JudgeError, match=r"judge j, .*'c1'.*colour"):
        judge.requests(Case("c1", inputs={"question": "?"}), Reply("x"))


TEMPLATES = sorted((ROOT / "evalkit/judges/templates").glob("*.md"))
SHIPPED = TEMPLATES + sorted((ROOT / "golden").glob("*/judges/*.md"))
CASE = Case(
    "c",
    inputs={"question": "Since when?", "topic": "t", "task": "t", "brief": "b"},
    context=(Document("p", "Since 1999."),),
    expected={"answer": "1999"},
)


def test_every_template_ships_in_english_and_chinese() -> None:
    names = {p.name.split(".")[0] for p in TEMPLATES}
    assert names == {"faithfulness", "relevance", "accuracy", "report_pairwise", "tone_safety"}
    for name in names:
        for language in ("en", "zh"):
            assert load_judge(template_path(f"{name}.{language}")).kind in JUDGES


@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: f"{p.parent.parent.name}/{p.name}")
def test_every_shipped_judge_keeps_the_rules_of_its_kind(path: Path) -> None:
    judge = load_judge(path)
    chinese = ".zh." in path.name
    text = path.read_text(encoding="utf-8").lower()
    words = text if chinese else " ".join(text.split())
    if judge.kind == "criteria":  # strict, with examples of what is not enough
        assert ("从严" if chinese else "be strict") in words
        assert "no" in words
        assert words.count("\n- " if chinese else " - ") >= 3
    elif judge.kind == "scale":  # calibrated and wide, never strict
        assert ("校准" if chinese else "well calibrated") in words
        assert ("整个区间" if chinese else "full range") in words
        assert "strict" not in words
        assert "从严" not in words
    else:
        assert ("长不是优点" if chinese else "longer is not a virtue") in words
    if "docs_qa" in str(path) or path in TEMPLATES:
        reply, other = Reply("Since 1999."), Reply("Since 1998.")
        if judge.kind == "pairwise":
            requests = judge.pair_requests(CASE, reply, other)
        else:
            requests = judge.requests(CASE, reply)
        assert "Since 1999." in requests[0].messages[1].content
        assert all(r.temperature == 0.0 for r in requests)
