from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import ScorerError
from evalkit.scorers.json_reader import JsonReading, read_json
from evalkit.scorers.json_tolerant import MAX_DEPTH

_FILE = Path(__file__).parent.parent / "failure_cases" / "cases.jsonl"
_LINES = _FILE.read_text(encoding="utf-8").split("\n")
CASES = {case["id"]: case for case in map(json.loads, filter(None, _LINES))}
SCORE = {
    "type": "object",
    "required": ["score"],
    "properties": {"score": {"type": "integer", "minimum": 1, "maximum": 5}},
}
LINE_BREAK = "a raw line break or control character in a string was kept"
BACKSLASH = "a backslash that JSON does not allow was kept"
COMMA = "a trailing comma was dropped"
QUOTES = "Python-style quotes were read"
WORDS = "Python's True, False or None was read"
AROUND = "text around it was left out"
FENCE = "a code fence around it was taken off"
PASSED = "1 other object(s) were passed over"


def test_a02_an_object_drafted_while_thinking_is_never_the_answer() -> None:
    case = CASES["A02"]
    reading = read_json(case["input"]["text"], case["input"]["contract"])
    assert reading.value == case["expected"]["value"]
    assert (reading.status, reading.mended) == ("ok", ())
    assert len(reading.set_aside) == 1
    assert reading.set_aside[0].startswith("<think>")
    assert reading.set_aside[0].endswith("</think>")


def test_a11_prose_fence_raw_newline_and_trailing_comma_are_mended_and_named() -> None:
    case = CASES["A11"]
    reading = read_json(case["input"]["text"])
    assert reading.value == case["expected"]["value"]
    assert reading.mended == (LINE_BREAK, COMMA, FENCE, AROUND)


def test_a12_every_backslash_is_kept() -> None:
    case = CASES["A12"]
    reading = read_json(case["input"]["text"])
    assert reading.value == case["expected"]["value"]
    assert reading.mended == (BACKSLASH,)


def test_a13_the_object_that_meets_the_contract_is_read() -> None:
    case = CASES["A13"]
    texts, contract = case["input"]["texts"], case["input"]["contract"]
    readings = [read_json(text, contract) for text in texts]
    assert [reading.value for reading in readings] == case["expected"]["value"]
    assert [r.status for r in readings] == ["ok", "ok", "absent", "ok", "ok"]
    assert [r.mended for r in readings] == [(AROUND, PASSED), (AROUND,), (), (QUOTES,), ()]


def test_a14_what_is_no_number_is_refused_with_its_path() -> None:
    case = CASES["A14"]
    readings = [read_json(text, case["input"]["contract"]) for text in case["input"]["texts"]]
    assert [r.status == "ok" for r in readings] == [v["ok"] for v in case["expected"]["value"]]
    assert [r.value for r in readings] == [None, None, None]
    assert [r.problems for r in readings] == [
        ("$.score: NaN is not a number that JSON allows",),
        ("$.score: Infinity is not a number that JSON allows",),
        ("$.score: 1e999 is too large for a number",),
    ]


@pytest.mark.parametrize("constant", ["-Infinity", "nan", "inf", "-inf", "+Infinity"])
def test_other_spellings_of_no_number_are_refused_deep_inside(constant: str) -> None:
    reading = read_json('{"a": [1, {"b": ' + constant + "}]}")
    assert (reading.status, reading.value) == ("invalid", None)
    assert reading.problems == (f"$.a[1].b: {constant} is not a number that JSON allows",)


def test_whole_numbers_beyond_a_float_are_refused_and_shown_short() -> None:
    reading = read_json('{"score": ' + "9" * 5000 + "}")
    assert reading.problems == (f"$.score: {'9' * 27}... is too large for a number",)
    assert read_json('{"score": ' + "9" * 300 + "}").value == {"score": int("9" * 300)}
    assert read_json('{"score": ' + "9" * 310 + "}").status == "invalid"


@pytest.mark.parametrize(
    ("text", "value", "mended"),
    [
        ('{"a": 1}', {"a": 1}, ()),
        (' \n{"a": [2.5, -3e2, true, false, null]}\n', {"a": [2.5, -300.0, True, False, None]}, ()),
        ("[1, 2]", [1, 2], ()),
        ("{}", {}, ()),
        ('\ufeff{"a": 1}', {"a": 1}, (AROUND,)),
        ('```json\n{"a": 1}\n```', {"a": 1}, (FENCE,)),
        ('```\n{"a": 1}\n```\nDone.', {"a": 1}, (FENCE, AROUND)),
        ('~~~ json5\n{"a": 1}\n~~~', {"a": 1}, (FENCE,)),
        ('```json\n{"a": 1}', {"a": 1}, (FENCE,)),
        ('Here: {"a": 1}', {"a": 1}, (AROUND,)),
        ('{"a": 1}.', {"a": 1}, (AROUND,)),
        ('{"a": [1, 2,],}', {"a": [1, 2]}, (COMMA,)),
        ("{'a': True, 'b': False, 'c': None}", {"a": True, "b": False, "c": None}, (QUOTES, WORDS)),
        ("""{'a': "it's", 'b': 'say "x"'}""", {"a": "it's", "b": 'say "x"'}, (QUOTES,)),
        ('{"a": "x\ty"}', {"a": "x\ty"}, (LINE_BREAK,)),
        ("{'a': 'x\ny'}", {"a": "x\ny"}, (QUOTES, LINE_BREAK)),
        ('{"a": "\\q\\"\\\\\\/ \\n\\t\\r\\b\\f"}', {"a": '\\q"\\/ \n\t\r\b\f'}, (BACKSLASH,)),
        ('{"a": "\\u00e9 \\ud83d\\ude00"}', {"a": "é 😀"}, ()),
        ('{"a": "\\u00e9 \\ud83d\\ude00 \\x"}', {"a": "é 😀 \\x"}, (BACKSLASH,)),
        ('{"a": "\\usepackage \\unlhd \\u12"}', {"a": "\\usepackage \\unlhd \\u12"}, (BACKSLASH,)),
        # legal escapes that spell TeX: form feed and backspace never do else; \n, \t, \r only
        # where the writer shows elsewhere in the object that backslashes were not escaped
        ('{"a": "\\frac{1}{2} \\beta"}', {"a": "\\frac{1}{2} \\beta"}, (BACKSLASH,)),
        ('{"a": "\\\\frac{1}{2}"}', {"a": "\\frac{1}{2}"}, ()),
        ('{"a": "\\nu and\\next"}', {"a": "\nu and\next"}, ()),
        ('{"a": "\\q \\nu\\next \\theta"}', {"a": "\\q \\nu\next \\theta"}, (BACKSLASH,)),
        ('{"a": 1} and again {"a": 1}', {"a": 1}, (AROUND, PASSED)),
        ('Use {} here. {"a": 1}', {"a": 1}, (AROUND, PASSED)),
        ('{"a": 1, "a": 1}', {"a": 1}, ("a repeated key was dropped",)),
        ('An open brace { and {"a": 1}', {"a": 1}, (AROUND,)),
        ('It ends so: {"a": 1} with {"', {"a": 1}, (AROUND,)),
        ('\\frac{1}{2} then {"a": {"b": 1}}', {"a": {"b": 1}}, (AROUND,)),
    ],
)  # fmt: skip
def test_the_value_and_what_was_mended(text: str, value: Any, mended: tuple[str, ...]) -> None:
    reading = read_json(text)
    assert (reading.value, reading.status, reading.mended) == (value, "ok", mended)
    assert reading.problems == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no object here",
        "{score: high}",
        "{1}",
        '{"a"}',
        '{"a": 1 "b": 2}',
        '{"a": ,}',
        '{"a": 1,, "b": 2}',
        '{, "a": 1}',
        '{"a": 01}',
        '{"a": .5}',
        '{"a": 4/5}',
        '{"a": 1.2.3}',
        '{"a": yes}',
        '{"a": ]}',
        "{'a': 'It's short'}",
        "[1] and [2, 3]",
        "4",
        '"a text"',
    ],
)
def test_what_is_no_object_is_absent(text: str) -> None:
    assert read_json(text) == JsonReading(None, "absent")


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{ \n",
        '{"',
        '{"sco',
        '{"score"',
        '{"score":',
        '{"score": 4',
        '{"score": 4,',
        '{"score": 4, "rea',
        '{"score": 4, "reasoning": "It sa',
        '{"score": 4, "reasoning": "It shows {\'score\': 2}',
        '{"score": tru',
        '{"list": [1, 2',
        '{"list": [1, {"score": 4}',
        "{'score': 4, 'reasoning': 'It sa",
        'Prose. ```json\n{"score": 4, ',
        '{"score": 2} Wait, rather {"score": 4, "reas',
        "<think>The form is {",
        '<think>\nI should answer {"score": 4}',
    ],
)
def test_what_was_cut_off_is_truncated_and_never_closed(text: str) -> None:
    for schema in (None, SCORE):
        reading = read_json(text, schema)
        assert (reading.value, reading.status, reading.mended) == (None, "truncated", ())


def test_objects_that_fit_and_disagree_are_ambiguous() -> None:
    for schema in (None, SCORE):
        reading = read_json('{"score": 2} or {"score": 3} or {"score": 3}', schema)
        assert (reading.value, reading.status) == (None, "ambiguous")
        assert reading.problems == ("2 objects fit and disagree",)
    assert read_json('{"score": 9} or {"score": 3}', SCORE).value == {"score": 3}
    assert read_json('{"score": NaN} or {"score": 3}').value == {"score": 3}


def test_one_key_with_two_values_is_ambiguous() -> None:
    reading = read_json('{"a": [{"score": 1, "score": 5}]}')
    assert (reading.value, reading.status) == (None, "ambiguous")
    assert reading.problems == ("$.a[0].score: given twice, with different values",)


def test_pieces_of_a_broken_object_are_objects_of_their_own() -> None:
    assert read_json('{"a": {"b": 1} oops {"c": 2}').status == "ambiguous"
    assert read_json('{"a": {"score": 1} oops', SCORE).value == {"score": 1}


def test_a_violated_schema_gives_every_violation_as_path_and_sentence() -> None:
    schema = {
        "type": "object",
        "required": ["answer", "sources"],
        "properties": {
            "confidence": {"type": "number", "maximum": 1},
            "sources": {"type": "array"},
        },
        "if": {"properties": {"answer": {"const": ""}}, "required": ["answer"]},
        "then": {"properties": {"confidence": {"maximum": 0.3}}},
    }
    reading = read_json('{"answer": "", "confidence": 2}', schema)
    assert (reading.status, reading.value) == ("invalid", {"answer": "", "confidence": 2})
    assert reading.problems == (
        "$: 'sources' is a required property",
        "$.confidence: 2 is greater than the maximum of 0.3",
        "$.confidence: 2 is greater than the maximum of 1",
    )
    assert reading.reason == (
        "the JSON breaks the contract: $: 'sources' is a required property (and 2 more)"
    )


def test_the_nearest_of_several_misfits_is_the_one_reported() -> None:
    schema = {"type": "object", "required": ["a", "b"]}
    assert read_json('{"a": 1} then {"c": 1}', schema).value == {"a": 1}
    assert read_json('{"c": 1} then {"a": 1}', schema).value == {"a": 1}
    assert read_json('{"a": 1} then {"a": 2}', schema).value == {"a": 2}


def test_long_violations_are_shortened() -> None:
    (problem,) = read_json(json.dumps({"score": "x" * 9000 + "END"}), SCORE).problems
    assert len(problem) < 330
    assert problem.startswith("$.score: 'xxx")
    assert problem.endswith("END' is not of type 'integer'")


def test_arrays_and_plain_values_are_read_where_the_schema_asks_for_them() -> None:
    schema = {"type": "array", "items": {"type": "integer"}}
    assert read_json("The ids: [1, 2], as asked.", schema).value == [1, 2]
    assert read_json("See [a] and [1, 2,]", schema).mended == (COMMA, AROUND)
    assert read_json("[1, 2", schema).status == "truncated"
    assert read_json("4", {"type": ["integer", "null"]}).value == 4
    assert read_json("[1]", SCORE).problems == ("$: [1] is not of type 'object'",)


def test_a_schema_that_is_none_is_the_users_error() -> None:
    with pytest.raises(ScorerError, match=r"no JSON schema, at \$.type"):
        read_json("{}", {"type": "objekt"})
    with pytest.raises(ScorerError, match="not inside it"):
        read_json("{}", {"$ref": "https://example.com/other.json"})


def test_deep_nesting_gives_a_sentence() -> None:
    for opening, closing in (('{"a":', "}"), ('{"a":[', "]}")):
        for text in (opening * 1500 + "1" + closing * 1500, opening * 1500):
            reading = read_json(text)
            assert (reading.status, reading.value) == ("invalid", None)
            assert reading.problems == (f"$: nested more than {MAX_DEPTH} levels deep",)
    for depth, status in ((MAX_DEPTH, "ok"), (MAX_DEPTH + 1, "invalid")):
        text = '{"a":' * depth + "1" + "}" * depth
        assert read_json(text).status == status
        assert read_json(f"so: {text}").status == status


@pytest.mark.parametrize(
    "piece",
    [
        "{",
        '{"',
        '{"a":!',
        '{"a":"\\"',
        "{'a':'{\"b\":\"",
        '{"a":1,',
        '{"a":1}',
        "</think>x",
        "\\",
        "{ ",
    ],
)
def test_five_megabytes_of_rubbish_end_with_a_status(piece: str) -> None:
    text = piece * (5_000_000 // len(piece))
    assert read_json(text).status in {"absent", "truncated", "invalid"}


def test_the_span_says_where_the_value_stands() -> None:
    text = '<think>\n{"a": 2}</think>\nSo: {"a": 1}.'
    reading = read_json(text)
    assert reading.span is not None
    assert text[slice(*reading.span)] == '{"a": 1}'
    assert reading.set_aside == ('<think>\n{"a": 2}</think>',)


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**300), 10**300)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\b\f", exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(value=st.dictionaries(st.text(max_size=5), PLAIN, max_size=3), ascii_only=st.booleans())
def test_valid_json_comes_back_unchanged(value: dict[str, Any], ascii_only: bool) -> None:
    reading = read_json(json.dumps(value, ensure_ascii=ascii_only))
    assert (reading.value, reading.status, reading.mended) == (value, "ok", ())


@given(value=st.dictionaries(st.text(max_size=5), PLAIN, min_size=1, max_size=3))
def test_the_tolerant_parser_agrees_with_the_strict_one(value: dict[str, Any]) -> None:
    text = json.dumps(value)
    assert read_json(f"Here: {text}").value == value
    assert read_json(text[:-1]).status == "truncated"


@given(st.text(alphabet="{}[]\"',:\\ntrue1.eE-\n \ud800<think>/"))
def test_any_text_gets_a_status_and_a_reason(text: str) -> None:
    for schema in (None, SCORE, {"type": "array"}):
        reading = read_json(text, schema)
        assert reading.reason
        assert reading.status == "ok" or reading.status == "invalid" or reading.value is None


def test_reasons_are_whole_sentences() -> None:
    mended = read_json("So: {'a': 1}").reason
    assert mended == f"JSON read; mended: {QUOTES}; {AROUND}"
    assert read_json('{"a": 1}').reason == "JSON read"
    assert read_json("").reason == "no JSON object in the reply"
    assert read_json("{").reason == "the JSON was cut off before its end"


def test_escapes_are_tex_only_where_something_says_so() -> None:
    assert read_json('So: {"a": "\\nu \\theta"}').value == {"a": "\nu \theta"}
    assert read_json('{"a": "\\betas \\fra"}').value == {"a": "\betas \fra"}
    assert read_json('{"a": "\\\\beta"}').value == {"a": "\\beta"}
    assert read_json("So: {'a': 1E5, 'b': 2e1, 'c': 3.5}").value == {"a": 1e5, "b": 20.0, "c": 3.5}
    whole = read_json("So: {'a': 12}").value
    assert whole is not None
    assert isinstance(whole["a"], int)


def test_an_empty_object_counts_where_the_schema_takes_it() -> None:
    assert read_json('{} or {"a": 1}', {"type": "object"}).status == "ambiguous"
    assert read_json('{} or {"a": 1}').status == "ok"
    assert read_json("Use {} or {}.").value == {}


def test_a_long_violation_keeps_both_ends() -> None:
    (problem,) = read_json(json.dumps({"score": "x" * 400}), SCORE).problems
    message = f"'{'x' * 400}' is not of type 'integer'"
    assert problem == f"$.score: {message[:150]} ... {message[-150:]}"
    (short,) = read_json(json.dumps({"score": "x" * 270}), SCORE).problems
    assert " ... " not in short


def test_the_reader_gives_up_on_thousands_of_objects_but_not_before() -> None:
    assert read_json('{"a":1}' * 10_001).status == "invalid"
    assert read_json('{"a":1}' * 10_000).value == {"a": 1}
    assert read_json('{"a":1}' * 10_001).problems == (
        "$: too many objects, whole or broken, to tell which is meant",
    )


def test_one_backslash_that_json_forbids_makes_the_others_tex_as_well() -> None:
    reading = read_json('{"a": "\\tau", "b": "\\alpha"}')
    assert reading.value == {"a": "\\tau", "b": "\\alpha"}
