"""label.py without a browser: the state it prints, what a session writes, what is exported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from label_runs import two_runs

from evalkit.cases.suite import load_suite
from evalkit.errors import AnchorError, UsageError
from evalkit.runs.label_desk import LabelDesk
from evalkit.runs.label_task import LabelChoices, LabelTask, make_task
from evalkit.validity.anchor_files import load_anchor
from evalkit.validity.blind import Session
from evalkit.validity.labels import read_labels
from evalkit.validity.sampling_plan import read_plan

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "label.py"


def desk_and_task(project: Path, **choices: object) -> tuple[LabelDesk, LabelTask]:
    desk = LabelDesk(project / "exports", strict=True)
    suite = load_suite(project / "golden" / "mini")
    task = desk.task(suite, LabelChoices(**choices))  # type: ignore[arg-type]
    assert task is not None
    return desk, task


def label_all(desk: LabelDesk, task: LabelTask, keys: str) -> Session:
    """A person at the keyboard who reads for a second each."""
    now = [0.0]
    session = task.session()
    session.clock = lambda: now[0]
    for turn in range(len(task.items)):
        shown = session.show()
        assert shown is not None
        now[0] += 1.0
        desk.press(task, session, shown, shown.choices[int(keys[turn % len(keys)]) - 1])
        assert desk.said == "saved"
    return session


def script(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(NOTEBOOK), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_script_prints_the_state_and_never_labels(tmp_path: Path) -> None:
    two_runs(tmp_path)
    done = script(tmp_path, "--suite", "golden/mini", "--annotator", "ann")
    assert done.returncode == 0, done.stderr
    assert "ann: 0 of 10 labelled" in done.stdout
    assert "No item has two labels yet." in done.stdout
    assert not (tmp_path / "golden" / "mini" / "labels").exists()
    nothing = script(tmp_path, "--suite", "golden/mini", "--kind", "levels", "--levels", "1,b")
    assert nothing.returncode == 2
    assert "whole numbers" in nothing.stderr


def test_its_cells_run_in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evalkit.params import LabelParams

    two_runs(tmp_path)
    desk, task = desk_and_task(tmp_path, annotator="ann")
    label_all(desk, task, "1")
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.chdir(tmp_path)
    from notebooks.label import app

    params = LabelParams(suite="golden/mini", annotator="ann", out="exports")
    _, defs = app.run(defs={"params": params})
    assert defs["task"].path == Path("golden/mini/labels") / task.path.name
    assert defs["desk"].progress(defs["task"]).done == 10


def test_what_is_shown_holds_no_source_and_the_plan_is_recorded_before_the_first_label(
    tmp_path: Path,
) -> None:
    two_runs(tmp_path)
    desk, task = desk_and_task(tmp_path, annotator="ann", sample=4)
    session = task.session()
    shown = session.show()
    assert shown is not None
    seen = " ".join([shown.token, shown.question, *shown.texts, *shown.choices])
    for hidden in (*task.sources, "secretmodel", "secretplain", *(i.id for i in task.items)):
        assert hidden not in seen
    assert not task.path.exists()
    desk.press(task, session, shown, "left")
    assert "sooner than 0.3 s" in desk.said  # nobody reads that fast
    assert read_labels(task.path) == ()
    plan = read_plan(task.folder, task.plan.id)
    assert (plan.draw, len(plan.items), plan.population) == ("random", 4, 10)


def test_two_people_agree_or_differ_in_words_that_tell_no_source(tmp_path: Path) -> None:
    two_runs(tmp_path)
    for who, keys in (("ann", "1"), ("bob", "13")):
        desk, task = desk_and_task(tmp_path, annotator=who)
        label_all(desk, task, keys)
    state = desk.state(task)
    assert (state.progress.done, state.progress.total) == (10, 10)
    assert state.agreed.n_shared == 10
    assert state.disputes
    words = {word for dispute in state.disputes for word in dispute.said.values()}
    assert words == {"left", "right"}
    assert "on 10 items" in state.agreed.sentence


def test_labels_go_out_as_an_anchor_of_people(tmp_path: Path) -> None:
    two_runs(tmp_path)
    choices = {"annotator": "ann", "kind": "yes_no", "criterion": "polite"}
    desk, task = desk_and_task(tmp_path, **choices)
    label_all(desk, task, "12")
    path = desk.export(task)
    assert path is not None
    assert path.parent == tmp_path / "golden" / "mini" / "anchors"
    anchor = load_anchor(path)
    assert (anchor.provenance, anchor.domain, anchor.kind) == ("human", "words/en", "criteria")
    assert len(anchor.truth) == 10
    assert "ann" in anchor.people


def test_a_judged_run_gives_a_corrected_rate_from_a_draw_by_verdict(tmp_path: Path) -> None:
    two_runs(tmp_path, cases=60, judged=True)
    choices = {"annotator": "ann", "kind": "yes_no", "criterion": "polite", "draw": "by_verdict"}
    desk, task = desk_and_task(tmp_path, **choices, sample=30)
    assert task.question == "Is the reply polite?"
    assert task.asked == "is_polite"
    assert "Not corrected" in desk.state(task).corrected  # no label yet
    label_all(desk, task, "1112")
    corrected = desk.state(task).corrected
    assert "by weighting 30 labels by the judge's 60 verdicts" in corrected
    spot = make_task(
        task.suite,
        LabelChoices(**{**choices, "draw": "spot_check"}),  # type: ignore[arg-type]
        tmp_path / "exports",
    )
    label_all(desk, spot, "1")
    assert "spot check" in desk.state(spot).corrected


def test_classes_come_from_a_random_draw_never_from_one_that_the_judge_decided(
    tmp_path: Path,
) -> None:
    two_runs(tmp_path, cases=30, judged=True)
    choices = {"annotator": "ann", "kind": "yes_no", "criterion": "polite"}
    label_all(*desk_and_task(tmp_path, **choices, draw="by_verdict"), "12")
    with pytest.raises(AnchorError, match="nobody has labelled a random draw"):
        desk_and_task(tmp_path, **choices, draw="by_class")
    label_all(*desk_and_task(tmp_path, **choices), "112")
    desk, task = desk_and_task(tmp_path, **choices, draw="by_class", sample=10)
    assert task.plan.per_class == {"no": 5, "yes": 5}
    label_all(desk, task, "1")
    _, again = desk_and_task(tmp_path, **choices, draw="by_class", sample=10)
    assert again.plan.id == task.plan.id  # a reload goes on, whatever was labelled since


def test_a_judge_that_guesses_corrects_nothing(tmp_path: Path) -> None:
    two_runs(tmp_path, cases=90, judged=True)
    choices = {"annotator": "ann", "kind": "yes_no", "criterion": "polite"}
    desk, task = desk_and_task(tmp_path, **choices, sample=60)
    label_all(desk, task, "12")
    corrected = desk.state(task).corrected
    assert corrected.startswith("Not corrected: the judge is too weak")
    assert "The labels alone say" in corrected


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"draw": "by_verdict", "kind": "yes_no", "criterion": "polite"}, "no judge's verdicts"),
        ({"draw": "by_class", "kind": "yes_no", "criterion": "polite"}, "nobody has labelled"),
        ({"draw": "spot_check"}, "pairs are drawn by --plan random"),
        ({"source": "nowhere"}, "nowhere"),
    ],
)
def test_a_draw_that_cannot_be_made_says_why(
    tmp_path: Path, choices: dict[str, str], said: str
) -> None:
    two_runs(tmp_path, cases=3)
    with pytest.raises((AnchorError, UsageError), match=said):
        desk_and_task(tmp_path, annotator="ann", **choices)


def test_without_a_run_there_is_nothing_to_label(tmp_path: Path) -> None:
    from mini_suite import write_suite

    write_suite(tmp_path / "golden" / "mini")
    with pytest.raises(UsageError, match="has no run to label"):
        desk_and_task(tmp_path, annotator="ann")


def test_a_case_at_hand_joins_the_golden_set_with_its_reason(tmp_path: Path) -> None:
    two_runs(tmp_path, cases=3)
    desk, task = desk_and_task(tmp_path, annotator="ann")
    session = task.session()
    session.show()
    added = desk.add_shown(task, session, "both replies miss the point")
    assert added is not None
    cases = load_suite(tmp_path / "golden" / "mini").cases
    assert len(cases) == 4
    assert cases[-1].why == "both replies miss the point"
