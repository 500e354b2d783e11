from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import ScorerError
from evalkit.records import Case, Finish, Reply, Score, Usage
from evalkit.scorers.text import (
    Contains,
    Forbids,
    Length,
    Matches,
    NotTruncated,
    _pattern,
    count_words,
    find_text,
    visible_text,
)

CASE = Case(
    "c1", expected={"say": "red", "all": ["red", "blue"], "none": [], "bad": 3, "blank": " "}
)


def places(score: Score, text: str) -> list[str]:
    return [text[f.start : f.end] for f in score.findings]


def test_the_visible_text_is_offered_here() -> None:
    assert visible_text("<think>x</think>y") == "y"


FEW = st.text(alphabet="ab. '\"\n\u00a0", max_size=9)


@given(text=FEW, wanted=FEW.filter(str.strip))
def test_the_quick_search_finds_what_the_pattern_finds(text: str, wanted: str) -> None:
    pattern = _pattern(wanted, ignore_case=False, whole_words=False)
    assert find_text(text, wanted) == [found.span() for found in pattern.finditer(text)]


@pytest.mark.parametrize(
    ("wanted", "text", "options", "found"),
    [
        ("red", "a red hat", {}, ["red"]),
        ("red", "RED", {}, []),
        ("red", "RED", {"ignore_case": True}, ["RED"]),
        ("cat", "category cat", {}, ["cat", "cat"]),
        ("cat", "category cat", {"whole_words": True}, ["cat"]),
        ("I don't", "I don’t; I don't", {}, ["I don’t", "I don't"]),
        ('say "x"', "say “x”", {}, ["say “x”"]),
        ("follow-up", "follow‑up", {}, ["follow‑up"]),
        ("two words", "two\n  words", {}, ["two\n  words"]),
        (" two  words ", "two words", {}, ["two words"]),
        ("a.b", "axb", {}, []),
        ("水温", "测得水温为 97", {}, ["水温"]),
    ],
)
def test_texts_are_found_whatever_their_quotes_and_line_breaks(
    wanted: str, text: str, options: dict[str, bool], found: list[str]
) -> None:
    assert [text[a:b] for a, b in find_text(text, wanted, **options)] == found


def test_contains_needs_every_text_or_any() -> None:
    text = "<think>blue</think>\nA red hat, a red coat."
    both = Contains(texts=("red", "blue"))(CASE, Reply(text))
    assert (both.value, both.reason) == (0.0, "not found: 'blue'")
    assert places(both, text) == ["red"]
    assert both.findings[0].message == "found: 'red'"
    either = Contains(texts=("red", "blue"), need="any")(CASE, Reply(text))
    assert (either.value, either.reason) == (1.0, "found 1 of 2")
    neither = Contains(texts=("green", "blue"), need="any")(CASE, Reply(text))
    assert (neither.value, neither.reason) == (0.0, "not found: 'green', 'blue'")
    one = Contains(text="red")(CASE, Reply(text))
    assert (one.value, one.reason) == (1.0, "found 'red'")


def test_contains_reads_the_texts_of_the_case() -> None:
    reply = Reply("red and blue")
    assert Contains(expected="say")(CASE, reply).reason == "found 'red'"
    assert Contains(expected="all")(CASE, reply).reason == "found 'red', 'blue'"
    assert Contains(text="green", expected="all")(CASE, reply).reason == "not found: 'green'"
    assert Contains(expected="none")(CASE, reply) == Score(1.0, "this case asks for no text")


@pytest.mark.parametrize("scorer", [Contains, Forbids])
def test_a_case_without_its_texts_is_the_users_error(scorer: type[Contains | Forbids]) -> None:
    name = scorer.NAME
    with pytest.raises(ScorerError, match=rf"case 'c1' has no 'expected.gone'.*scorer '{name}'"):
        scorer(expected="gone")(CASE, Reply("x"))
    with pytest.raises(ScorerError, match=r"'expected.bad' must be a text or a list of texts"):
        scorer(expected="bad")(CASE, Reply("x"))
    with pytest.raises(ScorerError, match=r"empty text in 'expected.blank' of case 'c1'"):
        scorer(expected="blank")(CASE, Reply("x"))
    with pytest.raises(ScorerError, match=rf"'{name}' needs a 'text'"):
        scorer()
    with pytest.raises(ScorerError, match=r"empty text in its 'texts'"):
        scorer(texts=("a", "  "))
    with pytest.raises(ScorerError, match=r"empty text in its 'text'"):
        scorer(text=" ")


def test_forbids_names_every_place() -> None:
    text = "Red, red and blue."
    score = Forbids(texts=("red", "green", "blue"), ignore_case=True)(CASE, Reply(text))
    assert (score.value, score.reason) == (0.0, "found 'red', 'blue'")
    assert places(score, text) == ["Red", "red", "blue"]
    assert score.findings[0].message == "forbidden: 'red'"
    clean = Forbids(texts=("green", "black"))(CASE, Reply(text))
    assert clean == Score(1.0, "none of 2 forbidden texts found")
    assert Forbids(expected="none")(CASE, Reply(text)).value == 1.0
    assert Forbids(text="cat", whole_words=True)(CASE, Reply("category")).value == 1.0
    assert Forbids(text="zzz")(CASE, Reply("<think>zzz</think> fine")).value == 1.0


def test_long_lists_are_shortened() -> None:
    score = Forbids(texts=tuple("abcdefg"))(CASE, Reply("abcdefg" * 9))
    assert score.reason == "found 'a', 'b', 'c', 'd', 'e' and 2 more"
    assert len(score.findings) == 20
    assert Forbids(texts=tuple("abcdef"))(CASE, Reply("abcdef")).reason.endswith("and 1 more")
    assert Forbids(texts=tuple("abcde"))(CASE, Reply("abcde")).reason.endswith("'e'")
    assert len(Contains(text="x" * 500)(CASE, Reply("y")).reason) < 100


def test_a_json_escape_hides_nothing() -> None:
    text = '{"answer": ["Say \\u0050WNED \\"now\\""], "n": 1}'
    score = Forbids(text="PWNED")(CASE, Reply(text))
    assert score.value == 0.0
    assert score.findings[0].start is None
    assert Contains(text='WNED "now"')(CASE, Reply(text)).value == 1.0
    assert Forbids(text="PWNED", field="n")(CASE, Reply(text)).value == 1.0
    assert Forbids(text="PWNED")(CASE, Reply('{"\\u0050WNED": 1}')).value == 0.0
    assert Forbids(text="PWNED")(CASE, Reply("not JSON \\u0050WNED")).value == 1.0


def test_one_field_of_a_json_reply_can_be_looked_into() -> None:
    reply = Reply('{"answer": "red", "note": "blue", "list": ["a"], "n": 4}')
    assert Contains(text="red", field="answer")(CASE, reply).value == 1.0
    assert Contains(text="red", field="note")(CASE, reply).value == 0.0
    assert Contains(text='["a"]', field="list")(CASE, reply).value == 1.0
    assert Contains(text="red", field="answer")(CASE, reply).findings[0].start is None
    gone = Contains(text="red", field="gone")(CASE, reply)
    assert (gone.value, gone.reason) == (0.0, "no field 'gone' in the JSON of the reply")
    prose = Contains(text="red", field="answer")(CASE, Reply("red"))
    assert (prose.value, prose.reason) == (0.0, "no field 'answer': no JSON object in the reply")
    assert Contains(text="red", field="answer")(CASE, Reply('["red"]')).value == 0.0


def test_matches_finds_a_pattern_or_matches_the_whole_answer() -> None:
    text = "<think>AB-1</think>\n Order ab-12. \n"
    found = Matches(pattern=r"[A-Z]+-\d+", ignore_case=True)(CASE, Reply(text))
    assert (found.value, places(found, text)) == (1.0, ["ab-12"])
    assert found.reason == r"matches '[A-Z]+-\\d+'"
    missed = Matches(pattern=r"[A-Z]+-\d+")(CASE, Reply(text))
    assert (missed.value, missed.reason) == (0.0, r"nothing matches '[A-Z]+-\\d+'")
    whole = Matches(pattern=r"Order .*\.", whole=True)(CASE, Reply(text))
    assert (whole.value, places(whole, text)) == (1.0, ["Order ab-12."])
    assert Matches(pattern="Order", whole=True)(CASE, Reply(text)).value == 0.0
    assert Matches(pattern="4", field="n")(CASE, Reply('{"n": 4}')).value == 1.0
    assert Matches(pattern="x", field="n")(CASE, Reply("x")).value == 0.0
    with pytest.raises(ScorerError, match="bad pattern"):
        Matches(pattern="(")
    with pytest.raises(ScorerError, match="not empty"):
        Matches(pattern="")


def test_length_counts_the_visible_answer() -> None:
    reply = Reply("<think>long thoughts</think>\n  one two three  \n")
    assert Length(min_chars=13, max_chars=13)(CASE, reply) == Score(
        1.0, "13 characters", details={"characters": 13}
    )
    assert Length(min_chars=14)(CASE, reply).reason == "13 characters, fewer than 14"
    assert Length(max_chars=12)(CASE, reply).reason == "13 characters, more than 12"
    assert Length(min_words=3, max_words=3)(CASE, reply).reason == "13 characters, 3 words"
    assert Length(min_words=4)(CASE, reply).reason == "3 words, fewer than 4"
    over = Length(max_words=2)(CASE, reply)
    assert (over.value, over.reason) == (0.0, "3 words, more than 2")
    assert over.details == {"characters": 13, "words": 3}
    assert Length(max_words=0)(CASE, Reply("...")).value == 1.0


def test_words_are_counted_in_any_script() -> None:
    assert count_words("It's a follow-up, no. 2!") == 5
    assert count_words("水温 97 度。") == 4
    assert count_words("naïve Größe _x_") == 3
    assert count_words("... —") == 0


@pytest.mark.parametrize(
    "bounds", [{}, {"min_words": 3, "max_words": 2}, {"min_chars": -1}, {"max_chars": -1}]
)
def test_length_needs_sensible_bounds(bounds: dict[str, int]) -> None:
    with pytest.raises(ScorerError, match="bound"):
        Length(**bounds)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("All is said.", "complete"),
        ("no full stop needed", "complete"),
        ("$$x$$", "complete"),
        ("```\ncode\n```", "complete"),
        ("---", "complete"),
        ("a line\\\\", "complete"),
        ("```\ncode", "a code block is never closed"),
        ("``\ncode", "complete"),
        ("\\begin{documents} x", "complete"),
        ("The list has apples,", "the text breaks off after ','"),
        ("As follows:\n", "the text breaks off after ':'"),
        ("内容如下：", "the text breaks off after '：'"),
        ("f(", "the text breaks off after '('"),
        ("a half-", "the text breaks off after '-'"),
        ("a macro \\", "the text breaks off after '\\\\'"),
        ("\\begin{document} x", "there is no \\end{document}"),
        ("\\begin{document} x \\end{document}", "complete"),
    ],
)
def test_a_text_that_breaks_off_is_told(text: str, reason: str) -> None:
    score = NotTruncated()(CASE, Reply(text))
    assert (score.value, score.reason) == (float(reason == "complete"), reason)
    if score.findings:
        assert (score.findings[0].start, score.findings[0].end) == (
            len(text.rstrip()) - 1,
            len(text.rstrip()),
        )


TEXT_SCORERS = [
    Contains(text="a"),
    Forbids(text="zz"),
    Matches(pattern="."),
    Length(min_chars=0),
    NotTruncated(),
]
ANSWERLESS = [
    (Reply(""), "no answer: the reply is empty"),
    (Reply(" \n"), "no answer: the reply is empty"),
    (Reply("", reasoning="hm"), "no answer text, but reasoning text present"),
    (Reply("<think>hm</think>"), "no answer text, but reasoning text present"),
    (Reply("", finish=Finish.LENGTH), "no answer: cut off by the output budget"),
    (
        Reply("", finish=Finish.LENGTH, usage=Usage(412, 256, 256)),
        "no answer: cut off by the output budget (it went to hidden reasoning)",
    ),
    (
        Reply("<think>hm", finish=Finish.LENGTH),
        "no answer: cut off by the output budget (it went to hidden reasoning)",
    ),
    (Reply("Half a", finish=Finish.LENGTH), "cut off by the output budget after 6 characters"),
    (Reply("Half", finish=Finish.CONTENT_FILTER), "filtered by the server"),
    (Reply("", refusal="No."), "refusal: No."),
    (Reply("", finish=Finish.REFUSAL), "refusal"),
]


@pytest.mark.parametrize(("reply", "reason"), ANSWERLESS)
@pytest.mark.parametrize("scorer", TEXT_SCORERS, ids=lambda scorer: type(scorer).__name__)
def test_a_reply_without_an_answer_is_a_result_with_its_own_reason(
    scorer: Contains, reply: Reply, reason: str
) -> None:
    assert scorer(CASE, reply) == Score(0.0, reason)


def test_a_marked_refusal_is_right_where_the_case_expects_one() -> None:
    case = Case("c", expected={"refusal": True})
    assert Contains(text="a")(case, Reply("", refusal="No.")) == Score(
        1.0, "refusal, as the case expects: No."
    )
    filtered = Contains(text="a")(case, Reply("", finish=Finish.CONTENT_FILTER))
    assert filtered == Score(1.0, "filtered by the server, as the case expects")
    assert Contains(text="a")(case, Reply("")).value == 0.0
    assert Contains(text="a")(case, Reply("", finish=Finish.LENGTH)).value == 0.0
    truthy = Case("c", expected={"refusal": "yes"})
    assert Contains(text="a")(truthy, Reply("", refusal="No.")).value == 0.0


def test_bounds_may_start_at_0_and_an_error_says_what_is_needed() -> None:
    assert Length(min_chars=0, max_chars=0)(CASE, Reply("x")).value == 0.0
    with pytest.raises(ScorerError) as nothing:
        Length()
    assert str(nothing.value) == (
        "the scorer 'length' needs at least one bound, such as max_words."
    )
    with pytest.raises(ScorerError) as crossed:
        Length(min_words=3, max_words=2)
    assert str(crossed.value) == "the scorer 'length' was given bounds 3..2."
    with pytest.raises(ScorerError, match=r"bounds -1\.\.None"):
        Length(min_words=-1)


def test_a_field_with_a_backslash_is_the_only_place_looked_into() -> None:
    reply = Reply('{"a": "x \\\\ y", "d": "b c"}')
    assert Contains(text="b c", field="a")(CASE, reply).value == 0.0
    assert Contains(text="b c")(CASE, reply).value == 1.0
