"""What a finished text must not show: marks of unfinished work, and an assistant's small talk."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from evalkit.records import Case, Reply, Score
from evalkit.scorers.answer import Answer, answer_of
from evalkit.scorers.quoting import blank_code, blank_comments, blank_quotes, comments_of

__all__ = ["NoBoilerplate", "NoLeftovers", "boilerplate_in", "leftovers_in"]

_MAX_FINDINGS = 20
_LEFTOVER = re.compile(
    r"(?=[TFXPLlp\\\[<?{待此占示【（(某])(?:"
    # notes to oneself; "TODO list" names a thing, and Spanish and Portuguese capitals spell "all"
    r"(?<![\w-])TODO(?![\w-])(?!\s+(?i:lists?|apps?|items?)\b)(?!\s+(?:EL|LO|ES|ESTE|ESO|SE|O|MUNDO)\b)"
    r"|(?<![\w-])(?:FIXME|TBD|TBC)(?![\w-])|\bX{4,}\b|\bXXX(?=:)|\[XXX\]"
    r"|\\(?:todo|fixme|missingfigure)\b\s*(?:\[[^\]\n]{0,200}\])?\{[^}\n]{0,200}"
    # placeholders
    r"|(?i:\blorem ipsum\b)|\bPLACEHOLDER\b|(?i:[\[<]placeholder\b[^\]>\n]{0,80}[\]>])"
    r"|(?i:[\[<](?:insert|add|enter|fill in|replace|describe|your|todo|tbd)\b[^\]>\n]{0,80}[\]>])"
    r"|(?i:\[citation needed\])|\?{4,}"
    # what a template leaves behind
    r"|(?<![\w^}\\])\{\{[-+]?\s*[A-Za-z_][\w.]+(?:\s*\|[^{}\n]{0,80})?\s*[-+]?\}\}|\{%[-+]?\s*(?:if|for|else|endif|endfor|set)\b"
    r"|<\|(?:im_start|im_end|endoftext|eot_id|end_of_text|begin_of_text|start_header_id|end|assistant|user)\|>"
    r"|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>"
    # Chinese
    r"|待(?:补充|完善|填写|定稿|续写|插入|核实后补)|此处(?:插入|填写|补充|省略)|占位(?:符|文本)|示例文本"
    r"|[【\[（(]待[^】\]）)\n]{0,20}[】\]）)]|某某(?:公司|大学|学校))"
)
# The group "opens" of each is small talk only where they open a line.
_ENGLISH = re.compile(
    r"(?<![A-Za-z])(?=[abcfghilmoprsw])(?:"
    r"(?P<opens>(?:certainly|sure(?: thing)?|of course|absolutely|great question|happy to help)"
    r"\s*[!,.](?=[^\n]{0,80}(?:here|below|i'?d|i'?ll|i can|let'?s|:\s*$))"
    r"|(?:certainly|great question|absolutely)\s*!"
    r"|here(?:'s| is| are) (?:the|a|an|your) [^.\n]{0,60}"
    r"(?:you (?:asked|requested|wanted)|as requested))"
    r"|as an? (?:ai|artificial intelligence)\b(?: (?:language )?model| assistant)?(?=,| I\b)"
    r"|as a (?:large )?language model\b"
    r"|I hope (?:this|that|it) helps\b"
    r"|(?:let me know|feel free to (?:ask|reach out|let me know))\b"
    r"[^.\n]{0,60}(?:if|any|further|more|questions?|need)\b"
    r"|I(?:'d| would) be (?:happy|glad) to (?:help|assist)\b"
    r"|how (?:can|may) I (?:help|assist) you\b"
    r"|(?:my|as of my) (?:knowledge cut-?off|last (?:knowledge )?update|training data)\b"
    r"|is there anything else (?:I|you)\b)",
    re.IGNORECASE | re.MULTILINE,
)
_CHINESE = re.compile(
    r"(?P<opens>(?:当然(?:可以)?|好的|没问题|当然没问题)[，,！!。]"
    r"[^。\n]{0,30}(?:以下|下面|这是|为您|为你)"
    r"|以下是(?:您|你)(?:要求|需要|想要)的)"
    r"|作为(?:一个|一名|一款)?(?:AI|人工智能|大型?语言模型|语言模型|智能)(?:语言)?"
    r"(?:助手|模型|助理)?[，,]?(?=我|无法|不能|并)"
    r"|希望(?:这|以上|上述|本|我的)?[^。！\n]{0,20}(?:对(?:您|你)|能)[^。！\n]{0,6}(?:有所?帮助|帮到)"
    r"|如(?:果|有)?(?:您|你)?(?:还)?(?:有|需要)?[^。！\n]{0,20}(?:随时|尽管)"
    r"[^。！\n]{0,4}(?:告诉|联系|问|提问|询问)"
    r"|截至我(?:的)?(?:知识|训练|最后)|(?:很高兴|乐意)(?:为您|为你|能(?:够)?)(?:服务|解答|帮)"
)


def leftovers_in(text: str) -> list[tuple[int, int]]:
    """Where a reader of the text would see unfinished work; code and comments do not show."""
    return [found.span() for found in _LEFTOVER.finditer(blank_comments(blank_code(text)))]


def boilerplate_in(text: str) -> list[tuple[int, int]]:
    """Where an assistant speaks of itself or to its user, outside of quotes and code."""
    shown = blank_quotes(blank_comments(blank_code(text))).replace("’", "'")
    return sorted(
        found.span()
        for phrases in (_ENGLISH, _CHINESE)
        for found in phrases.finditer(shown)
        if not found["opens"] or _opens_line(shown, found.start())
    )


def _opens_line(text: str, at: int) -> bool:
    """Whether nothing but marks, such as a bullet, stands before it in its line."""
    before = text[max(0, at - 20) : at]
    return not any(char.isalnum() for char in before.rpartition("\n")[2])


@dataclass(frozen=True, kw_only=True)
class NoLeftovers:
    """1.0 when no TODO, placeholder or template residue shows, else 0.0.

    Comments that hold one are counted apart (`details["in_comments"]`): a reader never sees them.

    Args:
        field: Look into this field of the JSON reply instead of the whole text.
    """

    field: str = ""

    VERSION: ClassVar[int] = 1

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Score one reply; each leftover is a finding."""
        answer = answer_of(case, reply, self.field)
        if isinstance(answer, Score):
            return answer
        places = leftovers_in(answer.text)
        comments = comments_of(blank_code(answer.text))
        hidden = sum(1 for comment in comments if _LEFTOVER.search(comment))
        return _none_of(answer, places, "leftover", {"in_comments": hidden})


@dataclass(frozen=True, kw_only=True)
class NoBoilerplate:
    """1.0 when the text holds no assistant's small talk, English or Chinese, else 0.0.

    Args:
        field: Look into this field of the JSON reply instead of the whole text.
    """

    field: str = ""

    VERSION: ClassVar[int] = 1

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Score one reply; each phrase is a finding."""
        answer = answer_of(case, reply, self.field)
        if isinstance(answer, Score):
            return answer
        return _none_of(answer, boilerplate_in(answer.text), "boilerplate", {})


def _none_of(
    answer: Answer, places: list[tuple[int, int]], what: str, details: dict[str, int]
) -> Score:
    if not places:
        return Score(1.0, f"no {what}", details=details)
    said = [answer.text[start:end].strip() for start, end in places[:_MAX_FINDINGS]]
    findings = tuple(
        answer.finding(f"{what}: {text!r}", *place)
        for text, place in zip(said, places, strict=False)
    )
    shown = ", ".join(repr(text[:60]) for text in said[:5])
    return Score(0.0, f"{len(places)} {what}: {shown}", findings=findings, details=details)
