from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import ScorerError
from evalkit.records import Case, Reply, Score, ScoreStatus
from evalkit.scorers.retrieval import MeanReciprocalRank, Ndcg, PrecisionAtK, RecallAtK

ALL = [RecallAtK, PrecisionAtK, MeanReciprocalRank, Ndcg]


def value(scorer: Any, retrieved: list[str], chunks: Any) -> float:
    score = scorer(Case("c1", expected={"chunks": chunks}), Reply("", retrieved=tuple(retrieved)))
    assert isinstance(score, Score)
    assert score.value is not None
    return score.value


def test_recall_is_over_the_relevant_precision_over_the_ranks() -> None:
    assert value(RecallAtK(k=2), ["a", "x", "b"], ["a", "b"]) == 0.5
    assert value(RecallAtK(), ["a", "x", "b"], ["a", "b"]) == 1.0
    assert value(PrecisionAtK(k=2), ["a", "x", "b"], ["a", "b"]) == 0.5
    assert value(PrecisionAtK(k=5), ["a"], ["a", "b"]) == 0.2
    assert value(PrecisionAtK(), ["a", "x", "y", "z"], ["a"]) == 0.25
    assert value(PrecisionAtK(), [], ["a"]) == 0.0


def test_a_chunk_that_comes_twice_counts_once_at_its_first_rank() -> None:
    assert value(RecallAtK(k=2), ["a", "a", "b"], ["a", "b"]) == 1.0
    assert value(PrecisionAtK(k=2), ["a", "a", "x"], ["a"]) == 0.5
    assert value(MeanReciprocalRank(), ["x", "x", "a"], ["a"]) == 0.5


def test_mrr_looks_at_the_first_hit() -> None:
    assert value(MeanReciprocalRank(), ["x", "y", "b", "a"], ["a", "b"]) == pytest.approx(1 / 3)
    assert value(MeanReciprocalRank(k=2), ["x", "y", "b"], ["b"]) == 0.0


def test_ndcg_rewards_good_chunks_early() -> None:
    # Jarvelin and Kekalainen's discount, worked out by hand
    got = 1 / math.log2(2) + 3 / math.log2(4)
    best = 3 / math.log2(2) + 1 / math.log2(3)
    assert value(Ndcg(), ["b", "x", "a"], {"a": 3, "b": 1}) == pytest.approx(got / best)
    assert value(Ndcg(k=1), ["b", "a"], {"a": 3, "b": 1}) == pytest.approx(1 / 3)
    assert value(Ndcg(), ["a", "b"], {"a": 3, "b": 1, "zero": 0}) == 1.0
    assert value(Ndcg(), ["b", "a"], ["a", "b"]) == 1.0


def test_reason_findings_and_details_name_hits_and_misses() -> None:
    case = Case("c1", expected={"ids": ["a", "b", "c"]})
    score = RecallAtK(expected="ids")(case, Reply("", retrieved=("x", "a")))
    assert score.reason == "1 of 3 relevant chunks among 2 retrieved; missing: b, c"
    assert [f.message for f in score.findings] == ["not retrieved: 'b'", "not retrieved: 'c'"]
    assert score.details == {"hits": ["a"], "missing": ["b", "c"]}
    full = RecallAtK(expected="ids")(case, Reply("", retrieved=("a", "b", "c")))
    assert full.reason == "3 of 3 relevant chunks among 3 retrieved"


@pytest.mark.parametrize("scorer", ALL, ids=lambda kind: kind.NAME)
def test_retrieval_without_ids_or_relevant_chunks_is_not_measured(scorer: Any) -> None:
    case = Case("c1", expected={"chunks": ["a"]})
    score = scorer()(case, Reply("fine"))
    assert score.status is ScoreStatus.NOT_MEASURED
    assert score.reason == "the task returned no 'retrieved' ids, so retrieval was not measured"
    empty = scorer()(Case("c1", expected={"chunks": []}), Reply("", retrieved=("a",)))
    assert (empty.status, empty.reason) == (
        ScoreStatus.NOT_MEASURED,
        "no chunk is relevant to this case",
    )
    # an empty answer is generation's fault, not retrieval's
    assert scorer()(case, Reply("", retrieved=("a",))).value == 1.0


@pytest.mark.parametrize("scorer", ALL, ids=lambda kind: kind.NAME)
def test_wrong_annotations_and_settings_name_the_case(scorer: Any) -> None:
    reply = Reply("", retrieved=("a",))
    with pytest.raises(ScorerError, match=r"case 'c1' has no 'expected.chunks'"):
        scorer()(Case("c1"), reply)
    for wrong in ("a", 4, [1], {"a": "high"}, {"a": -1}, {"a": math.inf}):
        with pytest.raises(ScorerError, match=rf"must list chunk ids.*{scorer.NAME}"):
            scorer()(Case("c1", expected={"chunks": wrong}), reply)
    with pytest.raises(ScorerError, match="k = -1 is below 0"):
        scorer(k=-1)


@given(
    retrieved=st.lists(st.sampled_from("abcdef"), max_size=8),
    chunks=st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 3), min_size=1),
    k=st.integers(0, 5),
)
def test_every_measure_stays_in_range_and_is_1_for_the_perfect_order(
    retrieved: list[str], chunks: dict[str, int], k: int
) -> None:
    perfect = sorted(chunks, key=lambda chunk: -chunks[chunk])
    for scorer in ALL:
        assert 0.0 <= value(scorer(k=k), retrieved, chunks) <= 1.0
        if scorer is not PrecisionAtK and (scorer is not RecallAtK or not 0 < k < len(chunks)):
            assert value(scorer(k=k), perfect, chunks) == pytest.approx(1.0)
