"""A comparison in words: its headline, its table of at most 100 columns, and what to look at."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from evalkit.counting import counted, listed
from evalkit.judges.panel import Panel
from evalkit.report.safe import terminal_text
from evalkit.report.tables import WIDTH, text_table
from evalkit.runs.duel import Duel, Key
from evalkit.runs.duel_standing import Standing
from evalkit.stats.result import Interval

__all__ = [
    "HEAD",
    "LEGEND",
    "duel_text",
    "flips_line",
    "headline",
    "length_line",
    "name_of",
    "rate_text",
    "rows_of",
    "trust_lines",
]

HEAD = (
    *("judge", "A", "tie", "B", "A preferred", "ties b/f/h", "unread", "consistent", "first"),
    "vs scorers",
)
REASONS = {
    "identical": "the same text",
    "both_empty": "both empty",
    "empty": "one empty",
}


def name_of(key: Key, repeats: int = 1) -> str:
    """A pair for people: the case, and the repeat where there are several."""
    return key[0] if repeats == 1 else f"{key[0]}#{key[1]}"


def rate_text(rate: Interval) -> str:
    """`71 % (52-85)`, without ends where there is no interval."""
    if not rate.defined:
        return "not measured"
    ends = [rate.ci_low, rate.ci_high]
    if any(math.isnan(end) for end in ends):
        return f"{100 * rate.estimate:.0f} %"
    return f"{100 * rate.estimate:.0f} % ({100 * ends[0]:.0f}-{100 * ends[1]:.0f})"


def rows_of(found: Sequence[Standing]) -> list[list[str]]:
    """One row a judge, under `HEAD`."""
    return [_row(standing) for standing in found]


def _row(s: Standing) -> list[str]:
    a, tie, b = s.wins
    reasons = "/".join(str(s.reasons.get(f"tie_{kind}", 0)) for kind in ("both", "flip", "half"))
    unread = str(s.invalid)
    if s.invalid and s.preference.bounds:
        low, high = s.preference.bounds
        unread += f" ({100 * low:.0f}-{100 * high:.0f} %)"
    return [
        f"{s.judge.name} *" if s.ruling else s.judge.name,
        *(str(a), str(tie), str(b)),
        rate_text(s.preference),
        reasons,
        unread,
        rate_text(s.swap.swap_consistency),
        rate_text(s.swap.first_share).partition(" (")[0],
        f"{len(s.scorers.differ)} of {s.scorers.both}" if s.scorers.both else "-",
    ]


def headline(standing: Standing) -> str:
    """What the judge prefers, with n and interval, and whether that is shown."""
    rate, n = standing.preference, standing.preference.n_cases
    if not rate.defined:
        return f"no pair has a verdict of {standing.judge.name}: nothing can be said."
    words = {
        "a": "A is preferred",
        "b": "B is preferred",
        "": "not distinguished: neither is shown to be preferred",
    }
    a, tie, b = standing.wins
    flips = len(standing.flips)
    tail = f" (flipped with the order: {flips})" if flips else ""
    ends = f"95 % interval {100 * rate.ci_low:.0f}-{100 * rate.ci_high:.0f} %"
    ends = "no interval" if math.isnan(rate.ci_low) else ends
    return (
        f"{words[standing.direction]}. A wins {a}, B wins {b}, ties {tie}{tail}; A preferred "
        f"{100 * rate.estimate:.0f} % (n = {counted(n, 'case')}, {ends})."
    )


def trust_lines(standing: Standing) -> list[str]:
    """What a reader must know before believing a judge: licence, kin, lean, unread verdicts."""
    judge, swap = standing.judge, standing.swap
    lines: list[str] = []
    if standing.ruling:
        mark = "no licence: exploratory" if not standing.ruling.valid else "licensed"
        lines.append(f"{judge.name} {judge.hash} on {judge.model} · {mark}")
        lines.append(standing.ruling.sentence)
        lines += standing.ruling.warnings
    if standing.kin:
        sides = " and ".join(standing.kin)
        lines.append(
            f"same family: {judge.name} and {sides} are both {judge.family}; it may favour its kin"
        )
    if any(v.exploratory for v in standing.verdicts):
        lines.append("one order only: exploratory, position lean and flips are not measured")
    elif swap.first_share.defined:
        lean = "no lean to a position is shown"
        p = swap.first_share.extra.get("p", math.nan)
        chance = "< 0.001" if p < 0.001 else f"= {p:.2g}"
        if p < 0.05:
            place = "first" if swap.first_share.estimate > 0.5 else "second"
            lean = f"it leans to the {place} position"
        lines.append(
            f"{lean}: the draft shown first is named in {rate_text(swap.first_share)} of the "
            f"verdicts that name one (p {chance}); inconsistent pairs leaning first "
            f"{swap.primacy}, second {swap.recency}"
        )
    if standing.invalid and standing.preference.bounds:
        low, high = standing.preference.bounds
        lines.append(
            f"{counted(standing.invalid, 'pair')} without a readable verdict: A preferred lies "
            f"between {100 * low:.0f} % and {100 * high:.0f} % whatever they are"
        )
    settled = [f"{n} {REASONS[r]}" for r, n in standing.reasons.items() if r in REASONS]
    if settled:
        lines.append(f"settled without a call: {', '.join(settled)}")
    return lines


def length_line(standing: Standing) -> str:
    """Whether the longer draft wins, and what is left of the preference at equal lengths."""
    hits, n = standing.longer
    if not n:
        return "length: no pair with drafts of different length is decided"
    text = f"the longer draft won {hits} of {counted(n, 'decided pair')}"
    control = standing.length
    if "separated" in control.reasons:
        return f"{text}; length and preference cannot be told apart here"
    if control.controlled.defined and "equal_lengths" not in control.reasons:
        text += f"; at equal lengths A would be preferred {rate_text(control.controlled)}"
    return text


def flips_line(standing: Standing, repeats: int = 1) -> str:
    """The pairs whose winner changed with the order, by case."""
    names = [name_of(key, repeats) for key in standing.flips]
    return ", ".join(names) if names else "none"


def panel_lines(found: Panel) -> list[str]:
    """How far several judges agree; where they contradict each other nobody has won."""
    lines = [
        f"{one} and {other} agree on {same} of {counted(both, 'pair')}"
        for (one, other), (same, both) in found.agreement.items()
    ]
    names = sorted({str(k[0]) for k in found.ambiguous if isinstance(k, tuple)})
    if names:
        lines.append(f"ambiguous (the judges contradict each other): {', '.join(names)}")
    lines += [f"{name} has no vote ({why})" for name, why in found.eliminated.items()]
    return lines


def duel_text(
    duel: Duel,
    found: Sequence[Standing],
    *,
    together: Panel | None = None,
    written: Path | None = None,
    cockpit: str = "",
) -> str:
    """A comparison for the terminal.

    Args:
        duel: The comparison.
        found: Its standings.
        together: The panel, where several judges were asked.
        written: Where the rows lie.
        cockpit: The command that opens the notebook.
    """
    plan, calls = duel.plan, duel.calls
    repeats = plan.repeats
    usd = calls.get("usd")
    money = "price unknown" if usd is None else "free" if usd == 0 else f"${usd:.4f}"
    how = "one order (exploratory)" if plan.how.one_order else "both orders"
    lines = [
        *(f"{'AB'[i]}: {side.name} · {side.model or 'files'}" for i, side in enumerate(plan.sides)),
        f"{plan.suite.name} · {counted(len(duel.keys), 'pair')}, {how} · "
        f"{counted(calls.get('new', 0), 'new call')}, {calls.get('recorded', 0)} recorded"
        + (f" · {money}" if calls.get("new") else ""),
    ]
    lines += wrapped(plan.notes)
    lines += ["", text_table(HEAD, rows_of(found)), *wrapped([LEGEND])]
    for standing in found[: len(duel.asked)]:
        lines += ["", *wrapped([f"{standing.judge.name}: {headline(standing)}"], first="")]
        lines += wrapped(trust_lines(standing))
        lines += wrapped([length_line(standing)])
        if not plan.how.one_order:
            lines += wrapped([f"flipped with the order: {flips_line(standing, repeats)}"])
        lines += wrapped(against_lines(standing, repeats))
    if together:
        lines += ["", *wrapped(panel_lines(together), first="")]
    if duel.found.left_out:
        lines += ["", *wrapped(left_out_lines(duel), first="")]
    if duel.stopped:
        lines += ["", *wrapped([f"ended early: {duel.stopped}"], first="")]
    lines.append("")
    if written:
        lines.append(f"rows: {written.as_posix()}")
    if cockpit:
        lines.append(f"look at it: {cockpit}")
    return "\n".join(lines)


LEGEND = (
    "* asks a model; the others are rules that look at no substance, and a judge that does not "
    "differ from them has shown nothing. A preferred: wins of A and half the ties, with its 95 % "
    "interval. ties b/f/h: in both orders, by a flip of the winner with the order, in one order "
    "(half). consistent: the same verdict in both orders. first: share of verdicts for the draft "
    "shown first. vs scorers: pairs on which the deterministic scorers name the other winner."
)


def against_lines(standing: Standing, repeats: int) -> list[str]:
    """Where scorers or people name the other winner."""
    lines: list[str] = []
    for word, against in (("scorers", standing.scorers), ("people", standing.people)):
        if against.both:
            names = ", ".join(name_of(key, repeats) for key in against.differ)
            tail = f": {names}" if names else ""
            lines.append(
                f"against {word}: {len(against.differ)} of {against.both} pairs on which both name "
                f"a winner{tail}"
            )
    return lines


def left_out_lines(duel: Duel) -> list[str]:
    """What could not be compared, grouped by why."""
    why: dict[str, list[str]] = {}
    for case, repeat, reason in duel.found.left_out:
        why.setdefault(reason, []).append(name_of((case, repeat), duel.plan.repeats))
    return [f"not compared, {r}: {listed(list(dict.fromkeys(n)), 12)}" for r, n in why.items()]


def wrapped(texts: Iterable[str], *, first: str = "  ") -> list[str]:
    """Lines of at most 100 columns; whatever a name holds stays visible text."""
    return [
        line
        for text in texts
        for line in textwrap.wrap(
            terminal_text(text), WIDTH, initial_indent=first, subsequent_indent=first + "  "
        )
    ]
