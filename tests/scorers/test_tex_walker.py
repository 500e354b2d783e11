"""The walker stays linear: what is left open is read again a few times at most."""

from __future__ import annotations

import pytest

from evalkit.scorers import tex_walker
from evalkit.scorers.citations import citations_in
from evalkit.scorers.latex import parse
from evalkit.scorers.tex_walker import BeyondRepair, walker

SOUND = (
    "\\section{Series} The loss was \\num{1.2e-3} at $-3.5$\\,K \\cite[p.~4]{lake2019}. % comment\n"
    "\\begin{tabular}{ll} a & 9{,}500 \\\\ b & \\SI{3}{mm} \\end{tabular} \\verb|x| \\url{a/b}\n\n"
)
BODY = "text \\textbf{bold} and \\cite{a}. " * 150


def spent(text: str) -> int:
    """Characters that the walker read, those read again counted again."""
    walk = walker(text)
    before = walk.left
    walk.get_latex_nodes()
    return before - walk.left


def test_a_sound_text_is_read_less_than_twice() -> None:
    assert len(SOUND) * 100 <= spent(SOUND * 100) < 2 * len(SOUND) * 100


def test_words_are_read_as_wholes() -> None:
    walk = walker("Some words, 12.5 of them (or so). \\emph{ab}c")
    token = walk.get_token(0, include_brace_chars=None)
    assert (token.tok, token.arg, token.len) == ("char", "Some words, 12.5 of them (or so", 31)
    assert walk.get_token(0).arg == "S"  # an argument without braces is one character
    assert parse("\\frac12 \\textbf ab").visible == "1\x1f2 ab"


@pytest.mark.parametrize("left_open", ["\\cite[p. 3 ", "\\frac{a", "\\sqrt[", "\\section*[a "])
def test_after_a_few_open_arguments_the_rest_is_read_all_the_same(left_open: str) -> None:
    tex = parse(left_open * 2 + BODY)
    assert not tex.problem
    assert tex.visible.count("bold") == 150
    assert len(citations_in(left_open * 2 + BODY)) == 150
    assert [at for at, _ in tex.faults if at < len(left_open)]


@pytest.mark.parametrize(
    ("left_open", "why"),
    [
        ("\\cite[", 'End of input while parsing arguments of macro "cite"'),
        ("\\frac{a", 'End of input while parsing arguments of macro "frac"'),
        ("\\begin{verbatim}", "\\end{verbatim} is missing"),
        ("\\lstinline[", "an argument does not end"),
        ("\\url{", "an argument does not end"),
    ],
)
@pytest.mark.parametrize("times", [9, 20, 40])
def test_a_text_with_too_much_left_open_is_not_read_again_and_again(
    left_open: str, why: str, times: int
) -> None:
    text = "A line.\n" + left_open * times + BODY
    tex = parse(text)
    assert tex.problem == f"too much is left open to be read as TeX; first, line 2: {why}"
    assert tex.macros == ()


def test_the_work_is_bounded_by_the_length_of_the_text() -> None:
    walk = walker("\\cite[" * 40 + BODY)
    allowed = walk.left
    assert allowed <= 4 * len(walk.s) + 10_000
    with pytest.raises(BeyondRepair):
        walk.get_latex_nodes()
    assert -len(walk.s) <= walk.left < 0


def test_too_much_work_without_a_fault_is_a_sentence_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tex_walker, "_PER_CHARACTER", 1)
    monkeypatch.setattr(tex_walker, "_AT_LEAST", 0)
    assert parse(SOUND * 3).problem.endswith("line 1: this would be read again and again")


def test_each_open_argument_is_one_fault() -> None:
    assert len([why for _, why in parse("\\cite[" * 4 + "x").faults if "cite" in why]) == 4
