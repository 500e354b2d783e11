"""Known strong/weak pairs: does a judge find the strong one, in both orders?

Trivial rules answer the same pairs; where one of them passes, the pairs cannot tell the judge from
it. Pairs made by a rule can take the right to judge away; only pairs that people ranked grant it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evalkit.cases.problems import problems_of
from evalkit.cases.tables import read_jsonl
from evalkit.counting import counted
from evalkit.errors import AnchorError, CaseError
from evalkit.judges.judge import Ask, Judge, PairVerdict
from evalkit.judges.trivial import LexicalOverlap
from evalkit.records import Case, Document, Reply, Request
from evalkit.stats.pairwise import SwapReport, swap_protocol
from evalkit.stats.reconstruction import Reconstruction, ReconstructionVerdict, reconstruct
from evalkit.validity.admission import Admitted, evidence_of, in_words, interval_json
from evalkit.validity.anchor_files import file_digest
from evalkit.validity.anchors import FIRST, TIE, Anchor
from evalkit.validity.degradations import weaken
from evalkit.validity.licence import AnchorPin, Evidence
from evalkit.validity.provenance import Provenance
from evalkit.validity.scoring import ItemScore

__all__ = [
    "KnownPair",
    "KnownPairs",
    "Reconstructed",
    "evidence_for",
    "load_pairs",
    "make_pair",
    "pair_requests",
    "pairs_of_anchor",
    "reconstruct_judge",
]


class _Page(BaseModel):
    model_config = ConfigDict(extra="forbid")
    id: str
    text: str


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid")
    id: str = Field(min_length=1)
    strong: str = Field(min_length=1)
    weak: str
    how: str = Field(min_length=1)
    inputs: dict[str, Any] = Field(default_factory=dict)
    context: list[_Page] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class KnownPair:
    """A strong text and a weak one of the same case; `how` says what made the weak one weak."""

    id: str
    strong: str
    weak: str
    how: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    context: tuple[Document, ...] = ()

    @property
    def case(self) -> Case:
        """The pair as a case for a judge."""
        return Case(id=self.id, inputs=self.inputs, context=self.context)


@dataclass(frozen=True)
class KnownPairs:
    """Pairs of one origin: `pin` names the file and whose ranking it is."""

    pairs: tuple[KnownPair, ...]
    pin: AnchorPin


@dataclass(frozen=True)
class Reconstructed:
    """A judge on known pairs: the gate, the swap protocol, and a tile per pair.

    `tiles` map a pair's id to right, wrong, flipped, tie or invalid; `by_how` a way of weakening to
    (right, pairs).
    """

    judge: Judge
    known: KnownPairs
    verdicts: tuple[PairVerdict, ...]
    gate: Reconstruction
    swap: SwapReport
    tiles: Mapping[str, str]
    by_how: Mapping[str, tuple[int, int]]

    @property
    def state(self) -> str:
        """The gate's verdict; a pass on pairs that people did not rank is NOT_CERTIFIED."""
        passed = self.gate.verdict is ReconstructionVerdict.PASS
        if passed and not self.known.pin.provenance.may_grant:
            return "NOT_CERTIFIED"
        return self.gate.verdict.value

    @property
    def scores(self) -> tuple[ItemScore, ...]:
        """Per pair what is known and what the judge said: strong, weak, tie, flipped, or None."""
        words: dict[str, str | None] = {"right": "strong", "wrong": "weak", "invalid": None}
        return tuple(
            ItemScore(item, "strong", words.get(tile, tile), found.reason)
            for (item, tile), found in zip(self.tiles.items(), self.verdicts, strict=True)
        )

    @property
    def sentence(self) -> str:
        """What was found and why."""
        right, valid = sum(t == "right" for t in self.tiles.values()), self.swap.n_valid
        low = self.swap.swap_consistency.ci_low
        why = "; ".join(_in_words(reason) for reason in self.gate.reasons)
        pairs, needed = counted(valid, "pair"), self.gate.needed
        least = "" if math.isnan(low) else f" (at least {low:.0%})"
        return (
            f"{self.judge.name}: {self.state} - finds the strong text in {right} of {pairs}"
            f"{f' (needs {needed})' if needed else ''}, the same one in both "
            f"orders in {self.swap.consistent}{least}{f'; {why}' if why else ''}."
        )


def load_pairs(path: Path) -> KnownPairs:
    """The known pairs of a suite (`pairs.jsonl`): made by a rule or by hand, so synthetic.

    Raises:
        CaseError: If a line is wrong or an id stands twice; names file and line.
    """
    pairs: dict[str, KnownPair] = {}
    for number, row in read_jsonl(path, error=CaseError):
        try:
            line = _Line.model_validate(row)
        except ValidationError as wrong:
            faults = "; ".join(problems_of(wrong, _Line.model_fields))
            raise CaseError(f"{path}:{number}: {faults}.") from None
        if line.id in pairs:
            raise CaseError(f"{path}:{number}: id {line.id!r} stands twice.")
        if line.strong == line.weak:
            raise CaseError(f"{path}:{number}: strong and weak are the same text.")
        pages = tuple(Document(page.id, page.text) for page in line.context)
        pairs[line.id] = KnownPair(line.id, line.strong, line.weak, line.how, line.inputs, pages)
    if not pairs:
        raise CaseError(f"{path}: holds no pair.")
    pin = AnchorPin(
        name=path.stem,
        path=path.name,
        digest=file_digest(path),
        provenance=Provenance.SYNTHETIC,
        domain="",
        criterion="",
        categories=("strong", "weak"),
        n=len(pairs),
        people="",
    )
    return KnownPairs(tuple(pairs.values()), pin)


def pairs_of_anchor(anchor: Anchor, pin: AnchorPin) -> KnownPairs:
    """The decided pairs of an anchor; ties say nothing of strong and weak and are left out.

    Raises:
        AnchorError: If the anchor holds no pairs.
    """
    items = {item.id: item for item in anchor.items if item.other is not None}
    if not items:
        raise AnchorError(f"{anchor.where}: holds no pairs.")
    pairs: list[KnownPair] = []
    for item_id, label in anchor.truth.items():
        item = items[item_id]
        if label != TIE:
            texts = (item.output, item.other or "")
            strong, weak = texts if label == FIRST else texts[::-1]
            pairs.append(KnownPair(item_id, strong, weak, "people", item.inputs, item.context))
    return KnownPairs(tuple(pairs), pin)


def make_pair(case: Case, strong: str, how: str, *, seed: int = 7) -> KnownPair:
    """A known pair from a strong text and a named degradation.

    Raises:
        AnchorError: If the degradation changes nothing in this text.
    """
    weak = weaken(strong, how, seed=seed)
    return KnownPair(f"{case.id}-{how}", strong, weak, how, case.inputs, case.context)


def pair_requests(judge: Judge, known: KnownPairs) -> list[Request]:
    """The calls that `reconstruct_judge` would send, to be priced first."""
    sent: list[Request] = []
    for pair in known.pairs:
        strong, weak = Reply(pair.strong), Reply(pair.weak)
        if judge.kind == "scale":
            sent += [*judge.requests(pair.case, strong), *judge.requests(pair.case, weak)]
        else:
            sent += judge.pair_requests(pair.case, strong, weak)
    return sent


async def reconstruct_judge(
    judge: Judge,
    known: KnownPairs,
    ask: Ask,
    *,
    on_pair: Callable[[PairVerdict], None] | None = None,
) -> Reconstructed:
    """Put a judge, and the trivial rules beside it, through known pairs in both orders.

    Args:
        judge: A pairwise judge, a trivial one, or a scale judge, whose levels then decide (it sees
            one text at a time, so that no order can sway it).
        known: At least 5 pairs; 30 for a gate that a judge of .80 passes.
        ask: The seam to the model.
        on_pair: Called as each verdict arrives.
    """

    async def compare(by: Judge, pair: KnownPair) -> PairVerdict:
        strong, weak = Reply(pair.strong), Reply(pair.weak)
        if by.kind == "scale":
            found = await _by_level(by, pair.case, strong, weak, ask)
        else:
            found = await by.compare(pair.case, strong, weak, ask)
        if on_pair and by is judge:
            on_pair(found)
        return found

    verdicts = await asyncio.gather(*(compare(judge, pair) for pair in known.pairs))
    lexical = await asyncio.gather(*(compare(LexicalOverlap(), pair) for pair in known.pairs))
    return rule_on_pairs(judge, known, verdicts, lexical=lexical)


def rule_on_pairs(
    judge: Judge,
    known: KnownPairs,
    verdicts: Sequence[PairVerdict],
    *,
    threshold: float = 0.7,
    lexical: Sequence[PairVerdict] = (),
) -> Reconstructed:
    """The ruling from verdicts at hand, the strong text being `a` of each pair."""
    gate = reconstruct(
        [_right(v) for v in verdicts],
        length_strong=[len(pair.strong) for pair in known.pairs],
        length_weak=[len(pair.weak) for pair in known.pairs],
        baselines={"lexical": [_right(v) or False for v in lexical]} if lexical else None,
        threshold=threshold,
    )
    tiles = {p.id: _tile(v) for p, v in zip(known.pairs, verdicts, strict=True)}
    by_how: dict[str, tuple[int, int]] = {}
    for pair in known.pairs:
        right, n = by_how.get(pair.how, (0, 0))
        by_how[pair.how] = (right + (tiles[pair.id] == "right"), n + 1)
    return Reconstructed(
        judge=judge,
        known=known,
        verdicts=tuple(verdicts),
        gate=gate,
        swap=swap_protocol([_positions(v) for v in verdicts]),
        tiles=tiles,
        by_how=by_how,
    )


def evidence_for(
    admitted: Sequence[Admitted], reconstructed: Sequence[Reconstructed], suite: Path, domain: str
) -> list[Evidence]:
    """Everything found of one judge, with what it permits together.

    A scale judge may be used for pairs when its anchor permits that and every reconstruction
    passes; a pairwise judge when it passes on pairs that people ranked.

    Args:
        admitted: Its lines of the admission table.
        reconstructed: Its runs on known pairs.
        suite: The suite's folder.
        domain: The suite's domain, which is that of its `pairs.jsonl`.
    """
    passed = bool(reconstructed) and all(
        r.gate.verdict is ReconstructionVerdict.PASS for r in reconstructed
    )
    found: list[Evidence] = []
    for line in admitted:
        evidence = evidence_of(line, suite)
        if not passed:
            kept = tuple(use for use in evidence.grants if use != "pairwise")
            evidence = evidence.model_copy(update={"grants": kept})
        found.append(evidence)
    for run in reconstructed:
        pin = run.known.pin
        people = passed and pin.provenance.may_grant and run.judge.kind == "pairwise"
        found.append(
            Evidence(
                what="pairwise",
                anchor=pin if pin.domain else pin.model_copy(update={"domain": domain}),
                state=run.state,
                ruling=run.gate.verdict.value,
                diagnosis="; ".join(map(_in_words, run.gate.reasons)),
                action="",
                figures={
                    "accuracy": interval_json(run.gate.accuracy),
                    "p_vs_chance": run.gate.p_vs_chance,
                    "swap_consistency": interval_json(run.swap.swap_consistency),
                    "preference_fairness": run.swap.preference_fairness,
                    "by_how": {how: list(count) for how, count in run.by_how.items()},
                },
                grants=("pairwise",) if people else (),
            )
        )
    return found


async def _by_level(judge: Judge, case: Case, strong: Reply, weak: Reply, ask: Ask) -> PairVerdict:
    """The text with the higher level wins; a verdict that cannot be read makes the pair invalid."""
    said = [next(iter((await judge.judge(case, r, ask)).values())) for r in (strong, weak)]
    one, other = said[0].value, said[1].value
    winner, reason = None, "invalid"
    if one is not None and other is not None:
        winner = "tie" if one == other else "a" if one > other else "b"
        reason = "tie_both" if one == other else "agree"
    return PairVerdict(
        case_id=case.id,
        repeat=0,
        winner=winner,
        reason=reason,
        orders=(),
        lengths=(len(strong.text), len(weak.text)),
        judge=judge.name,
        judge_hash=judge.hash,
    )


def _right(verdict: PairVerdict) -> bool | None:
    return None if verdict.winner is None else verdict.winner == "a"


def _tile(verdict: PairVerdict) -> str:
    if verdict.winner is None:
        return "invalid"
    if verdict.reason == "tie_flip":
        return "flipped"
    return {"a": "right", "b": "wrong"}.get(verdict.winner, "tie")


def _positions(verdict: PairVerdict) -> tuple[str, str]:
    if len(verdict.positions) == 2:
        return verdict.positions[0], verdict.positions[1]
    words = {"a": ("first", "second"), "b": ("second", "first"), "tie": ("tie", "tie")}
    return words.get(verdict.winner or "", ("invalid", "invalid"))


def _in_words(reason: str) -> str:
    name, _, rule = reason.partition(":")
    known = {
        "below_threshold": "fewer right than the threshold asks",
        "chance_not_excluded": "chance alone could do as well",
        "too_few_pairs": "fewer than 5 pairs",
        "too_many_missing": "more than 5 % of the pairs have no verdict",
        "missing_data_decides": "pairs without a verdict could turn the ruling",
        "confounded": f"the rule {rule} passes the same pairs",
    }
    return known.get(name) or in_words(reason)
