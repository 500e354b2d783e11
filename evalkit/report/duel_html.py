"""Pieces of HTML of a comparison: the line on top, the headline, and one pair as it is read."""

from __future__ import annotations

from collections.abc import Sequence

from evalkit.counting import counted
from evalkit.judges import PairVerdict
from evalkit.judges.contest import Match
from evalkit.judges.panel import Panel
from evalkit.records import Row, Verdict
from evalkit.report.duel_text import (
    HEAD,
    LEGEND,
    against_lines,
    flips_line,
    headline,
    left_out_lines,
    length_line,
    name_of,
    panel_lines,
    rows_of,
    trust_lines,
)
from evalkit.report.safe import block_html, esc, table_html
from evalkit.report.worddiff import diff_html
from evalkit.runs.duel import Duel, DuelPlan, Key
from evalkit.runs.duel_labels import Laid
from evalkit.runs.duel_standing import Standing, scorers_prefer

__all__ = ["STYLE", "judges_html", "pair_html", "plan_line", "verdict_html"]

STYLE = """<style>
.ek-drafts{display:grid;grid-template-columns:1fr 1fr;gap:1rem;align-items:stretch}
.ek-drafts>*{min-width:0;display:flex;flex-direction:column}
.ek-drafts .ek-block{flex:1}
.ek-drafts mark,.ek-drafts .ek-block mark{background:#e3e8f4;color:#111;
 border-bottom:2px solid #7a8bb5;text-decoration:none}
.ek-orders{display:grid;grid-template-columns:1fr 1fr;gap:1rem}.ek-orders>*{min-width:0}
.ek-said{font-size:.95rem;margin:.2rem 0;color:#1a1a1a}
.ek-said b{color:#111}
.ek-side{font-weight:600;font-size:.95rem}
.ek-lines{list-style:disc;margin:.3rem 0 .3rem 1.3rem;padding:0;
 font-size:.92rem;line-height:1.5;color:#333}
.ek-result{font-size:1rem;margin:.5rem 0;padding:.4rem .6rem;background:#f1f1ee;border-radius:4px}
@media (max-width:900px){.ek-drafts,.ek-orders{grid-template-columns:1fr}}
</style>"""

REASONS = {
    "agree": "both orders agree",
    "tie_both": "a tie in both orders",
    "tie_flip": "the winner changes with the order: a tie (flip)",
    "tie_half": "one order names a winner, the other a tie: a tie (half)",
    "invalid": "an order without a readable verdict: no result",
    "one_order": "one order only: exploratory",
    "identical": "the same text: a tie, no judge was asked",
    "both_empty": "both drafts are empty: a tie, no judge was asked",
    "empty": "one draft is empty: it loses, no judge was asked",
}


def plan_line(plan: DuelPlan) -> str:
    """One line at the top: both sides, how many pairs, who judges."""
    judges = ", ".join(f"{esc(j.name)} <code>{esc(j.hash[:6])}</code>" for j in plan.judges)
    how = ' <span class="ek-dirty">one order only</span>' if plan.how.one_order else ""
    models = dict.fromkeys(side.model or "drafts from files" for side in plan.sides)
    parts = [
        *(f"<b>{'AB'[i]}</b>: {esc(side.name)}" for i, side in enumerate(plan.sides)),
        esc(plan.suite.name),
        esc(" / ".join(models)),
        f"{counted(len(plan.cases), 'case')} x {plan.repeats}",
        f"judge {judges}{how}",
    ]
    return f'<div class="ek-pins">{" · ".join(parts)}</div>'


def verdict_html(
    duel: Duel,
    found: Sequence[Standing],
    together: Panel | None = None,
    *,
    blind: bool = False,
) -> str:
    """The answer in words, and what to know before believing it.

    Args:
        duel: The comparison.
        found: Its standings.
        together: The panel, where several judges were asked.
        blind: Name no case: somebody is about to say what is better in it.
    """
    repeats = duel.plan.repeats
    parts: list[str] = []
    for standing in found[: len(duel.asked)]:
        mark = "no licence: exploratory" if standing.exploratory else "licensed for pairs"
        lines = [*trust_lines(standing)[1:], length_line(standing)]
        if not blind and not duel.plan.how.one_order:
            lines.append(f"flipped with the order: {flips_line(standing, repeats)}")
        lines += [] if blind else against_lines(standing, repeats)
        parts.append(
            f'<div class="ek-verdict"><b>{esc(standing.judge.name)}</b>: '
            f'{esc(headline(standing))} <span class="ek-quiet">{esc(mark)}</span></div>'
            f"{_list(lines)}"
        )
    if together and not blind:
        parts.append(_list(panel_lines(together)))
    if duel.stopped:
        parts.append(f'<div class="ek-dirty">ended early: {esc(duel.stopped)}</div>')
    return "".join(parts)


def judges_html(duel: Duel, found: Sequence[Standing]) -> str:
    """Every judge beside the trivial ones, and what was left out."""
    return (
        table_html(HEAD, rows_of(found))
        + f'<div class="ek-note">{esc(LEGEND)}</div>'
        + _list(left_out_lines(duel))
    )


def pair_html(
    duel: Duel,
    key: Key,
    laid: Laid,
    *,
    place: str = "",
    given: str = "",
    people: str = "",
) -> str:
    """One pair as it is read.

    Args:
        duel: The comparison.
        key: Which pair.
        laid: How it lies on the desk; in the blind view nothing but the drafts is shown.
        place: "3 of 24".
        given: The reader's own verdict: "a", "b", "tie" or "".
        people: What all people said.
    """
    match, row_a, row_b = duel.pair(key)
    words = _words(laid)
    head = f"{name_of(key, duel.plan.repeats)} · {match.case.stratum}"
    parts = [
        f'<div class="ek-title">pair {esc(place)} · case {esc(head)}</div>',
        _question(match),
        _drafts(duel, laid),
    ]
    if laid.view == "blind":
        return "".join(parts)
    if given:
        parts.append(
            f'<div class="ek-result">you: <b>{esc(words[given])}</b> · '
            + " · ".join(
                f"{esc(j.name)}: <b>{esc(_winner(duel.verdict(j.name, key), words))}</b>"
                for j in duel.asked
            )
            + "</div>"
        )
    parts += [_judge(j.name, duel.verdict(j.name, key), words) for j in duel.asked]
    parts.append(_trivial(duel, key, words))
    parts.append(_scorers(row_a, row_b, laid, words))
    if people:
        said = words.get(people, "people disagree")
        parts.append(f'<div class="ek-said">people: <b>{esc(said)}</b></div>')
    return "".join(parts)


def _question(match: Match) -> str:
    parts = [block_html(value, name) for name, value in match.case.inputs.items() if value]
    pages = "\n\n".join(f"[{page.id}]\n{page.text}" for page in match.case.context)
    if pages:
        parts.append(f"<details><summary>pages</summary>{block_html(pages)}</details>")
    return "".join(parts)


def _drafts(duel: Duel, laid: Laid) -> str:
    shown = diff_html(*laid.texts, blind=True)
    if laid.view == "open":
        titles = [f"{'AB'[i]} · {side.name}" for i, side in enumerate(duel.plan.sides)]
    else:
        titles = ["left", "right"]
    if laid.texts[0] == laid.texts[1]:
        titles = [f"{title} (the same text)" for title in titles]
    return '<div class="ek-drafts">{}</div>'.format(
        "".join(
            f'<div><div class="ek-side">{esc(title)} <span class="ek-note">'
            f"{counted(len(text), 'character')}</span></div>{block}</div>"
            for title, text, block in zip(titles, laid.texts, shown, strict=True)
        )
    )


def _judge(name: str, pair: PairVerdict, words: dict[str, str]) -> str:
    result = f"{_winner(pair, words)} · {REASONS[pair.reason]}"
    body = ""
    if pair.verdicts:
        orders = "".join(
            _order(order, verdict, words)
            for order, verdict in zip(pair.orders, pair.verdicts, strict=True)
        )
        body = f'<div class="ek-orders">{orders}</div>'
    return (
        f'<div class="ek-title">judge {esc(name)}</div>{body}'
        f'<div class="ek-result">⇒ <b>{esc(result)}</b></div>'
    )


def _order(order: str, verdict: Verdict, words: dict[str, str]) -> str:
    first, second = words[order[0]], words[order[1]]
    said = {"first": first, "second": second, "tie": "tie"}.get(verdict.label or "", "")
    said = f"prefers {said}" if said in (first, second) else said or "no readable verdict"
    called = "" if first == "A" else " (as A)"
    text = verdict.justification or verdict.raw or verdict.reason
    flags = f" · {', '.join(verdict.flags)}" if verdict.flags else ""
    why = f'<div class="ek-note">{esc(verdict.reason)}</div>' if verdict.value is None else ""
    return (
        f'<div><div class="ek-said">{esc(first)} shown first{esc(called)}: <b>{esc(said)}</b>'
        f'<span class="ek-note">{esc(flags)}</span></div>{block_html(text)}{why}</div>'
    )


def _trivial(duel: Duel, key: Key, words: dict[str, str]) -> str:
    """What the rules say that look at no substance, and why."""
    said = [(j.name, duel.verdict(j.name, key)) for j in duel.judges[len(duel.asked) :]]
    line = " · ".join(f"{name} {_winner(pair, words)}" for name, pair in said)
    cells = [
        [name, _winner(pair, words), pair.verdicts[0].justification if pair.verdicts else ""]
        for name, pair in said
    ]
    return (
        f'<details><summary class="ek-said">trivial judges: {esc(line)}</summary>'
        f"{table_html(['judge', 'winner', 'why'], cells)}</details>"
    )


def _scorers(a: Row, b: Row, laid: Laid, words: dict[str, str]) -> str:
    names = [name for name in a.scores if name in b.scores and name not in a.verdicts]
    if not names:
        return ""
    rows = {"a": a, "b": b}
    left, right = (rows[letter] for letter in laid.letters)
    cells = [
        [n, _score(left, n), _score(right, n), _finding(left, n), _finding(right, n)] for n in names
    ]
    prefer = scorers_prefer(a, b)
    said = {
        "equal": "the same scores on both sides",
        "mixed": "they contradict each other",
        "": "nothing that both sides share",
    }
    verdict = said.get(prefer) or f"they put {words[prefer]} first"
    heads = ["scorer", *(words[letter] for letter in laid.letters)]
    heads += [f"{words[letter]}: why" for letter in laid.letters]
    return (
        f'<details><summary class="ek-said">scorers: {esc(verdict)}</summary>'
        f"{table_html(heads, cells)}</details>"
    )


def _score(row: Row, name: str) -> str:
    score = row.scores[name]
    return score.status.value if score.value is None else f"{score.value:g}"


def _finding(row: Row, name: str) -> str:
    return row.scores[name].reason


def _winner(pair: PairVerdict, words: dict[str, str]) -> str:
    return "no result" if pair.winner is None else words[pair.winner]


def _words(laid: Laid) -> dict[str, str]:
    """What the sides are called in this view."""
    if laid.view == "open":
        return {"a": "A", "b": "B", "tie": "tie"}
    return {laid.letters[0]: "left", laid.letters[1]: "right", "tie": "tie"}


def _list(lines: Sequence[str]) -> str:
    items = "".join(f"<li>{esc(line)}</li>" for line in lines)
    return f'<ul class="ek-lines">{items}</ul>' if items else ""
