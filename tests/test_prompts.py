"""Prompt files: what they hold, their hash, strict rendering, shape rules, drafts."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import PromptError
from evalkit.prompts import (
    Prompt,
    ShapeRule,
    check_shape,
    draft_path,
    is_draft,
    load_prompt,
    load_shape,
    parse_prompt,
    save_draft,
    save_prompt,
)
from evalkit.records import Case, Document, Message

TEXT = """\
---
schema: contract.schema.json
description: an example
---
# system
Answer from the pages.

# user
{% for page in context %}
[{{ page.id }}] {{ page.text }}
{% endfor %}

# Question
{{ inputs.question }}
"""
CASE = Case(
    "c1",
    "easy",
    inputs={"question": "Why?", "items": "my items"},
    context=(Document("a", "first"), Document("b", "second {{ id }}")),
    expected={"answer": "secret"},
    tags=("t",),
)


def test_a_prompt_file_has_a_header_and_two_parts() -> None:
    prompt = parse_prompt(TEXT, "answer")
    assert prompt.header == {"schema": "contract.schema.json", "description": "an example"}
    assert prompt.system == "Answer from the pages."
    assert prompt.user.startswith("{% for page in context %}")
    assert prompt.user.endswith("# Question\n{{ inputs.question }}")
    assert parse_prompt("# user\nhi", "x").parts == (("user", "hi"),)


def test_the_rendered_messages_hold_the_case_and_nothing_of_what_is_expected() -> None:
    assert parse_prompt(TEXT, "answer").render(CASE) == (
        Message("system", "Answer from the pages."),
        Message("user", "[a] first\n[b] second {{ id }}\n\n# Question\nWhy?"),
    )
    with pytest.raises(PromptError, match="'expected' is undefined"):
        parse_prompt("# user\n{{ expected.answer }}", "x").render(CASE)


# The golden values of the prompt hash: the first 12 hex digits of SHA-256 over the JSON list of
# [role, text]. A change here makes every earlier run and baseline another prompt's.
GOLDEN = [
    ("# user\nhi", '[["user","hi"]]', "897be8e1f037"),
    (
        "# system\nBe brief.\n\n# user\nhi\n",
        '[["system","Be brief."],["user","hi"]]',
        "ed9c5ff25311",
    ),
    ("# user\n{{ inputs.q }} – ¿?", '[["user","{{ inputs.q }} – ¿?"]]', "48f7fe42c258"),
]


@pytest.mark.parametrize(("text", "meaning", "wanted"), GOLDEN)
def test_the_prompt_hash_is_the_golden_one(text: str, meaning: str, wanted: str) -> None:
    assert hashlib.sha256(meaning.encode()).hexdigest()[:12] == wanted
    assert parse_prompt(text, "any").hash == wanted


def test_header_name_and_line_endings_do_not_move_the_hash_and_the_text_does() -> None:
    known = parse_prompt(TEXT, "answer").hash
    for same in (
        TEXT.replace("\n", "\r\n"),
        TEXT.replace("\n", "\r"),
        "\ufeff" + TEXT,
        TEXT.rstrip("\n"),
        TEXT.split("---\n")[2],
        TEXT.replace("an example", "another"),
    ):
        assert parse_prompt(same, "other").hash == known
    for other in (
        TEXT.replace("pages.", "pages!"),
        TEXT.replace("# system", "# user").replace("# user\n{%", "# system\n{%"),
        TEXT.replace("{{ inputs.question }}", "{{inputs.question}}"),
        TEXT.replace("Answer", " Answer"),
    ):
        assert parse_prompt(other, "answer").hash != known


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no '# user' part"),
        ("# system\nonly", "has no '# user' part"),
        ("# user\n\n  \n", "has no '# user' part"),
        ("hello\n# user\nhi", "text before the first part"),
        ("# sytem\nhi\n# user\nhi", "text before the first part"),
        ("# user\na\n# user\nb", "the part '# user' stands twice"),
        ("---\nschema: x\n# user\nhi", "the header's closing '---' is missing"),
        ("---\n- a\n---\n# user\nhi", "the header must be 'name: value' lines"),
        ("---\na: [\n---\n# user\nhi", "the header is not YAML"),
        ("---\na: !!python/name:os.system\n---\n# user\nhi", "the header is not YAML"),
        (
            "---\na: 1\n---\n# system\nx\n\n# user\n\nhi\n{{ a b }}",
            "x:10: template: expected token",
        ),
        ("# user\n{% if x %}", "x:2: template: Unexpected end of template"),
        ("# user\n{% include 'a' %}{% nosuchtag %}", "x:2: template: Encountered unknown tag"),
    ],
)
def test_what_is_no_prompt_is_refused_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(PromptError) as caught:
        parse_prompt(text, "x")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (
            "{{ question }}",
            "'question' is undefined; known: inputs.question, inputs.items, context",
        ),
        ("{{ inputs.questoin }}", "has no attribute 'questoin'"),
        ("{{ context[5].text }}", "has no element 5"),
        ("{{ inputs.question.__class__ }}", "unsafe"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "unsafe"),
        ("{{ context.__class__ }}", "unsafe"),
        ("{{ inputs.update({'a': 1}) }}", "unsafe"),
        ("{% include '/etc/passwd' %}", "cannot be rendered"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{% for i in range(10 ** 9) %}x{% endfor %}", "Range too big"),
    ],
)
def test_rendering_is_strict_and_sandboxed(template: str, said: str) -> None:
    with pytest.raises(PromptError) as caught:
        parse_prompt(f"# user\n{template}", "answer").render(CASE)
    assert said in str(caught.value)
    assert str(caught.value).startswith("answer, part '# user': case 'c1'")


def test_a_key_of_the_case_wins_over_a_method_of_its_container() -> None:
    prompt = parse_prompt("# user\n{{ inputs.items }}|{{ material.values() | join }}", "x")
    case = Case("c", inputs={"items": "mine"}, material={"a": "text"})
    assert prompt.render(case)[0].content == "mine|text"


def test_further_names_are_given_by_the_caller() -> None:
    prompt = parse_prompt(
        "# user\n{% if gaps is defined and gaps %}gaps: {{ gaps }}{% endif %}x", "x"
    )
    assert prompt.render(CASE)[0].content == prompt.render(CASE, gaps=[])[0].content == "x"
    assert prompt.render(CASE, gaps=["a"])[0].content == "gaps: ['a']x"


@given(st.text(max_size=60))
def test_what_a_case_holds_is_never_a_template(text: str) -> None:
    prompt = parse_prompt("# user\n<{{ inputs.question }}>", "x")
    for hostile in (text, f"{{{{ {text} }}}}", "{% raw %}" + text):
        rendered = prompt.render(Case("c", inputs={"question": hostile}))[0].content
        assert rendered == f"<{hostile}>"


def test_an_unpaired_surrogate_does_not_reach_the_wire() -> None:
    prompt = parse_prompt("# user\n{{ reply }}", "x")
    assert prompt.render(CASE, reply="a\ud800b")[0].content == "a\ufffdb"


def test_a_missing_file_or_an_unknown_header_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match=r"none\.md: cannot be read"):
        load_prompt(tmp_path / "none.md")
    path = tmp_path / "a.md"
    path.write_text("---\nshcema: x\n---\n# user\nhi", encoding="utf-8")
    with pytest.raises(PromptError, match=r"a\.md: unknown key 'shcema' .* mean 'schema'"):
        load_prompt(path)
    assert load_prompt(path, allowed=None).name == "a"


def test_the_schema_of_the_header_is_read_inside_the_suite_only(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"type": "object"}', encoding="utf-8")
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    assert Prompt("x", "", "hi").schema_in(tmp_path) is None
    assert Prompt("x", "", "hi", {"schema": "c.json"}).schema_in(tmp_path) == {"type": "object"}
    for name, said in [
        ("../c.json", "names a file of the suite"),
        (7, "names a file of the suite"),
        ("none.json", "cannot be read"),
        ("list.json", "is an object"),
        ("bad.json", "is not JSON"),
    ]:
        with pytest.raises(PromptError, match=said):
            Prompt("x", "", "hi", {"schema": name}).schema_in(tmp_path)


# Shape

SHAPE = """\
[[rules]]
part = "system"
contains = ["pages", "Answer"]
why = "pages only"

[[rules]]
part = "user"
contains = "{% for page in context %}[{{ page.id }}] {{ page.text }}\\n{% endfor %}"
forbids = "secret"

[[rules]]
part = "system"
equals = "Answer from the pages."
"""


def shape(tmp_path: Path, text: str = SHAPE) -> tuple[ShapeRule, ...]:
    path = tmp_path / "answer.shape.toml"
    path.write_text(text, encoding="utf-8")
    return load_shape(path)


def test_each_text_is_a_rule_and_a_prompt_that_keeps_all_has_no_finding(tmp_path: Path) -> None:
    rules = shape(tmp_path)
    assert len(rules) == 5
    assert load_shape(tmp_path / "answer.md") == rules
    assert load_shape(tmp_path / "other.md") == ()
    assert check_shape(parse_prompt(TEXT, "answer"), rules, CASE) == ()


def test_each_broken_rule_is_one_finding_with_its_reason(tmp_path: Path) -> None:
    prompt = parse_prompt("# system\nAnswer.\n\n# user\nthe secret: {{ inputs.question }}", "a")
    findings = check_shape(prompt, shape(tmp_path), CASE)
    assert [f.message for f in findings] == [
        "system lacks 'pages' (pages only)",
        "user lacks '[a] first\\n[b] second {{ id }}\\n'",
        "user holds the forbidden 'secret'",
        "system is not exactly 'Answer from the pages.'",
    ]
    assert (findings[2].start, findings[2].end) == (4, 10)


def test_a_rule_without_a_part_looks_at_the_whole() -> None:
    prompt = parse_prompt("# system\none\n\n# user\ntwo", "a")
    assert check_shape(prompt, [ShapeRule("equals", "one\n\ntwo")], CASE) == ()
    assert check_shape(prompt, [ShapeRule("contains", "three")], CASE)
    assert check_shape(
        parse_prompt("# user\ntwo", "a"), [ShapeRule("contains", "x", "system")], CASE
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rules = 1", r"holds \[\[rules\]\] tables and nothing else"),
        ("rules = [1]", r"holds \[\[rules\]\] tables and nothing else"),
        ('[[rule]]\ncontains = "x"', r"holds \[\[rules\]\] tables and nothing else"),
        ('[[rules]]\nincludes = "x"', "unknown key 'includes' in a rule"),
        ('[[rules]]\nforbid = "x"', "'forbid' in a rule; did you mean 'forbids'"),
        ('[[rules]]\npart = "user"', "has none of contains, forbids, equals"),
        ('[[rules]]\npart = "assistant"\ncontains = "x"', "'part' is 'assistant'"),
        ('[[rules]]\ncontains = ""', "texts that are not empty"),
        ("[[rules]]\ncontains = [1]", "texts that are not empty"),
        ('[[rules]]\ncontains = "{{"', "template: "),
        ("[[rules", "is not TOML"),
    ],
)
def test_a_crooked_shape_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(PromptError, match=said):
        shape(tmp_path, text)


# Drafts


def test_a_draft_differs_until_it_is_saved(tmp_path: Path) -> None:
    saved = tmp_path / "golden" / "prompts" / "answer.md"
    saved.parent.mkdir(parents=True)
    saved.write_text(TEXT, encoding="utf-8")
    exports = tmp_path / "exports"
    assert not is_draft(load_prompt(saved), saved)

    edited = TEXT.replace("pages.", "pages only.")
    draft = save_draft(edited, exports=exports, suite="docs_qa", name="answer")
    assert draft == exports / "drafts" / "docs_qa" / "answer.md"
    assert is_draft(load_prompt(draft), saved)
    assert is_draft(parse_prompt(TEXT.replace("contract", "other"), "answer"), saved)
    assert is_draft(load_prompt(draft), tmp_path / "none.md")

    prompt = save_prompt(edited, saved, draft=draft)
    assert not draft.exists()
    assert not is_draft(prompt, saved)
    assert prompt.path == saved
    assert [p.name for p in saved.parent.iterdir()] == ["answer.md"]


def test_a_draft_may_be_anything_and_a_prompt_file_may_not(tmp_path: Path) -> None:
    saved = tmp_path / "answer.md"
    saved.write_text(TEXT, encoding="utf-8")
    draft = save_draft("# use\r\nbroken \ud800", exports=tmp_path, suite="s", name="answer")
    assert draft.read_bytes() == "# use\nbroken \ufffd\n".encode()
    with pytest.raises(PromptError, match="text before the first part"):
        save_prompt(draft.read_text("utf-8"), saved, draft=draft)
    assert saved.read_text("utf-8") == TEXT
    assert draft.exists()


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "a\0b", "-"])
def test_a_name_cannot_lead_out_of_the_drafts(tmp_path: Path, name: str) -> None:
    with pytest.raises(PromptError, match="cannot name a draft"):
        draft_path(tmp_path, "docs_qa", name)
    with pytest.raises(PromptError, match="cannot name a draft"):
        draft_path(tmp_path, name, "answer")


def test_the_meaning_that_is_hashed_is_plain_json() -> None:
    prompt = parse_prompt(TEXT, "answer")
    spelled = json.dumps(list(map(list, prompt.parts)), ensure_ascii=False, separators=(",", ":"))
    assert prompt.hash == hashlib.sha256(spelled.encode()).hexdigest()[:12]
