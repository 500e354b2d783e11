"""Whatever a model wrote stays text: in HTML, in tables, in spreadsheets, in the terminal."""

from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st

from evalkit.records import Finding
from evalkit.report.safe import (
    block_html,
    csv_cell,
    defang,
    esc,
    json_island,
    marked_html,
    terminal_text,
)
from evalkit.report.worddiff import diff_html, diff_pieces, line_changes

ANY = st.text(st.characters(exclude_categories=()))


@given(text=ANY)
def test_escaped_text_holds_no_markup(text: str) -> None:
    assert not re.search(r"[<>\"']|&(?!amp;|lt;|gt;|quot;|#x27;)", esc(text))


@given(text=ANY)
def test_a_block_adds_only_its_own_tags(text: str) -> None:
    assert re.findall(r"<[^>]*>", block_html(text)) == ['<pre class="ek-block">', "</pre>"]


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
    assert page == (
        '<pre class="ek-block">a <mark title="says &quot;x&quot;">&lt;b&gt;</mark> c</pre>'
    )


def test_addresses_in_tables_are_not_fetched_and_formulas_do_not_run() -> None:
    assert "://" not in defang("see http://x.test/a.png")
    assert csv_cell("=HYPERLINK(1)").startswith("'=")
    assert csv_cell("  @x").startswith("'")
    assert csv_cell("-3.5") == "-3.5"
    assert "\t" not in csv_cell("a\tb")


def test_a_terminal_line_shows_controls_and_keeps_its_width() -> None:
    assert terminal_text("\x1b[31mred\nnext") == "⟨U+001B⟩[31mred ⏎ next"
    assert terminal_text("日本語のテキスト", 9) == "日本語の…"
    assert len(terminal_text("x" * 200, 40)) == 40


@given(text=ANY)
def test_a_json_island_cannot_close_its_script(text: str) -> None:
    assert "<" not in json_island({"t": text})


def test_changed_lines_are_counted() -> None:
    assert line_changes("a\nb\nc", "a\nx\ny\nc") == (2, 1)


def test_escaping_keeps_the_text() -> None:
    text = "<a href='x'>&amp;</a>"
    assert html.unescape(esc(text)) == text
