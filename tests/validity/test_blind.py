from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import AnchorError
from evalkit.validity.blind import BlindItem, Session, Shown, order_for, sides
from evalkit.validity.labels import read_labels


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


PAIRS = [
    BlindItem(
        f"case-{i:02d}", {"baseline-v1": f"first text {i}", "candidate-v2": f"other text {i}"}
    )
    for i in range(10)
]


def session(path: Path, clock: Clock, annotator: str = "ann", **more: object) -> Session:
    return Session(PAIRS, path, annotator, clock=clock, **more)  # type: ignore[arg-type]


def press(at: Session, clock: Clock, choice: str) -> Shown:
    shown = at.show()
    assert shown is not None
    clock.now += 1.0
    assert at.commit(shown.token, choice).label is not None
    return shown


def test_ten_pairs_with_a_reload_in_the_middle_lose_and_repeat_nothing(tmp_path: Path) -> None:
    path, clock, seen = tmp_path / "l.jsonl", Clock(), []
    first = session(path, clock)
    seen += [press(first, clock, "left").token for _ in range(4)]
    again = session(path, clock)
    seen += [press(again, clock, "right").token for _ in range(6)]
    assert again.show() is None
    assert len(set(seen)) == 10
    assert {label.item_id for label in read_labels(path)} == {item.id for item in PAIRS}


def test_the_page_never_gets_the_hidden_identity(tmp_path: Path) -> None:
    clock = Clock()
    at = session(tmp_path / "l.jsonl", clock)
    for _ in PAIRS:
        page = str(asdict(press(at, clock, "tie")))
        assert "baseline" not in page
        assert "candidate" not in page
        assert "case-" not in page


def test_the_label_names_the_source_and_the_side_it_stood_on(tmp_path: Path) -> None:
    path, clock = tmp_path / "l.jsonl", Clock()
    at = session(path, clock, plan="p1", criterion="better")
    press(at, clock, "left")
    label = read_labels(path)[0]
    assert (
        label.label
        == label.side
        == sides(next(i for i in PAIRS if i.id == label.item_id), "evalkit")[0]
    )
    assert (label.plan, label.criterion, label.annotator) == ("p1", "better", "ann")


def test_both_sources_stand_left_about_as_often() -> None:
    items = [BlindItem(f"x{i}", {"a": "1", "b": "2"}) for i in range(400)]
    left = sum(sides(item, "salt")[0] == "a" for item in items)
    assert 150 < left < 250
    assert [sides(i, "salt") for i in items] != [sides(i, "other salt") for i in items]


def test_a_press_faster_than_reading_is_refused(tmp_path: Path) -> None:
    clock = Clock()
    at = session(tmp_path / "l.jsonl", clock)
    shown = at.show()
    assert shown is not None
    clock.now += 0.299
    assert at.commit(shown.token, "left").label is None
    at.show()  # a redraw of the same item does not restart its clock
    clock.now += 0.002
    assert at.commit(shown.token, "left").label is not None


def test_a_second_press_before_the_next_item_is_drawn_labels_nothing(tmp_path: Path) -> None:
    path, clock = tmp_path / "l.jsonl", Clock()
    at = session(path, clock)
    shown = press(at, clock, "left")
    assert "nothing is on the screen" in at.commit(shown.token, "left").sentence
    at.show()
    clock.now += 5
    assert "has changed" in at.commit(shown.token, "left").sentence
    assert len(read_labels(path)) == 1


def test_undo_shows_the_item_again_and_skip_puts_it_last(tmp_path: Path) -> None:
    path, clock = tmp_path / "l.jsonl", Clock()
    at = session(path, clock)
    first, second = press(at, clock, "left"), press(at, clock, "left")
    assert at.undo().label is not None
    assert at.undo().label is not None
    shown = at.show()
    assert shown is not None
    assert shown.token == first.token
    clock.now += 1
    assert at.skip(shown.token).label is not None
    assert press(at, clock, "tie").token == second.token
    tokens = [press(at, clock, "tie").token for _ in range(9)]
    assert tokens[-1] == first.token
    assert at.show() is None


def test_a_second_window_of_one_person_labels_nothing_twice(tmp_path: Path) -> None:
    path, clock = tmp_path / "l.jsonl", Clock()
    one, other = session(path, clock), session(path, clock)
    first, same = one.show(), other.show()
    assert first is not None
    assert same is not None
    assert first.token == same.token
    clock.now += 1
    assert one.commit(first.token, "left").label is not None
    assert "another window" in other.commit(same.token, "right").sentence
    shown = other.show()
    assert shown is not None
    assert shown.token != first.token
    assert len(read_labels(path)) == 1


def test_undo_without_a_label_says_so(tmp_path: Path) -> None:
    assert session(tmp_path / "l.jsonl", Clock()).undo().sentence == "nothing to take back"


def test_two_annotators_see_different_orders_and_keep_apart(tmp_path: Path) -> None:
    path, clock = tmp_path / "l.jsonl", Clock()
    ann, bob = session(path, clock), session(path, clock, "bob")
    press(ann, clock, "left")
    shown = bob.show()
    assert shown is not None
    assert shown.done == 0
    ids = [item.id for item in PAIRS]
    assert order_for(ids, "ann", 7) != order_for(ids, "bob", 7)


def test_single_drafts_take_levels_and_cannot_tell(tmp_path: Path) -> None:
    path, clock = tmp_path / "l.jsonl", Clock()
    at = Session([BlindItem("e", {"model": "text"})], path, "ann", levels=("1", "2"), clock=clock)
    shown = at.show()
    assert shown is not None
    assert shown.choices == ("1", "2")
    clock.now += 1
    with pytest.raises(AnchorError, match="choose one of"):
        at.commit(shown.token, "3")
    label = at.commit(shown.token, "cannot_tell").label
    assert label is not None
    assert label.label == "cannot_tell"


def test_texts_are_masked_before_they_are_shown(tmp_path: Path) -> None:
    drafts = {
        "run-7f3a": "As run-7f3a says, SmolLM2-135M by Ann knows install.md.",
        "b": "Nothing.",
    }
    item = BlindItem("e", drafts, question="What does install.md say?")
    shown = Session([item], tmp_path / "l", "ann", names=("Ann",)).show()
    assert shown is not None
    text = next(t for t in shown.texts if t != "Nothing.")
    assert text == "As [name] says, [model] by [name] knows install.md."


@given(st.lists(st.text(min_size=1), unique=True, min_size=1, max_size=20), st.integers())
def test_an_order_is_a_permutation(ids: list[str], seed: int) -> None:
    assert sorted(order_for(ids, "ann", seed)) == sorted(ids)
