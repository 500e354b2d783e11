from __future__ import annotations

import asyncio
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from evalkit.cases.suite import Suite, load_suite
from evalkit.errors import AnchorError
from evalkit.judges import load_judge
from evalkit.models import local
from evalkit.records import Reply, Request
from evalkit.validity.admission_run import admission_requests, run_admission, seen_by_suite
from evalkit.validity.anchor_files import load_anchor
from evalkit.validity.anchors import Anchor, AnchorItem, AnchorKind, AnchorLabel, draw_per_band
from evalkit.validity.licence_check import check_licence, use_of
from evalkit.validity.provenance import Provenance
from evalkit.validity.reconstruction import load_pairs
from evalkit.validity.scoring import read_scores

SHIPPED = Path(__file__).resolve().parents[2] / "golden" / "docs_qa"
NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    folder = tmp_path / "docs_qa"
    shutil.copytree(SHIPPED, folder, ignore=shutil.ignore_patterns("licences"))
    return load_suite(folder)


async def agrees(request: Request) -> Reply:
    """A model that always says yes, or always prefers the first draft."""
    shown = request.messages[-1].content + json.dumps(request.schema or {})
    word = "yes" if "faithful" in shown else "A"
    body = {"justification": "sounds fine", "verdict": word}
    return Reply(json.dumps({"faithful": body} if word == "yes" else body))


def test_a_judge_that_always_agrees_is_eliminated_and_the_gate_refuses_it(suite: Suite) -> None:
    judge = load_judge(suite.folder / "judges" / "faithfulness.md")
    anchor = load_anchor(suite.folder / "anchors" / "faithfulness.csv")
    done: list[str] = []
    found = asyncio.run(run_admission(suite, [judge], anchor, agrees, on_done=done.append))
    assert len(done) == 61 * 5
    line = found.lines[0]
    assert (line.state, line.ruling) == ("ELIMINATED", "REWORK_RUBRIC")
    assert "kappa below .60" in line.sentence
    assert [x.judge for x in found.lines] == [
        "faithfulness",
        "always-first",
        "longer-wins",
        "random",
        "lexical",
    ]
    assert [step.reached for step in found.path_of(judge)] == [True, True, False, False, False]
    (path,) = found.write_licences(now=NOW)
    assert path.parent == suite.folder / "licences"
    use = use_of(judge, "faithfulness")
    ruling = check_licence(judge, suite.folder, domain=suite.domain, use=use, now=NOW)
    assert not ruling.valid
    assert "not licensed for criterion:faithful but for nothing" in ruling.sentence
    assert "ELIMINATED" in ruling.sentence


def test_the_saved_scores_give_the_same_ruling_again(suite: Suite, tmp_path: Path) -> None:
    from evalkit.validity.admission import admit_judge

    judge = load_judge(suite.folder / "judges" / "faithfulness.md")
    anchor = load_anchor(suite.folder / "anchors" / "faithfulness.csv")
    found = asyncio.run(run_admission(suite, [judge], anchor, agrees))
    paths = found.write_scores(tmp_path / "scores")
    assert len(paths) == 5
    again = admit_judge(judge, anchor, read_scores(paths[0]))
    assert again.headline == found.lines[0].headline
    assert again.state == found.lines[0].state


def test_a_pairwise_judge_that_follows_the_position_fails_the_shipped_pairs(suite: Suite) -> None:
    judge = load_judge(suite.folder / "judges" / "pairwise.md")
    known = load_pairs(suite.folder / "pairs.jsonl")
    assert len(admission_requests(suite, [judge], None, known)) == 2 * len(known.pairs)
    found = asyncio.run(run_admission(suite, [judge], None, agrees, known=known))
    assert found.reconstructed[0].state == "FAIL"
    found.write_licences(now=NOW)
    ruling = check_licence(judge, suite.folder, domain=suite.domain, use="pairwise", now=NOW)
    assert not ruling.valid
    assert "FAIL" in ruling.sentence


def test_what_the_suite_shows_its_models_is_taken_out_of_an_anchor(suite: Suite) -> None:
    seen = seen_by_suite(suite)
    assert any(text.where == "prompts/answer.md" for text in seen)
    anchor = load_anchor(suite.folder / "anchors" / "faithfulness.csv")
    shown = json.loads(anchor.items[2].output)["answer"] + " " + "and so on and so forth"
    (suite.folder / "prompts" / "few-shot.md").write_text(
        f"# user\nExample: {anchor.items[2].output} {shown}\n", encoding="utf-8"
    )
    judge = load_judge(suite.folder / "judges" / "faithfulness.md")
    found = asyncio.run(run_admission(suite, [judge], anchor, agrees))
    assert found.checked is not None
    assert [r.item_id for r in found.checked.refused] == [anchor.items[2].id]
    assert "1 item refused: the suite has shown them" in found.lines[0].warnings


def test_pairs_that_people_ranked_are_an_anchor_for_a_pairwise_judge(suite: Suite) -> None:
    judge = load_judge(suite.folder / "judges" / "pairwise.md")
    anchor = Anchor(
        name="ranked",
        kind=AnchorKind.PAIRS,
        domain=suite.domain,
        provenance=Provenance.HUMAN,
        categories=("1", "tie", "2"),
        items=tuple(
            AnchorItem(f"p{i}", f"strong text {i}", f"feeble text {i}", {"question": "Which?"})
            for i in range(12)
        ),
        labels=tuple(AnchorLabel(f"p{i}", "ann", "1") for i in range(12)),
    )

    async def sees(request: Request) -> Reply:
        shown = "\n".join(message.content for message in request.messages)
        first = shown.index("strong text") < shown.index("feeble text")
        return Reply(json.dumps({"justification": "x", "verdict": "A" if first else "B"}))

    assert len(admission_requests(suite, [judge], anchor)) == 24
    found = asyncio.run(run_admission(suite, [judge], anchor, sees))
    assert found.lines == ()
    assert [step.reached for step in found.path_of(judge)] == [True, True, True, True, True]
    found.write_licences(now=NOW)
    ruling = check_licence(judge, suite.folder, domain=suite.domain, use="pairwise", now=NOW)
    assert ruling.valid, ruling.sentence


def test_nothing_to_score_is_said(suite: Suite) -> None:
    with pytest.raises(AnchorError, match="an anchor, known pairs, or both"):
        asyncio.run(run_admission(suite, [], None, agrees))


@pytest.mark.local_model
@pytest.mark.skipif(bool(local.why_unavailable()), reason=local.why_unavailable() or "present")
def test_the_local_model_is_not_licensed_on_the_shipped_anchor(suite: Suite) -> None:
    """Live, on four items: the whole anchor is `notebooks/admit.py`'s job."""
    from evalkit.models.client import Client
    from evalkit.models.endpoints import load_endpoints

    judge = load_judge(suite.folder / "judges" / "faithfulness.md")
    anchor = load_anchor(suite.folder / "anchors" / "faithfulness.csv")
    few = draw_per_band(anchor, per_band=2).anchor

    async def admitted() -> str:
        async with Client(load_endpoints(Path(__file__).resolve().parents[2])) as client:
            found = await run_admission(suite, [judge], few, client.ask)
        found.write_licences(now=NOW)
        return found.lines[0].state.value

    assert asyncio.run(admitted()) in ("ELIMINATED", "NOT_CERTIFIED")
    use = use_of(judge, "faithfulness")
    ruling = check_licence(judge, suite.folder, domain=suite.domain, use=use, now=NOW)
    assert not ruling.valid
