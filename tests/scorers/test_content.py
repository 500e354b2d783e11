"""What a new draft lost of the old one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tex_cases import HOSTILE

from evalkit.errors import ScorerError
from evalkit.records import Case, Reply
from evalkit.scorers.content import KINDS, ContentKept, content_loss

OLD = r"""\section{Data}
The mass is 41.7\,g and the length 12.5\,cm \cite{a}, see \cite{b}.
\begin{tabular}{c} 3.25 \\ \end{tabular}
\includegraphics[width=5cm]{fit.pdf}
\section{Result}
We find 9.81.
"""
MARKDOWN = (
    "# Data\n\nThe mass is 41.7 g [@a].\n\n| a | b |\n|---|---|\n| 1.5 | 2.5 |\n\n![fit](fit.png)\n"
)


def lost(new: str, old: str = OLD) -> dict[str, tuple[str, ...]]:
    return {kind: items for kind, items in content_loss(old, new).lost.items() if items}


def test_an_unchanged_draft_lost_nothing() -> None:
    loss = content_loss(OLD, OLD)
    assert (lost(OLD), loss.length_ratio) == ({}, 1.0)
    assert dict(loss.had) == {
        "sections": 2,
        "numbers": 4,
        "citations": 2,
        "figures": 1,
        "tables": 1,
    }


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("\\section{Result}\n", "", {"sections": ("result",)}),
        ("41.7", "41.8", {"numbers": ("41.7",)}),
        ("9.81", "-9.81", {"numbers": ("9.81",)}),
        ("\\cite{b}", "others", {"citations": ("b",)}),
        ("\\includegraphics[width=5cm]{fit.pdf}", "", {"figures": ("fit.pdf",)}),
        ("\\begin{tabular}{c} 3.25 \\\\ \\end{tabular}", "3.25", {"tables": ("table",)}),
        ("41.7\\,g", "\\SI{41.7}{g}", {}),
        ("\\section{Data}", "\\section{DATA}", {}),
        ("\\cite{b}", "\\citep[p.~3]{b}", {}),
    ],
)
def test_what_disappeared_is_named(old: str, new: str, expected: dict) -> None:
    assert old in OLD
    assert lost(OLD.replace(old, new)) == expected


def test_what_stands_in_a_comment_is_gone() -> None:
    assert "sections" in lost(OLD.replace("\\section{Result}", "% \\section{Result}"))


def test_markdown_has_sections_figures_and_tables_too() -> None:
    loss = content_loss(MARKDOWN, "The mass is 41.7 g.")
    assert {kind: len(loss.lost[kind]) for kind in KINDS} == {
        "sections": 1,
        "numbers": 2,
        "citations": 1,
        "figures": 1,
        "tables": 1,
    }


def test_the_scorer_gives_the_smallest_share_kept() -> None:
    case = Case("c", inputs={"draft": OLD})
    assert ContentKept()(case, Reply(OLD)).value == 1.0
    half = ContentKept()(case, Reply(OLD.replace("\\cite{b}", "others")))
    assert half.value == 0.5
    assert "1 of 2 citations gone" in half.reason
    assert (
        ContentKept(ignore=("citations",))(case, Reply(OLD.replace("\\cite{b}", "others"))).value
        == 1.0
    )


def test_a_collapsed_length_is_a_loss_of_its_own() -> None:
    case = Case("c", expected={"old": "words and more words " * 20})
    score = ContentKept(old="old")(case, Reply("words"))
    assert score.value is not None
    assert score.value < 0.05
    assert "length fell to 1%" in score.reason
    assert ContentKept(old="old", min_length=0.0)(case, Reply("words")).value == 1.0


def test_a_missing_draft_is_a_clear_error() -> None:
    with pytest.raises(ScorerError, match="no old draft 'draft'"):
        ContentKept()(Case("c"), Reply("x"))
    with pytest.raises(ScorerError, match="ignore has"):
        ContentKept(ignore=("words",))


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_drafts_get_a_score_with_a_reason(text: str) -> None:
    score = ContentKept()(Case("c", inputs={"draft": text}), Reply(text))
    assert score.value is not None
    assert score.reason


@given(st.text(max_size=100), st.text(max_size=100))
def test_any_two_drafts_get_a_score_with_a_reason(old: str, new: str) -> None:
    score = ContentKept()(Case("c", inputs={"draft": old}), Reply(new))
    assert 0.0 <= (score.value or 0.0) <= 1.0
    assert score.reason


@given(st.text(max_size=100))
def test_no_draft_loses_anything_against_itself(text: str) -> None:
    assert not any(content_loss(text, text).lost.values())
