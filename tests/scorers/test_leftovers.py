# ruff: noqa: E501 - a row of a table stands on one line
from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalkit.records import Case, Reply, Score
from evalkit.scorers.leftovers import NoBoilerplate, NoLeftovers, boilerplate_in, leftovers_in

LINES = (Path(__file__).parent.parent / "failure_cases" / "cases.jsonl").read_text("utf-8")
E07 = next(c for line in LINES.split("\n") if line for c in [json.loads(line)] if c["id"] == "E07")
CASE = Case("c")


def test_e07_what_a_reader_of_the_finished_report_would_see() -> None:
    lines = E07["input"]["lines"]
    seen = [bool(leftovers_in(line) or boilerplate_in(line)) for line in lines]
    assert seen == E07["expected"]["value"]
    scored = [
        NoLeftovers()(CASE, Reply(line)).value == NoBoilerplate()(CASE, Reply(line)).value == 1.0
        for line in lines
    ]
    assert scored == [not value for value in E07["expected"]["value"]]


def test_leftovers_in_comments_are_listed_apart() -> None:
    text = "% TODO one\n\\section{A} 5\\% FIXME\n\\alpha % TBD, and TODO\n% fine\n"
    score = NoLeftovers()(CASE, Reply(text))
    assert (score.value, score.reason) == (0.0, "1 leftover: 'FIXME'")
    assert score.details == {"in_comments": 2}
    (finding,) = score.findings
    assert text[finding.start : finding.end] == "FIXME"
    assert finding.message == "leftover: 'FIXME'"
    clean = NoLeftovers()(CASE, Reply("% TODO one"))
    assert clean == Score(1.0, "no leftover", details={"in_comments": 1})


@pytest.mark.parametrize(
    "text",
    [
        "TODO", "a TODO: units", "FIXME", "TBC", "XXXX", "see XXX: units", "[XXX]", r"\todo[inline]{check}",
        r"\fixme{a}", r"\missingfigure{b}", "LOREM IPSUM", "PLACEHOLDER", "[placeholder for a name]", "<Placeholder>",
        "[Insert date]", "<your name>", "[add units here]", "[TODO]", "[describe the setup]", "[citation needed]", "????",
        "Dear {{ name }},", "{{name|upper}}", "{%- if x %}", "<|im_end|>", "[/INST]", "<<SYS>>", "<end_of_turn>",
        "此处插入图片", "待补充", "（待定）", "【待补】", "占位符", "某某公司",
    ],
)  # fmt: skip
def test_leftovers(text: str) -> None:
    assert len(leftovers_in(text)) == 1
    assert NoLeftovers()(CASE, Reply(f"x {text} y")).value == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "the TODO list", "A TODO app", "TODO EL MUNDO", "TODO O DIA", "método todo", "Louis XXX", "a-TODO-b", "TODOS",
        "what???", "{{a}}^{{b}}", "x_{{ab}}", "`TODO`", "```\nTODO\n```", "~~~\nTODO\n~~~", r"\verb|TODO|",
        "\\begin{lstlisting}\nTODO\n\\end{lstlisting}", "\\begin{comment}TODO\\end{comment}",
        "\\begin{verbatim}\nTODO", "the [1] and [a] marks", "<b>bold</b>", "等待补给", "一个待办",
    ],
)  # fmt: skip
def test_what_is_no_leftover(text: str) -> None:
    assert leftovers_in(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "As an AI, I cannot see it.", "as an AI language model, I", "as a large language model", "Certainly!",
        "- Sure, here is the list:", "Of course. Below you find it", "Absolutely! Yes", "Great question! It",
        "Here is the report you asked for.", "Here's a summary as requested", "I hope this helps!", "Let me know if you need more",
        "Feel free to ask any questions", "I’d be happy to help", "How can I assist you", "my knowledge cutoff",
        "As of my last update, it", "Is there anything else I can do?",
        "作为一个人工智能语言模型，我无法", "作为AI助手，我", "希望这些内容对您有所帮助", "当然！以下是报告", "好的，这是您要的", "以下是您要求的报告",
        "如有任何问题，请随时告诉我", "截至我的知识更新", "很高兴为您服务",
    ],
)  # fmt: skip
def test_boilerplate(text: str) -> None:
    assert len(boilerplate_in(text)) == 1
    assert NoBoilerplate()(CASE, Reply(f"Facts.\n{text}")).value == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "an AI model was trained", "as an AI researcher", "We are certainly late.", "She said: certainly!", "It is not certainly! so",
        "He is sure, here and now", "It said “I hope this helps” to all.", "`I hope this helps`", "% I hope this helps",
        "Here is the data.", "Let me know", "作为一个城市，我们", "希望明天下雨", "他说好的，以下是", "如果下雨，请带伞",
        "\u201cAs an AI, I cannot see it\u201d, it wrote.",
    ],
)  # fmt: skip
def test_what_is_no_boilerplate(text: str) -> None:
    assert boilerplate_in(text) == []


def test_findings_are_ordered_bounded_and_in_place() -> None:
    text = "Certainly!\nFacts. 希望这对您有帮助。I hope this helps!"
    score = NoBoilerplate()(CASE, Reply(text))
    assert [text[f.start : f.end] for f in score.findings] == [
        "Certainly!",
        "希望这对您有帮助",
        "I hope this helps",
    ]
    assert score.reason == ("3 boilerplate: 'Certainly!', '希望这对您有帮助', 'I hope this helps'")
    many = NoLeftovers()(CASE, Reply("FIXME " * 50))
    assert (len(many.findings), many.reason[:11]) == (20, "50 leftover")


def test_thinking_and_other_fields_do_not_count() -> None:
    text = '<think>TODO Certainly!</think>{"a": "FIXME", "b": "I hope this helps"}'
    assert NoLeftovers(field="b")(CASE, Reply(text)).value == 1.0
    assert NoLeftovers(field="a")(CASE, Reply(text)).value == 0.0
    assert NoBoilerplate(field="a")(CASE, Reply(text)).value == 1.0
    assert NoBoilerplate(field="b")(CASE, Reply(text)).findings[0].start is None
    assert NoLeftovers()(CASE, Reply("")).reason == "no answer: the reply is empty"
    assert NoBoilerplate()(CASE, Reply("")).reason == "no answer: the reply is empty"


def test_small_talk_opens_a_line_with_at_most_twenty_marks_before_it() -> None:
    assert boilerplate_in("*" * 19 + " Certainly! x") != []
    assert boilerplate_in("a" + "*" * 18 + " Certainly! x") == []
    assert boilerplate_in("a\n- Certainly! x") != []
