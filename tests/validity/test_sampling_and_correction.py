from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evalkit.errors import AnchorError
from evalkit.validity.corrected import corrected_rate
from evalkit.validity.labels import Label
from evalkit.validity.sampling_plan import (
    Draw,
    Plan,
    by_class_plan,
    by_verdict_plan,
    random_plan,
    read_plan,
    spot_check_plan,
    write_plan,
)


def traffic(
    n: int, *, rate: float, tpr: float, tnr: float, seed: int
) -> tuple[dict[str, float], dict[str, float]]:
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < rate).astype(float)
    passed = np.where(truth == 1, rng.random(n) < tpr, rng.random(n) >= tnr).astype(float)
    names = [f"c{i}#0" for i in range(n)]
    return (
        dict(zip(names, map(float, truth), strict=True)),
        dict(zip(names, map(float, passed), strict=True)),
    )


def labels_of(plan: Plan, truth: dict[str, float]) -> list[Label]:
    return [
        Label(item_id=i, annotator="ann", criterion="faith", plan=plan.id,
              label="yes" if truth[i] else "no")
        for i in plan.items
    ]  # fmt: skip


def words(values: dict[str, float]) -> dict[str, str]:
    return {item: "yes" if value else "no" for item, value in values.items()}


def test_a_random_plan_gives_ppi_and_says_what_it_is_worth() -> None:
    truth, verdicts = traffic(1200, rate=0.8, tpr=0.97, tnr=0.9, seed=11)
    plan = random_plan([*truth], 100, run="r1", criterion="faith")
    found = corrected_rate(labels_of(plan, truth), verdicts, plan)
    assert found.method == "PPI++"
    assert found.rate is not None
    assert found.labels_only is not None
    assert found.rate.ci_low < 0.8 < found.rate.ci_high
    assert found.worth > 1
    assert "times the 100 labels" in found.sentence


def test_a_plan_by_class_gives_rogan_gladen() -> None:
    truth, verdicts = traffic(1200, rate=0.8, tpr=0.95, tnr=0.85, seed=2)
    plan = by_class_plan(words(truth), 60, run="r1", criterion="faith")
    assert dict(plan.per_class) == {"no": 60, "yes": 60}
    found = corrected_rate(labels_of(plan, truth), verdicts, plan)
    assert found.method == "Rogan-Gladen"
    assert found.rate is not None
    assert found.rate.ci_low < 0.8 < found.rate.ci_high
    assert found.labels_only is None


def test_labels_drawn_by_verdict_are_weighted_and_right_on_average() -> None:
    estimates = []
    for seed in range(60):
        truth, verdicts = traffic(800, rate=0.8, tpr=0.95, tnr=0.6, seed=seed)
        plan = by_verdict_plan(words(verdicts), 40, run="r", criterion="faith", seed=seed)
        found = corrected_rate(labels_of(plan, truth), verdicts, plan)
        assert found.rate is not None
        assert found.method == "weighted by verdict"
        estimates.append(found.rate.estimate - np.mean([*truth.values()]))
    assert abs(np.mean(estimates)) < 0.012


def test_a_judge_that_guesses_is_refused_and_the_labels_stand() -> None:
    truth, verdicts = traffic(900, rate=0.7, tpr=0.6, tnr=0.4, seed=3)
    plan = random_plan([*truth], 80, run="r1", criterion="faith")
    found = corrected_rate(labels_of(plan, truth), verdicts, plan)
    assert found.rate is None
    assert "too weak" in found.sentence
    assert found.labels_only is not None
    assert "The labels alone say" in found.sentence
    by_class = by_class_plan(words(truth), 50, run="r1", criterion="faith")
    assert corrected_rate(labels_of(by_class, truth), verdicts, by_class).rate is None


def test_a_spot_check_corrects_no_rate() -> None:
    truth, verdicts = traffic(300, rate=0.8, tpr=0.95, tnr=0.9, seed=4)
    said = {i: {"judge": v, "scorer": truth[i]} for i, v in verdicts.items()}
    plan = spot_check_plan(said, "judge", 50, run="r1", criterion="faith")
    found = corrected_rate(labels_of(plan, truth), verdicts, plan)
    assert found.rate is None
    assert "spot check" in found.sentence


def test_too_few_labels_are_refused() -> None:
    truth, verdicts = traffic(300, rate=0.7, tpr=0.97, tnr=0.97, seed=5)
    plan = random_plan([*truth], 39, run="r1", criterion="faith")
    assert "40 are needed" in corrected_rate(labels_of(plan, truth), verdicts, plan).sentence
    few = by_verdict_plan(words(verdicts), 9, run="r1", criterion="faith")
    assert "10 are needed" in corrected_rate(labels_of(few, truth), verdicts, few).sentence


def test_labels_of_another_plan_run_or_person_do_not_slip_in() -> None:
    truth, verdicts = traffic(300, rate=0.7, tpr=0.97, tnr=0.97, seed=6)
    plan = random_plan([*truth], 60, run="r1", criterion="faith")
    other = random_plan([*truth], 60, run="r2", criterion="faith")
    foreign = labels_of(other, truth)
    assert "Not corrected" in corrected_rate(foreign, verdicts, plan).sentence
    stray = Label(item_id="gone#0", annotator="a", criterion="faith", plan=plan.id, label="yes")
    with pytest.raises(AnchorError, match="not in run r1"):
        corrected_rate([stray], verdicts, plan)
    first = labels_of(plan, truth)[0]
    flipped = first.model_copy(
        update={"annotator": "bob", "label": "no" if first.label == "yes" else "yes"}
    )
    with pytest.raises(AnchorError, match="people disagree"):
        corrected_rate([first, flipped], verdicts, plan)


def test_a_spot_check_looks_at_contradicted_verdicts_first() -> None:
    said: dict[str, dict[str, float | None]] = {
        "calm": {"judge": 1.0, "lexical": 1.0, "other": 1.0},
        "doubt": {"judge": 1.0, "lexical": 0.0, "other": 0.0},
        "half": {"judge": 0.0, "lexical": 0.0, "other": 1.0},
        "unread": {"judge": None, "lexical": 1.0},
    }
    plan = spot_check_plan(said, "judge", 3, run="r", criterion="c")
    assert plan.items == ("doubt", "half", "calm")
    assert plan.population == 3


def test_the_plan_is_written_down_and_an_edit_of_it_is_found(tmp_path: Path) -> None:
    plan = random_plan([f"i{n}" for n in range(20)], 5, run="r", criterion="c")
    path = write_plan(plan, tmp_path)
    assert read_plan(tmp_path, plan.id) == plan
    assert plan == random_plan([f"i{n}" for n in range(20)], 5, run="r", criterion="c").model_copy(
        update={"made": plan.made}
    )
    path.write_text(path.read_text(encoding="utf-8").replace('"random"', '"by_class"'))
    with pytest.raises(AnchorError, match="changed after it was drawn"):
        read_plan(tmp_path, plan.id)
    with pytest.raises(AnchorError, match="no readable sampling plan"):
        read_plan(tmp_path, "nothing")


def test_every_draw_is_a_word_people_can_read() -> None:
    assert [d.value for d in Draw] == ["random", "by_verdict", "by_class", "spot_check"]
    with pytest.raises(AnchorError, match="nothing to draw"):
        random_plan([], 3, run="r", criterion="c")
