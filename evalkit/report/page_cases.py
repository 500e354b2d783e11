"""What the reviewer page says of each case: plain values, shortened fairly to a budget of text."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from evalkit.cases.suite import Suite
from evalkit.errors import PromptError
from evalkit.hashing import short_hash
from evalkit.prompts import Prompt
from evalkit.records import Case, Finding, Reply, Row, Score, ScoreStatus, Verdict
from evalkit.report.page_budget import TEXT_BUDGET, fair_limit, text_lengths
from evalkit.report.safe import marked_html
from evalkit.report.tables import passed_share, share_text
from evalkit.report.worddiff import diff_html
from evalkit.runs.comparison import RunComparison
from evalkit.runs.run import Run

__all__ = ["CaseView", "RowView", "Text", "anchor_of", "case_views"]

SYMBOLS = {"better": "▲", "worse": "▼", "mixed": "◆"}


@dataclass(frozen=True, slots=True)
class Text:
    """A text as the page shows it; `left_out` says how many characters are not in the page."""

    title: str
    shown: str
    left_out: int = 0

    @property
    def long(self) -> bool:
        """Whether it is folded at first."""
        return len(self.shown) > 600 or self.shown.count("\n") > 12

    @property
    def opening(self) -> str:
        """What stands in its place while it is folded."""
        return " ".join(self.shown[:300].split())[:110]


@dataclass(frozen=True, slots=True)
class VerdictView:
    """What one judge said once."""

    title: str
    label: str
    text: Text
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowView:
    """One observation of a case; `line` is where the whole of it stands in rows.jsonl."""

    title: str
    line: int
    facts: tuple[str, ...]
    reply: Markup | None
    reply_text: Text
    error: str
    findings: tuple[tuple[str, str], ...]
    scores: tuple[tuple[str, str, str, str], ...]
    verdicts: tuple[VerdictView, ...]
    sides: tuple[Markup, Markup] | None
    same_as_baseline: bool
    reasoning: Text | None


@dataclass(slots=True)
class CaseView:
    """One case: its line in the list, and what opens below it.

    `marks` are tokens for the filters: a letter for what is so (`f` failed, `c` changed, `w` worse,
    `b` better, `x` passed on one side only, `o` flipped with the order, `u` repeats disagree, `g`
    not measured, `a` applies) and the number of the criterion.
    """

    id: str
    anchor: str
    stratum: str
    word: str
    tone: str
    badges: tuple[str, ...]
    finding: str
    marks: str
    why: str = ""
    tags: tuple[str, ...] = ()
    texts: list[Text] = field(default_factory=list)
    rows: list[RowView] = field(default_factory=list)


def anchor_of(case_id: str) -> str:
    """The id of a case's element: readable, and one of its own for every case id."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "-", case_id)[:60]
    if plain == case_id:
        return f"case-{plain}"
    digest = hashlib.sha256(case_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"case-{plain}-{digest[:8]}"


def case_views(
    run: Run,
    suite: Suite,
    baseline: Run | None,
    comparison: RunComparison | None,
    prompt: Prompt | None,
    price: Callable[[Reply], float | None],
    *,
    budget: int = TEXT_BUDGET,
) -> list[CaseView]:
    """The cases of a run: those that moved first, then those that failed, then the others.

    Args:
        run: The run.
        suite: Where the cases' inputs come from.
        baseline: The frozen run whose replies stand beside.
        comparison: What moved.
        prompt: The prompt that was run, where it is at hand; it is rendered for each case.
        price: What a reply cost, in US dollars.
        budget: How many characters of text the page may hold; longer texts are shortened alike.
    """
    cases = {case.id: case for case in suite.cases}
    groups = run.by_case()
    before = baseline.by_case() if baseline else {}
    maker = _Maker(
        numbers={name: i for i, name in enumerate(run.manifest.by)},
        moved={c.case_id: c.moved for c in comparison.cases} if comparison else {},
        prompt=prompt,
        price=price,
        limit=fair_limit(text_lengths(groups, before, cases, prompt), budget),
        compared=baseline is not None,
    )
    found: list[tuple[tuple[int, int], CaseView]] = []
    line = 1
    for index, (case_id, rows) in enumerate(groups.items()):
        view = maker.case(case_id, cases.get(case_id), rows, before.get(case_id, ()), line)
        line += len(rows)
        found.append(((_rank(view), index), view))
    return [view for _, view in sorted(found, key=lambda entry: entry[0])]


def _rank(view: CaseView) -> int:
    for rank, word in enumerate(("worse", "mixed", "better")):
        if any(word in badge for badge in view.badges):
            return rank
    return 4 if view.tone == "good" else 3


@dataclass(frozen=True)
class _Maker:
    numbers: Mapping[str, int]
    moved: Mapping[str, Mapping[str, float]]
    prompt: Prompt | None
    price: Callable[[Reply], float | None]
    limit: int
    compared: bool

    def case(
        self, case_id: str, case: Case | None, rows: Sequence[Row], before: Sequence[Row], line: int
    ) -> CaseView:
        now = passed_share(rows)
        moved = self.moved.get(case_id, {})
        lowest = [(n, s) for row in rows for n, s in row.scores.items() if s.value != 1.0]
        badges: list[str] = []
        if moved:
            signs = {change > 0 for change in moved.values()}
            word = "mixed" if len(signs) > 1 else "better" if True in signs else "worse"
            badges.append(f"{SYMBOLS[word]} {word}: {', '.join(moved)}")
        elif self.compared and not before:
            badges.append("not in the baseline")
        marks, more = self._marks(rows, before, moved)
        view = CaseView(
            id=case_id,
            anchor=anchor_of(case_id),
            stratum=rows[0].stratum,
            word=share_text(now),
            tone={1.0: "good", 0.0: "bad"}.get(now, "some") if now is not None else "gap",
            badges=(*badges, *more),
            finding=f"{lowest[0][0]}: {lowest[0][1].reason}"[:200] if lowest else "",
            marks=" ".join(marks),
            why=case.why if case else "",
            tags=case.tags if case else (),
        )
        if case is not None:
            view.texts = self._texts(case, rows[0])
        old = {row.repeat: row.reply for row in before}
        for offset, row in enumerate(rows):
            view.rows.append(self._row(row, old.get(row.repeat), len(rows) > 1, line + offset))
        return view

    def _marks(
        self, rows: Sequence[Row], before: Sequence[Row], moved: Mapping[str, float]
    ) -> tuple[list[str], list[str]]:
        marks: list[str] = []
        badges: dict[str, None] = {}
        for name, number in self.numbers.items():
            scores = [row.scores[name] for row in rows if name in row.scores]
            if not scores:
                continue
            values = {s.value for s in scores if s.value is not None}
            was = {row.scores[name].value for row in before if name in row.scores} - {None}
            letters = {
                "a": True,
                "f": any(v < 1.0 for v in values),
                "g": any(s.status in _GAPS for s in scores),
                "u": len(values) > 1,
                "c": name in moved,
                "w": moved.get(name, 0.0) < 0,
                "b": moved.get(name, 0.0) > 0,
                "x": bool(values and was) and (values == {1.0}) != (was == {1.0}),
                "o": any(s.details.get("reason") == "tie_flip" for s in scores),
            }
            marks += [f"{letter}{number}" for letter, true in letters.items() if true]
            badges |= {word: None for letter, word in _WORDS.items() if letters[letter]}
        return marks, list(badges)

    def _texts(self, case: Case, row: Row) -> list[Text]:
        texts = [self.text(name, _plain(value)) for name, value in case.inputs.items()]
        rendered = _rendered(self.prompt, case, row.rendered_prompt_sha)
        if rendered is None:
            texts += [self.text(f"page {page.id}", page.text) for page in case.context]
        texts += [self.text(f"material {name}", text) for name, text in case.material.items()]
        if case.expected:
            lines = "\n".join(f"{name}: {_plain(v)}" for name, v in case.expected.items())
            texts.append(self.text("expected", lines))
        if rendered is not None:
            title = f"rendered prompt {row.rendered_prompt_sha}"
            texts.append(self.text(title, rendered))
        elif row.rendered_prompt_sha:
            said = f"its hash is {row.rendered_prompt_sha}; the files here do not give it again"
            texts.append(Text("rendered prompt", said))
        return texts

    def _row(self, row: Row, old: Reply | None, numbered: bool, line: int) -> RowView:
        title = f"Reply, repeat {row.repeat + 1}" if numbered else "Reply"
        reply = row.reply
        findings = [(name, f) for name, s in row.scores.items() for f in s.findings]
        base: dict[str, Any] = {
            "title": title,
            "line": line,
            "error": row.error,
            "findings": tuple((name, f.message) for name, f in findings),
            "scores": tuple(
                (name, _value(s), s.reason, row.by.get(name, "")) for name, s in row.scores.items()
            ),
            "verdicts": tuple(
                self._verdict(name, verdict, i, len(said))
                for name, said in row.verdicts.items()
                for i, verdict in enumerate(said)
            ),
        }
        if reply is None:
            return RowView(
                **base,
                facts=(),
                reply=None,
                reply_text=Text("", ""),
                sides=None,
                same_as_baseline=False,
                reasoning=None,
            )
        text = self.text("", reply.text)
        differs = old is not None and old.text != reply.text
        sides = None
        if old is not None and differs:
            left, right = diff_html(self.text("", old.text).shown, text.shown)
            sides = Markup(left), Markup(right)
        return RowView(
            **base,
            facts=_facts(reply, self.price(reply)),
            reply=Markup(marked_html(text.shown, _inside([f for _, f in findings], text))),
            reply_text=text,
            sides=sides,
            same_as_baseline=old is not None and not differs,
            reasoning=self.text("reasoning, kept apart", reply.reasoning)
            if reply.reasoning
            else None,
        )

    def _verdict(self, name: str, verdict: Verdict, index: int, of: int) -> VerdictView:
        label = verdict.label or verdict.status.value
        title = name
        if of == 2:
            shown = ("this reply first", "the baseline's reply first")[index]
            title = f"{name} · order {index + 1}, {shown}"
        said = verdict.justification or verdict.reason or verdict.raw
        return VerdictView(title, label, self.text("", said), verdict.flags)

    def text(self, title: str, text: str) -> Text:
        """A text within the page's limit."""
        if len(text) <= self.limit:
            return Text(title, text)
        return Text(title, text[: self.limit], len(text) - self.limit)


_GAPS = (ScoreStatus.MISSING, ScoreStatus.UNSCORED, ScoreStatus.NOT_MEASURED)
_WORDS = {
    "g": "not all measured",
    "u": "repeats disagree",
    "o": "flipped with the order",
}


def _inside(findings: Iterable[Finding], text: Text) -> Iterable[Finding]:
    end = len(text.shown)
    return (f for f in findings if f.end is not None and f.end <= end)


def _facts(reply: Reply, usd: float | None) -> tuple[str, ...]:
    facts = [f"finish {reply.finish.value}"]
    if reply.latency_s is not None:
        facts.append(f"{reply.latency_s:.2f} s")
    if reply.usage:
        facts += [
            f"{count} {what} tokens"
            for what, count in (
                ("prompt", reply.usage.prompt_tokens),
                ("completion", reply.usage.completion_tokens),
            )
            if count is not None
        ]
    if usd is not None:
        facts.append(f"${usd:.6f}" if usd else "free")
    if reply.attempts > 1:
        facts.append(f"{reply.attempts} attempts")
    if reply.retrieved is not None:
        facts.append(f"retrieved {', '.join(reply.retrieved)}")
    if reply.refusal:
        facts.append(f"refusal: {reply.refusal}")
    if reply.key:
        facts.append(f"call {reply.key[:12]}")
    return (*facts, *reply.warnings, *reply.changes)


def _value(score: Score) -> str:
    return score.status.value.replace("_", " ") if score.value is None else f"{score.value:g}"


def _plain(value: Any) -> str:
    """A value as text: JSON on one line, or on several where it is long."""
    if isinstance(value, str):
        return value
    line = json.dumps(value, ensure_ascii=False)
    return line if len(line) < 80 else json.dumps(value, ensure_ascii=False, indent=1)


def _rendered(prompt: Prompt | None, case: Case, sha: str) -> str | None:
    """The prompt as it was sent, proven by its hash; None where that cannot be shown."""
    if prompt is None:
        return None
    try:
        messages = prompt.render(case)
    except PromptError:
        return None
    if short_hash([[m.role, m.content] for m in messages]) != sha:
        return None
    return "\n\n".join(f"# {message.role}\n{message.content}" for message in messages)
