"""The gate's last line: one sentence that a person can act on."""

from __future__ import annotations

from collections.abc import Iterable

from evalkit.counting import counted
from evalkit.runs.gate_result import NOT_COMPARED, CriterionResult, GateResult
from evalkit.stats.decision import Decision, Strictness

__all__ = ["last_line"]


def last_line(result: GateResult) -> str:
    """What was decided, the first reason, how many more there are, and what to do."""
    head = f"{result.decision.value} ({result.strictness.value}): {result.manifest.suite}: "
    tail = "".join(f"; {text}" for text in _warnings(result))
    return f"{head}{_BODY[result.decision](result)}{tail}."


def _failed(result: GateResult) -> str:
    failed = result.of(Decision.FAIL.value)
    cases = ", ".join(dict.fromkeys(look.case_id for look in result.look_at[:6]))
    look = f"; look at {cases}" if cases else ""
    return f"{_first(failed)}{_more(failed[1:], 'fails too', 'fail too')}{look}"


def _broken(result: GateResult) -> str:
    broken = result.of(Decision.BROKEN.value)
    if result.problems:
        return _plain(result.problems[0]) + _more(broken, "was not measured", "were not measured")
    return f"{_first(broken)}{_more(broken[1:], 'was not measured either', 'were not either')}"


def _undecided(result: GateResult) -> str:
    open_ = result.of(Decision.UNDECIDED.value)
    if result.strictness is Strictness.SMOKE:
        return (
            f"nothing is shown to be wrong; the data cannot tell for {_names(open_)} "
            f"({_plain(open_[0].sentence)})"
        )
    return f"{_first(open_)}{_more(open_[1:], 'is undecided too', 'are undecided too')}"


def _passed(result: GateResult) -> str:
    held = result.of(Decision.PASS.value)
    sampling = result.manifest.sampling
    size = f"{counted(sampling.get('n'), 'case')} x {sampling.get('repeats')}"
    replies = counted(result.n_rows, "reply")
    lost = f"; {result.n_missing} of {replies} missing" if result.n_missing else ""
    return f"{_names(held)} {'holds' if len(held) == 1 else 'hold'} on {size}{lost}"


_BODY = {
    Decision.FAIL: _failed,
    Decision.BROKEN: _broken,
    Decision.UNDECIDED: _undecided,
    Decision.PASS: _passed,
}


def _warnings(result: GateResult) -> Iterable[str]:
    said = result.problems[0] if result.problems and result.decision is Decision.BROKEN else ""
    if result.edited and result.edited[0].split(" when ")[0] not in said:
        yield f"edited after the fact: {result.edited[0]}"
    decides = ("threshold ", "criterion ", "cases ", "sampling.", "the suite is ")
    moved = [text for text in result.changes if text.startswith(decides) and text not in said]
    if moved:
        yield f"this change edits what decides: {'; '.join(moved[:3])}"
    if result.manifest.origin != "model":
        yield f"the replies are {result.manifest.origin}: this says nothing of a model"
    if waiting := result.of(NOT_COMPARED):
        yield f"not compared: {_names(waiting)} ({waiting[0].not_compared})"
    elif result.decision is not Decision.FAIL and (
        why := next((c.not_compared for c in result.criteria if c.gate and c.not_compared), "")
    ):
        yield f"not compared with a baseline: {why}"


def _first(results: tuple[CriterionResult, ...]) -> str:
    first = results[0]
    worst = next((r.sentence for r in first.rulings if r.decision.value == first.word), "")
    return f"{first.name}: {_plain(worst or first.sentence)}"


def _more(results: tuple[CriterionResult, ...], one: str, many: str) -> str:
    return f"; {_names(results)} {one if len(results) == 1 else many}" if results else ""


def _names(results: Iterable[CriterionResult]) -> str:
    return ", ".join(r.name for r in results)


def _plain(sentence: str) -> str:
    return " ".join(sentence.split()).rstrip(".")
