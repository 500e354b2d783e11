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


@pytest.mark.parametrize("name", ["tabular", "tabular*", "tabularx", "longtable"])
def test_each_kind_of_table_counts(name: str) -> None:
    table = f"\\begin{{{name}}}{{c}} x \\end{{{name}}}"
    assert lost("\\section{A}", f"\\section{{A}} {table} {table}") == {"tables": ("table",) * 2}


@pytest.mark.parametrize("name", ["tikzpicture", "picture"])
def test_drawn_figures_count(name: str) -> None:
    drawn = f"\\begin{{{name}}} x \\end{{{name}}}"
    assert lost(f"\\section{{A}} {drawn}", f"\\section{{A}} {drawn} {drawn}") == {
        "figures": ("(drawn)",)
    }
    assert content_loss(f"\\section{{A}} {drawn}", "x").had["figures"] == 1
    assert content_loss("\\section{A}", "x").had["figures"] == 0


def test_a_figure_shown_twice_and_now_once_is_lost() -> None:
    figure = "\\includegraphics{ a.pdf }"
    assert lost(f"\\section{{A}}{figure}", f"\\section{{A}}{figure}{figure}") == {
        "figures": ("a.pdf",)
    }


@pytest.mark.parametrize(
    ("old", "kind", "item"),
    [
        ("## A b ##\n", "sections", "a b"),
        ("###### Deep\n", "sections", "deep"),
        ("![alt](fit.png)\n", "figures", "fit.png"),
        ('![](a/fit.png "title")\n', "figures", "a/fit.png"),
        ("| :-- | --: |\n", "tables", "table"),
        ("--- | ---\n", "tables", "table"),
        ("[@key]\n", "citations", "key"),
        ("It is 41.7.\n", "numbers", "41.7"),
    ],
)
def test_what_markdown_lost_is_named(old: str, kind: str, item: str) -> None:
    assert lost("words\n", old + "words\n") == {kind: (item,)}


def test_what_is_no_table_or_heading_does_not_count() -> None:
    old = "#no heading\n####### seven\n---\n- a | b\n"
    assert {k: v for k, v in content_loss(old, "").had.items() if v} == {}


def test_the_draft_stands_in_the_inputs_the_expected_or_the_material() -> None:
    for place in ("inputs", "expected", "material"):
        case = Case("c", **{place: {"draft": "It is 41.7."}})
        assert ContentKept()(case, Reply("It is 41.7.")).value == 1.0
        assert ContentKept()(case, Reply("It is gone, so.")).value == 0.0
    both = Case("c", inputs={"draft": "41.7"}, material={"draft": "88.8"})
    assert ContentKept()(both, Reply("41.7")).value == 1.0


def test_the_reason_counts_what_is_gone_and_the_findings_name_it() -> None:
    old = "".join(f"{n}.5 and " for n in range(10, 35))
    case = Case("c", inputs={"draft": old})
    score = ContentKept()(case, Reply("words and " * 25))
    assert score.reason == "25 of 25 numbers gone"
    assert len(score.findings) == 20
    assert score.findings[0].message.startswith("gone from numbers: ")
    assert len(score.details["numbers"]) == 25
    kept = ContentKept()(case, Reply(old))
    assert (kept.reason, kept.findings) == ("everything of the old draft is still there", ())
    assert kept.details["length_ratio"] == 1.0


def test_the_length_counts_from_the_bound_down() -> None:
    case = Case("c", inputs={"draft": "word " * 100})
    assert ContentKept()(case, Reply("word " * 50)).value == 1.0
    assert ContentKept()(case, Reply("word " * 25)).value == pytest.approx(0.5)
    assert ContentKept(min_length=1.0)(case, Reply("word " * 25)).value == pytest.approx(0.25)
    assert "length fell to 25%" in ContentKept()(case, Reply("word " * 25)).reason
    assert content_loss("", "words").length_ratio == 1.0


def test_drafts_that_cannot_be_read_score_0_and_say_so() -> None:
    deep = "\\section{A}" + "{" * 99
    for old, new in ((deep, "\\section{A}"), ("\\section{A}", deep)):
        score = ContentKept()(Case("c", inputs={"draft": old}), Reply(new))
        assert score.value == 0.0
        assert score.reason.startswith("the drafts could not be compared: nested too deeply")


def test_a_reply_without_an_answer_scores_0_under_its_own_reason() -> None:
    score = ContentKept()(Case("c", inputs={"draft": OLD}), Reply(""))
    assert (score.value, score.reason) == (0.0, "no answer: the reply is empty")


def test_unknown_kinds_and_missing_drafts_are_named() -> None:
    with pytest.raises(ScorerError) as unknown:
        ContentKept(ignore=("words",))
    assert str(unknown.value) == (
        "content_kept: ignore has ['words']; "
        "it takes sections, numbers, citations, figures, tables."
    )
    with pytest.raises(ScorerError, match=r"or name another one in the criterion's 'old'\.$"):
        ContentKept()(Case("c"), Reply("x"))
