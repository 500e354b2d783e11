"""One observation: a case's reply is scored, then judged, and becomes a row.

Order of a case: hard scorers, the other scorers, judges. A case that fails a hard criterion goes no
further: no judge is paid for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from evalkit.cases.criterion import Criterion
from evalkit.errors import EvalkitError, ScorerError
from evalkit.judges.judge import Ask, Judge, Pairing, PairVerdict
from evalkit.records import Case, Reply, Row, RowStatus, Score, ScoreStatus, Verdict
from evalkit.runs.plan import Plan, verdict_name
from evalkit.scorers.answer import no_answer

__all__ = ["observe"]


async def observe(
    plan: Plan,
    case: Case,
    repeat: int,
    reply: Reply | None,
    ask: Ask,
    *,
    prompt_sha: str = "",
    error: str = "",
    against: Reply | None = None,
) -> Row:
    """Score and judge one reply.

    Args:
        plan: What is measured, and by whom.
        case: The case.
        repeat: Which repeat.
        reply: What came back; None when nothing did.
        ask: Where judges send their calls.
        prompt_sha: Hash of the rendered prompt.
        error: Why there is no reply.
        against: The baseline's reply to the same case and repeat, for pairwise criteria.
    """
    criteria = [c for c in plan.criteria if c.applies_to(case)]
    scores: dict[str, Score] = {}
    verdicts: dict[str, tuple[Verdict, ...]] = {}
    status, why = RowStatus.OK, error
    if reply is None:
        status = RowStatus.MISSING
        scores = {c.name: Score(None, f"no reply: {why}", ScoreStatus.MISSING) for c in criteria}
    elif (fault := no_answer(case, reply)) is not None and fault.value == 0.0:
        status, why = RowStatus.SYSTEM_ERROR, fault.reason
        scores = {c.name: fault for c in criteria}
    else:
        stopped = ""
        for criterion in (c for c in criteria if c.scorer):
            score = await _score(criterion.name, plan.scorers[criterion.name], case, reply)
            scores[criterion.name] = score
            if criterion.hard and score.value is not None and score.value < 1.0:
                stopped = stopped or criterion.name
        judged = [c for c in criteria if c.judge]
        if stopped:
            text = f"not judged: the hard criterion {stopped!r} failed"
            scores |= {c.name: Score(None, text, ScoreStatus.NOT_JUDGED) for c in judged}
        else:
            await _judge(plan, judged, case, reply, against, ask, scores, verdicts)
    return Row(
        case_id=case.id,
        stratum=case.stratum,
        repeat=repeat,
        rendered_prompt_sha=prompt_sha,
        reply=reply,
        status=status,
        error=why,
        cluster=case.cluster,
        scores={c.name: scores[c.name] for c in plan.measured if c.name in scores},
        verdicts=verdicts,
        by={name: plan.by[name] for name in scores},
    )


async def _score(name: str, scorer: Any, case: Case, reply: Reply) -> Score:
    """One score; a scorer that breaks is named with its case, and never ends the process."""
    try:
        if getattr(scorer, "HEAVY", False):  # starts a process: the loop must not wait for it
            score = await asyncio.to_thread(scorer, case, reply)
        else:
            score = scorer(case, reply)
    except EvalkitError:
        raise
    except (Exception, SystemExit) as error:
        said = f"{type(error).__name__}: {error}"
        raise ScorerError(
            f"criterion {name!r}, case {case.id!r}: its scorer broke ({said})"
        ) from error
    if not isinstance(score, Score):
        kind = type(score).__name__
        raise ScorerError(f"criterion {name!r}: its scorer returned a {kind} instead of a Score")
    return score


async def _judge(
    plan: Plan,
    criteria: list[Criterion],
    case: Case,
    reply: Reply,
    against: Reply | None,
    ask: Ask,
    scores: dict[str, Score],
    verdicts: dict[str, tuple[Verdict, ...]],
) -> None:
    """Fill in the judged criteria; one judge that serves several is asked once."""
    said: dict[str, Mapping[str, Verdict]] = {}
    for criterion in criteria:
        judge = plan.judged[criterion.name]
        if criterion.against:
            scores[criterion.name], verdicts[criterion.name] = await _compare(
                judge, case, reply, against, ask, plan.seed
            )
            continue
        if judge.hash not in said:
            said[judge.hash] = await judge.judge(case, reply, ask)
        verdict = said[judge.hash][verdict_name(criterion, judge)]
        scores[criterion.name] = _as_score(verdict, judge)
        verdicts[criterion.name] = (verdict,)


async def _compare(
    judge: Judge, case: Case, reply: Reply, against: Reply | None, ask: Ask, seed: int
) -> tuple[Score, tuple[Verdict, ...]]:
    if against is None:
        why = "not compared: the baseline has no reply to this case and repeat"
        return Score(None, why, ScoreStatus.UNSCORED), ()
    pair = await judge.compare(case, reply, against, ask, how=Pairing(seed=seed))
    return _pair_score(pair), pair.verdicts


def _pair_score(pair: PairVerdict) -> Score:
    details = {"winner": pair.winner, "reason": pair.reason, "positions": list(pair.positions)}
    if pair.value is None:
        why = next((v.reason for v in pair.verdicts if v.value is None), pair.reason)
        return Score(None, why or "no verdict", ScoreStatus.UNSCORED, details=details)
    words = {"a": "the new reply wins", "b": "the baseline's reply wins", "tie": "a tie"}
    return Score(pair.value, f"{words[str(pair.winner)]} ({pair.reason})", details=details)


def _as_score(verdict: Verdict, judge: Judge) -> Score:
    if verdict.value is None:
        return Score(None, verdict.reason or "no verdict", verdict.status)
    details: dict[str, Any] = {}
    if judge.levels:
        details = {
            "level": int(verdict.label or 0),
            "levels": [min(judge.levels), max(judge.levels)],
        }
    said = verdict.justification or f"the judge said {verdict.label}"
    return Score(verdict.value, said, details=details)
