from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from evalkit.errors import AnchorError
from evalkit.records import Case
from evalkit.validity.anchor_checks import SeenText, accept, seen_cases, similarity
from evalkit.validity.anchor_files import Columns, load_anchor, read_columns, read_rows
from evalkit.validity.anchor_readers import (
    read_arxiv_edits,
    read_asap,
    read_llmbar,
    read_pandalm,
)
from evalkit.validity.anchors import (
    Anchor,
    AnchorItem,
    AnchorKind,
    AnchorLabel,
    draw_per_band,
    short_is_never_right,
    write_anchor,
)
from evalkit.validity.degradations import DEGRADATIONS, weaken
from evalkit.validity.provenance import Provenance

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
HEADER = "item_id,annotator,label,provenance,domain,licence,split,output,input.question\n"
TEXT = (
    "The pendulum was timed over ten swings [1]. Its period is 2.01 s.\n\n"
    "The uncertainty of the period is 0.02 s, mostly from the stop watch \\cite{watch}.\n\n"
    "From this g follows as 9.77 m/s2, which agrees with the tables [2]."
)


def anchor(said: dict[str, str], outputs: dict[str, str] | None = None, **more: object) -> Anchor:
    texts = outputs or {}
    fields: dict[str, object] = {
        "name": "a",
        "kind": AnchorKind.CRITERIA,
        "domain": "d/en",
        "provenance": Provenance.HUMAN,
        "categories": ("no", "yes"),
        "items": tuple(AnchorItem(i, texts.get(i, f"text of {i}")) for i in said),
        "labels": tuple(AnchorLabel(i, "ann", label) for i, label in said.items()),
    } | more
    return Anchor(**fields)  # type: ignore[arg-type]


def csv(tmp_path: Path, rows: str) -> Path:
    path = tmp_path / "suite" / "anchors" / "a.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEADER + rows, encoding="utf-8")
    return path


def test_a_csv_gives_items_labels_and_its_origin(tmp_path: Path) -> None:
    found = load_anchor(csv(tmp_path, "i1,ann,yes,human,d/en,MIT,test,An answer,Why?\n"))
    assert (found.kind, found.domain, found.licence) == (AnchorKind.CRITERIA, "d/en", "MIT")
    assert found.provenance is Provenance.HUMAN
    assert found.items[0].case.inputs == {"question": "Why?"}
    assert found.items[0].replies[0].text == "An answer"


def test_unstated_provenance_is_unknown_and_counts_as_synthetic(tmp_path: Path) -> None:
    found = load_anchor(csv(tmp_path, "i1,ann,yes,,d/en,,,An answer,Why?\n"))
    assert found.provenance is Provenance.UNKNOWN
    assert not found.provenance.may_grant
    assert "counts as synthetic" in accept(found).warnings[0]


def test_one_row_that_is_not_human_makes_the_anchor_not_human(tmp_path: Path) -> None:
    rows = "i1,ann,yes,human,d/en,,,A,Q\ni2,ann,no,model,d/en,,,B,R\n"
    assert load_anchor(csv(tmp_path, rows)).provenance is Provenance.MODEL


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("i1,ann,yes,people,d/en,,,A,Q\n", "provenance 'people'"),
        ("i1,ann,yes,human,,,,A,Q\n", "one domain"),
        ("i1,ann,maybe,human,d,,,A,Q\n", "'maybe'"),
        ("i1,,yes,human,d,,,A,Q\n", "item_id and annotator"),
        ("i1,ann,,human,d,,,A,Q\n", "has no label"),
        ("i1,ann,yes,human,d,,,A,Q\ni1,bob,no,human,d,,,B,Q\n", "another text"),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, rows: str, message: str) -> None:
    with pytest.raises(AnchorError, match=message):
        load_anchor(csv(tmp_path, rows))


def test_pages_come_from_the_suite_and_from_nowhere_else(tmp_path: Path) -> None:
    head = "item_id,annotator,label,provenance,domain,output,context\n"
    path = csv(tmp_path, "")
    (path.parent.parent / "pages").mkdir()
    (path.parent.parent / "pages" / "p1.md").write_text("Page one.", encoding="utf-8")
    path.write_text(head + "i1,ann,yes,human,d,A,pages/p1.md\n", encoding="utf-8")
    assert load_anchor(path).items[0].context[0].text == "Page one."
    path.write_text(head + "i1,ann,yes,human,d,A,../../secret.md\n", encoding="utf-8")
    with pytest.raises(AnchorError, match="outside the suite"):
        load_anchor(path)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_writing_and_reading_give_the_same_anchor(tmp_path: Path, ending: str) -> None:
    before = anchor({"a": "yes", "b": "no"}, {"a": '=1+1, "quoted"\nline', "b": "误差"})
    write_anchor(before, tmp_path / f"a.{ending}")
    assert load_anchor(tmp_path / f"a.{ending}").digest == before.digest


def test_the_digest_sees_every_character_of_texts_labels_and_domain() -> None:
    base = anchor({"a": "yes", "b": "no"})
    others = [
        anchor({"a": "yes", "b": "yes"}),
        anchor({"a": "yes", "b": "no"}, {"a": "text of a."}),
        anchor({"a": "yes", "b": "no"}, domain="d/fr"),
        anchor({"a": "yes", "b": "no"}, provenance=Provenance.SYNTHETIC),
    ]
    assert len({base.digest, *(o.digest for o in others)}) == 5
    assert base.digest == replace(base, items=base.items[::-1]).digest


def test_the_truth_is_the_adjudicated_label_else_the_majority_else_nothing() -> None:
    labels = [
        *(AnchorLabel("a", who, said) for who, said in [("x", "yes"), ("y", "no"), ("z", "yes")]),
        *(AnchorLabel("b", who, said) for who, said in [("x", "yes"), ("adjudicated", "no")]),
        *(AnchorLabel("c", who, said) for who, said in [("x", "yes"), ("y", "no")]),
    ]
    found = anchor({"a": "yes", "b": "yes", "c": "yes"}, labels=tuple(labels))
    assert found.truth == {"a": "yes", "b": "no"}


def test_a_scale_takes_the_mean_and_its_band_is_rounded_half_up() -> None:
    labels = tuple(AnchorLabel("a", str(n), v) for n, v in enumerate(["2", "3"]))
    found = anchor(
        {"a": "2"}, labels=labels, kind=AnchorKind.SCALE, categories=("1", "2", "3", "4")
    )
    assert found.truth == {"a": "2.5"}
    assert found.band("2.5") == "3"


def test_the_draw_takes_twenty_of_each_band_and_names_the_short_ones() -> None:
    levels = tuple(str(i) for i in range(1, 7))
    labels = {f"i{i}": levels[min(i // 30, 5)] for i in range(155)}
    drawn = draw_per_band(anchor(labels, kind=AnchorKind.SCALE, categories=levels))
    assert dict(drawn.per_band) == {"1": 20, "2": 20, "3": 20, "4": 20, "5": 20, "6": 5}
    assert drawn.short == ("6",)
    assert drawn == draw_per_band(anchor(labels, kind=AnchorKind.SCALE, categories=levels))


def test_an_anchor_whose_short_answer_is_never_right_is_flagged() -> None:
    def pairs(preferred: str) -> Anchor:
        return anchor(
            {"a": "2", "b": "2", "c": preferred},
            kind=AnchorKind.PAIRS,
            categories=("1", "tie", "2"),
            items=tuple(AnchorItem(i, "short", "a much longer text") for i in "abc"),
        )

    assert "never the right one" in (short_is_never_right(pairs("2")) or "")
    assert short_is_never_right(pairs("1")) is None
    graded = anchor({"a": "yes", "b": "no"}, {"a": "long text here", "b": "no"})
    assert short_is_never_right(graded) is not None
    assert any("never the right one" in w for w in accept(graded).warnings)


def test_items_the_suite_has_shown_are_refused_by_id_and_by_near_duplicate_text() -> None:
    question = "How many days after delivery can a customer still send the parcel back"
    found = anchor(
        {i: "yes" for i in "abcd"},
        items=(
            AnchorItem("a", "some answer about nothing in particular"),
            AnchorItem("b", "x", inputs={"question": question + "?"}),
            AnchorItem("c", "You may return a parcel within thirty days of its delivery to you."),
            AnchorItem("d", "Yes."),
        ),
    )
    seen = [
        *seen_cases([Case("a", inputs={"question": "Other?"}, tags=("train",))], where="cases"),
        *seen_cases([Case("t", inputs={"question": question}, tags=("few_shot",))], where="cases"),
        *seen_cases([Case("u", inputs={"question": "Yes."})], where="cases"),
        SeenText(
            "prompts/answer.md",
            "Answer like this. Example: You may return a parcel within thirty days of its delivery "
            "to you. Yes. Now answer the question.",
        ),
    ]
    result = accept(found, seen)
    assert [item.id for item in result.anchor.items] == ["d"]
    assert {r.item_id: r.reason for r in result.refused} == {
        "a": "its id is the one of cases: case a",
        "b": "its text stands in cases: case t",
        "c": "its text stands in prompts/answer.md",
    }
    with pytest.raises(AnchorError, match="every item is known"):
        accept(found.keep("a"), seen)


def test_similarity_of_word_sequences() -> None:
    assert similarity("one two three four five", "One, two, three: four five!") == 1.0
    assert similarity("one two three four", "five six seven eight") == 0.0
    assert 0 < similarity("测量误差主要来自读数", "测量误差主要来自仪器") < 1


@pytest.mark.parametrize("how", DEGRADATIONS)
def test_an_anchor_built_from_our_own_degradations_is_refused_as_circular(how: str) -> None:
    built = anchor({"a": "yes", "b": "no"}, {"a": TEXT, "b": weaken(TEXT, how)})
    with pytest.raises(AnchorError, match="circular"):
        accept(built)
    only_weak = anchor({"b": "no"}, {"b": weaken(TEXT, how)})
    with pytest.raises(AnchorError, match="circular"):
        accept(only_weak, strong_texts=[TEXT])


def test_answers_that_differ_in_one_digit_are_no_circle() -> None:
    answers = {f"i{n}": f"It is {n}." for n in range(10)}
    accept(anchor({i: "yes" for i in answers}, answers))


@pytest.mark.parametrize("who", ["drop_citations", "scorer:report_score", "evalkit/pad"])
def test_labels_made_by_our_own_rules_are_refused_as_circular(who: str) -> None:
    made = anchor({"a": "yes"}, labels=(AnchorLabel("a", who, "yes"),))
    with pytest.raises(AnchorError, match="circular"):
        accept(made, own_names=["report_score"])
    declared = anchor({"a": "yes"}, labels=(AnchorLabel("a", "ann", "yes", made_by=who),))
    with pytest.raises(AnchorError, match="circular"):
        accept(declared, own_names=["report_score"])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("gone.csv", None, "is not there"),
        ("page.csv", "<!DOCTYPE html><title>Sign in</title>", "the download failed"),
        ("lfs.csv", "version https://git-lfs.github.com/spec/v1\noid x\n", "the download failed"),
        ("head.csv", "item_id,label\n", "holds no row"),
        ("bad.json", "{", "is not JSON"),
        ("flat.json", "[1]", "no list of objects"),
    ],
)
def test_a_failed_download_never_turns_into_made_up_data(
    tmp_path: Path, name: str, text: str | None, message: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(AnchorError, match=message):
        read_rows(tmp_path / name)


def test_asap_keeps_one_set_both_raters_and_the_resolved_score(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    head = "essay_id\tessay_set\tessay\trater1_domain1\trater2_domain1\tdomain1_score\n"
    path.write_bytes((head + "1\t4\tIt\x92s good\t2\t3\t3\n2\t5\tB\t1\t1\t1\n").encode("latin-1"))
    found = read_asap(path, essay_set=4)
    assert found.categories == ("0", "1", "2", "3")
    assert found.truth == {"1": "3"}
    assert found.items[0].output == "It’s good"
    assert found.provenance is Provenance.HUMAN


def test_arxiv_edits_keep_revisions_of_wording_and_drop_typos_and_content(tmp_path: Path) -> None:
    def entry(*intentions: str) -> dict[str, object]:
        edits = {str(i): {"intention": x} for i, x in enumerate(intentions)}
        return {"sentence-1": "before", "sentence-2": "after", "edits-combination-0": edits}

    path = tmp_path / "e.json"
    rows = [
        entry("Lang-professional-Improve-style", "Improve-grammar-Typo"),
        entry("Improve-grammar-Typo"),
        entry("Format"),
        entry("Lang-improve-readability-Simplify", "Content"),
    ]
    path.write_text(json.dumps({str(i): row for i, row in enumerate(rows)}), encoding="utf-8")
    found = read_arxiv_edits(path)
    assert [(i.output, i.other) for i in found.items] == [("before", "after")]
    assert list(found.truth.values()) == ["2"]


def test_llmbar_and_pandalm_files(tmp_path: Path) -> None:
    bar = [{"input": "Say hi", "output_1": "hi", "output_2": "no", "label": 1}]
    (tmp_path / "bar.json").write_text(json.dumps(bar), encoding="utf-8")
    assert list(read_llmbar(tmp_path / "bar.json").truth.values()) == ["1"]
    panda = {"idx": 0, "instruction": "x", "input": "", "response1": "a", "response2": "b"}
    panda |= {"annotator1": 0, "annotator2": 2, "annotator3": 2}
    (tmp_path / "p.json").write_text(json.dumps([panda]), encoding="utf-8")
    assert read_pandalm(tmp_path / "p.json").truth == {"0": "2"}


def test_naming_columns_without_saying_whose_labels_they_are_gives_no_human(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("k,v\na,3\nb,1\na,2\n", encoding="utf-8")

    def read(people: str) -> Anchor:
        return read_columns(
            path, Columns(labels=("v",), item="k"), kind=AnchorKind.SCALE, domain="d",
            people=people, categories=("1", "2", "3"),
        )  # fmt: skip

    assert read("").provenance is Provenance.UNKNOWN
    found = read("two teachers, 2024")
    assert found.provenance is Provenance.HUMAN
    assert found.truth == {"a": "3", "b": "1"}
    assert "1 repeated" in found.notes[0]
    with pytest.raises(AnchorError, match="no column 'w'"):
        read_columns(path, Columns(labels=("w",)), kind=AnchorKind.CRITERIA, domain="d")
    with pytest.raises(AnchorError, match="name the levels"):
        read_columns(path, Columns(labels=("v",)), kind=AnchorKind.SCALE, domain="d")


@pytest.mark.skipif(
    not SHARED.exists(), reason="the recorded judge data are not beside the project"
)
def test_the_recorded_real_tables_are_read_by_naming_their_columns() -> None:
    panda = read_columns(
        SHARED / "labels" / "pandalm_testset.csv",
        Columns(
            labels=("annotator1", "annotator2", "annotator3"),
            item="item_id",
            words={"0": "tie"},
        ),
        kind=AnchorKind.PAIRS,
        domain="instruction-following/en",
        people="PandaLM",
    )
    counts = [list(panda.truth.values()).count(c) for c in panda.categories]
    assert counts == [422, 105, 472]


def test_a_degradation_changes_the_text_the_same_way_each_time() -> None:
    weak = {how: weaken(TEXT, how) for how in DEGRADATIONS}
    assert weak == {how: weaken(TEXT, how) for how in DEGRADATIONS}
    assert "cite" not in weak["drop_citations"]
    assert "[1]" not in weak["drop_citations"]
    assert "uncertainty" not in weak["remove_error_analysis"]
    assert "9.77" not in weak["invent_numbers"]
    assert sorted(weak["shuffle_paragraphs"].split("\n\n")) == sorted(TEXT.split("\n\n"))
    assert len(weak["pad"]) > 1.3 * len(TEXT)


def test_the_section_about_errors_goes_and_the_document_still_ends() -> None:
    tex = "\\section{Result}\nA 1.\n\\section{Error analysis}\nB.\n"
    tex += "\\section{End}\nC.\n\\end{document}"
    weak = weaken(tex, "remove_error_analysis")
    assert "B." not in weak
    assert "C." in weak
    last = "\\section{Uncertainties}\nB.\n\\bibliography{x}\n\\end{document}"
    assert "\\end{document}" in weaken(last, "remove_error_analysis")


def test_a_degradation_with_nothing_to_change_says_so() -> None:
    with pytest.raises(AnchorError, match="nothing to change"):
        weaken("No citation here.", "drop_citations")
    with pytest.raises(AnchorError, match="there are"):
        weaken("x", "nonsense")
