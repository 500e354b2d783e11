"""Whatever a model wrote stays text: in HTML, in tables, in spreadsheets, in the terminal."""

from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st

from evalkit.records import Finding
from evalkit.report.safe import (
    block_html,
    defang,
    esc,
    marked_html,
    terminal_text,
    visible_controls,
)
from evalkit.report.worddiff import diff_html, diff_pieces, line_changes

PRE = '<pre class="ek-block" dir="auto">'
ANY = st.text(st.characters(exclude_categories=()))


@given(text=ANY)
def test_escaped_text_holds_no_markup(text: str) -> None:
    assert not re.search(r"[<>\"']|&(?!amp;|lt;|gt;|quot;|#x27;)", esc(text))


@given(text=ANY)
def test_a_block_adds_only_its_own_tags(text: str) -> None:
    assert re.findall(r"<[^>]*>", block_html(text)) == [PRE, "</pre>"]


@given(a=ANY, b=ANY)
def test_a_word_diff_gives_both_texts_back(a: str, b: str) -> None:
    pieces = diff_pieces(a, b)
    assert "".join(p.text for p in pieces if p.side != "b") == a
    assert "".join(p.text for p in pieces if p.side != "a") == b


def test_a_blind_diff_marks_both_sides_alike() -> None:
    left, right = diff_html("the old word", "the new word", blind=True)
    assert "<mark>old</mark>" in left
    assert "<mark>new</mark>" in right
    assert "<del>" not in left + right
    assert "<ins>" not in left + right


def test_findings_are_marked_where_they_stand_and_escaped() -> None:
    page = marked_html("a <b> c", [Finding('says "x"', 2, 5), Finding("overlaps", 3, 4)])
    assert page == (f'{PRE}a <mark title="says &quot;x&quot;">&lt;b&gt;</mark> c</pre>')


def test_letters_that_join_and_emoji_stay_whole_and_hidden_characters_show() -> None:
    for text in (
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",  # a family
        "\u2764\ufe0f\u200d\U0001f525",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian, with its non-joiner
        "\u0915\u094d\u200d\u0937",
        "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",  # Scotland
        "\u4e2d\u6587 \u05e2\u05d1\u05e8\u05d9\u05ea",
    ):
        assert visible_controls(text) == text
    assert visible_controls("a\u200db") == "a⟨U+200D⟩b"
    assert visible_controls("\U000e0049gnore") == "⟨U+E0049⟩gnore"
    assert visible_controls("\u202egnp.exe") == "⟨U+202E⟩gnp.exe"


def test_a_block_keeps_the_line_break_that_its_text_begins_with() -> None:
    assert block_html("\nx\ny") == f"{PRE}&#10;&#10;x&#10;y</pre>"


def test_addresses_in_tables_are_not_fetched() -> None:
    assert "://" not in defang("see http://x.test/a.png")
    assert "data:image" not in defang("data:image/png;base64,AAAA")


def test_a_terminal_line_shows_controls_and_keeps_its_width() -> None:
    assert terminal_text("\x1b[31mred\nnext") == "⟨U+001B⟩[31mred ⏎ next"
    assert terminal_text("日本語のテキスト", 9) == "日本語の…"
    assert len(terminal_text("x" * 200, 40)) == 40


def test_changed_lines_are_counted() -> None:
    assert line_changes("a\nb\nc", "a\nx\ny\nc") == (2, 1)


def test_escaping_keeps_the_text() -> None:
    text = "<a href='x'>&amp;</a>"
    assert html.unescape(esc(text)) == text
