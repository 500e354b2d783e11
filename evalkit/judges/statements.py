"""What a reply in prose states: its final verdict, its [[label]], which draft it calls better.

A justification is prose too: what it states is held against the verdict beside it. Each search
starts from the rare word (*better*, *yes*) and looks back for its subject: thousands of long
replies are read in a second.
"""

from __future__ import annotations

import re

from evalkit.judges.labels import NOUN, NOUN_ZH

__all__ = [
    "bracketed",
    "conclusions_in",
    "final_values",
    "marked_values",
    "positions_in",
    "scores_in",
    "states_tie",
]

_MARKED = re.compile(
    r"^[ \t#>*_-]*(?P<final>(?:final|overall|my|最终|最后)[ \t]*)?"
    r"(?P<word>verdict|decision|judge?ment|score|rating|grade|winner|preference|answer"
    r"|结论|判断|判定|评分|得分|裁定)\**[ \t]*(?:is\b[ \t]*)?[:：=]\**[ \t]*(?P<value>\S[^\n]*)",
    re.M,
)
_FINAL = re.compile(
    r"(?:final|overall|最终)\s{0,3}(?:verdict|decision|judge?ment|score|rating|判断|结论|评分)"
    r"(?![a-z])\**\s{0,3}(?:is\b)?\s{0,3}[:：=]?\**\s{0,3}(?P<value>\S[^\n]*)"
)
_BRACKETS = re.compile(r"\[\[\s*([^\[\]]{1,20}?)\s*\]\]")
_BETTER = re.compile(
    r"is\s+(?:(?:the|a|clearly|overall|much|slightly|far|marginally|therefore|thus)\s+)*"
    r"(?:better|superior|preferable|preferred|stronger|best|winner)\b"
)
_BETTER_ZH = re.compile("更好|更优|胜出")
_SUBJECT = re.compile(
    r"(?P<if>\b(?:if|whether|why|unless|did|had)\s+)?"
    rf"(?:\b{NOUN}\s*[(\[]?|{NOUN_ZH}\s*[(（]?)\s*(?P<id>[ab12甲乙])\s*[)\]）]?\s*$"
)
_PREFER = re.compile(
    rf"\b(?:i|we)\s(?:would\s)?(?:prefer|choose|pick)\s(?:the\s)?{NOUN}?\s{{0,3}}"
    r"[(\[]?(?P<id>[ab12])\b"
)
_TIE = re.compile(
    r"\bboth\b[^.\n]{0,60}\bequally (?:good|bad|well|strong|weak|valid)\b"
    r"|\b(?:it is|it's|call it) a tie\b|(?:不分上下|难分高下|一样好)"
)
_YES_NO = re.compile(r"\b(?P<en>yes|no)\b(?!\s+\w*\s*(?:doubt|need|reason))|(?P<zh>是|否)(?!\w)")
_CONCLUDING = re.compile(
    r"\b(?:so|therefore|thus|hence|verdict|answer|conclusion)\b[\s,:]*"
    r"(?:(?:the\s+)?(?:verdict|answer)\s*)?(?:is\b|must be\b)?[\s:]*[\"'*]*$"
    r"|(?:因此|所以|结论|答案|判断)[\s,，:：]*(?:是|为)?[\s:：]*[\"“]?$"
)
_SCORE = re.compile(
    r"\b(?:score|rating|grade|level)\b\s{0,3}(?:of|is|:|=|would be|should be)?"
    r"\s{0,3}(\d+(?:\.\d+)?)\b"
    r"|(?<![\d.])(\d+(?:\.\d+)?)\s{0,3}(?:/|out of)\s{0,3}\d+"
)
_BACK = 48  # characters that may stand between a subject and its predicate


def final_values(text: str) -> list[str]:
    """What follows "final verdict" and the like, anywhere, in lower case."""
    low = text.lower()
    if not ("final" in low or "overall" in low or "最终" in low):
        return []
    return [m["value"] for m in _FINAL.finditer(low)]


def marked_values(text: str) -> list[str]:
    """What follows "Verdict:" at the start of a line, in lower case.

    A bare "Answer:" may be the judge's own answer to the question, so it does not count.
    """
    found = _MARKED.finditer(text.lower())
    return [m["value"] for m in found if m["word"] != "answer" or m["final"]]


def bracketed(text: str) -> list[str]:
    """What stands in double brackets."""
    return _BRACKETS.findall(text)


def positions_in(text: str) -> set[str]:
    """The places ("first", "second") whose draft a text calls better."""
    low = text.lower()
    ends = [m.start() for m in _BETTER.finditer(low)]
    ends += [m.start() for m in _BETTER_ZH.finditer(low)]
    subjects = (_SUBJECT.search(low, max(0, end - _BACK), end) for end in ends)
    ids = [m["id"] for m in subjects if m and not m["if"]]
    if "prefer" in low or "choose" in low or "pick" in low:
        ids += [m["id"] for m in _PREFER.finditer(low)]
    return {"first" if i in "a1甲" else "second" for i in ids}


def states_tie(text: str) -> bool:
    """Whether a text calls both drafts equal."""
    return _TIE.search(text.lower()) is not None


def conclusions_in(text: str) -> set[str]:
    """The yes and no that a text concludes with ("so the answer is no")."""
    low = text.lower()
    found: set[str] = set()
    for m in _YES_NO.finditer(low):
        if _CONCLUDING.search(low, max(0, m.start() - _BACK), m.start()):
            found.add({"是": "yes", "否": "no"}.get(m.group(), m.group()))
    return found


def scores_in(text: str) -> set[float]:
    """The scores a text names ("a score of 2", "2/5")."""
    return {float(a or b) for a, b in _SCORE.findall(text.lower())}
