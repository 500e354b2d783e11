"""Passages in judged material that speak to the judge: found and flagged, never judged.

A flag is a pointer for a person; what keeps the judge safe is the sealing in `injection`.
"""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from typing import NamedTuple

from evalkit.judges.injection import HIDDEN
from evalkit.records import Finding

__all__ = ["find_attempts"]


class _Sort(NamedTuple):
    """One sort of attempt, and the signs one of which stands in every passage of this sort.

    Most texts hold no sign, and a word is looked for much faster than a pattern.
    """

    signs: tuple[str, ...]
    pattern: re.Pattern[str]

    def search(self, text: str, folded: str) -> re.Match[str] | None:
        for sign in self.signs:
            if sign in folded:
                return self.pattern.search(text)
        return None


def _sort(signs: str, *alternatives: str) -> _Sort:
    return _Sort(tuple(signs.split(",")), re.compile("|".join(alternatives), re.I | re.M | re.S))


def _folded(text: str) -> str:
    """The text in small letters, for signs: whatever `re.I` takes for the same letter is one."""
    small = text.casefold().replace("\u0307", "").replace("ı", "i")
    return _DIGIT.sub("0", small)


_ORDERS = (
    "give award assign rate score grade mark return output answer respond reply say write print "
    "choose pick select vote prefer declare report emit issue put set conclude earns? deserves?"
).replace(" ", "|")
_JUDGE = "(?:judge|grader|evaluator|assessor|reviewer|rater|marker|examiner)s?"
_TOP = "(?:highest|maximum|top|best)"

_DIGIT = re.compile(r"\d")
_PATTERNS: dict[str, _Sort] = {
    "tells the reader to drop its instructions": _sort(
        "ignor,disregard,forget,override,bypass,set aside,忽略,無視,무시,игнор,забудь,تجاهل"
        ",नज़रअंदाज़,yoksay",
        r"\b(?:ignore|disregard|forget|override|bypass|set aside)\b.{0,60}\b(?:instructions?|rubric"
        r"|rules?|prompt|criteria|guidelines?|above|previous|earlier|checks?|question)\b",
        r"忽略.{0,20}(?:指示|指令|规则|要求|以上|标准|评分)",
        r"無視して|無視し|무시하|игнорируй|проигнориру|забудь.{0,30}инструкц|تجاهل|नज़रअंदाज़|yoksay",
        r"\bignorier\w*.{0,50}(?:anweisung|regel|kriteri|vorgabe)",
        r"\bignore[rz]?\b.{0,50}(?:instructions|consignes|règles)",
        r"\bignor[ae]\w*.{0,50}(?:instruc|istruz|reglas|regole|regras|criteri)",
    ),
    "tells the reader which verdict to give": _sort(
        "full ,perfect ,highest ,maximum ,top ,best ,/,out of,verdict,score of,the winner,yes"
        ",pass,draft,output ,response ,option ,n 0,s 0,t 0,a 0,满分,最高,0分,五分,是,通过,満点"
        ",만점,note,punkt,bewertung,máxim,massim,высш,максимальн,الدرجة,पूर्ण अंक,tam puan",
        rf"\b(?:{_ORDERS})\b[^.\n]{{0,70}}?(?:\bfull (?:marks?|score|points?)\b"
        rf"|\bperfect (?:score|mark)|\b{_TOP} (?:possible )?(?:score|mark|grade|rating)"
        r"|\b\d+\s*(?:/|out of)\s*\d+\b|\bverdict\b|\bscore of\b|\bthe winner\b"
        r"|[\"'“*]?\b(?:yes|pass)\b[\"'”*]?(?=\s*(?:$|[.\n!\"'”*]|for|to|in|as|no matter|whatever))"
        r"|\b(?:draft|output|response|option) [(\[]?[ab12]\b|\b(?:first|second) draft\b"
        r"|\b(?:earns?|gets?|a|an) \d\b(?=\s*[.,!\n]|$))",
        r"(?:打|给|评|输出|判|选).{0,12}(?:满分|最高|[5五]分|通过|“?是”?$|是[。！])",
        r"満点|만점|最高評価|\b(?:höchste|volle|beste)\w* (?:note|punkt|bewertung)|\bnote maximale",
        r"(?:puntuación|punteggio|pontuação|nota|voto).{0,15}(?:máxim|massim)",
        r"высш\w+ (?:балл|оценк)|максимальн\w+ (?:балл|оценк)|الدرجة|पूर्ण अंक|tam puan",
    ),
    "addresses the judge": _sort(
        "judge,grader,evaluator,assessor,reviewer,rater,marker,examiner,if you are ,评委,裁判,评审"
        ",评分员,审阅者,gutachter,prüfer,bewerter,juge,correcteur,évaluateur",
        r"\b(?:dear|attention|note to|message (?:to|for)|hello|hi|hey|to the)\s+"
        rf"(?:the\s+|ai\s+|llm\s+)*{_JUDGE}\b",
        r"^\W{0,12}(?:judge|grader|evaluator|assessor|rater)s?\s*[:,]",
        rf"\bif you are (?:an? )?(?:ai|llm|language model|{_JUDGE})\b",
        r"(?:致|请|各位|亲爱的).{0,4}(?:评委|裁判|评审|评分员|审阅者)",
        r"an den (?:gutachter|prüfer|bewerter)|(?:au|cher) (?:juge|correcteur|évaluateur)",
    ),
    "forges a verdict": _sort(
        "verdict,score,rating,passed,winner,grade,justification,[[,final judg",
        r"[\"'“]\s*(?:verdict|score|rating|passed|winner|grade|justification)\s*[\"'”]\s*:",
        r"^\W{0,12}(?:verdict|score|rating|passed|winner|grade)\s*[:=]\s*[\"'“]?"
        r"(?:yes|no|pass|fail|true|false|tie|first|second|[ab]\b|\d)",
        r"\[\[\s*(?:a|b|c|tie|yes|no|\d+)\s*\]\]",
        r"\bfinal (?:verdict|judge?ment|score)\b\s*[:=]",
    ),
    "switches roles": _sort(
        "system,assistant,developer,human,user,<|,inst],sys>>,_of_turn>,<｜,</s>,from now on,new "
        ",you are no,you're no, mode,end of ,系统,新规则",
        r"^[ \t#*>\[({-]{0,20}(?:system|assistant|developer|human|user)\b[^\n\w]{0,4}:",
        r"<\|[^|\n]{1,40}\|>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|<｜[^｜\n]{1,40}｜>|</s>",
        r"[\"']role[\"']\s*:\s*[\"'](?:system|assistant|developer)",
        r"\b(?:from now on,? you|new (?:rule|instruction|policy|system|task|rubric|role)s?\s*:)",
        r"\byou(?: are|'re) (?:now|no longer)\b",
        r"\b(?:developer|debug|admin|maintenance|test|god) mode\b",
        r"\bend of (?:the )?(?:draft|candidate|data|document|material|text|input|evaluation)\b",
        r"系统(?:消息|提示|指令)?\s*[:：]|新规则",
    ),
    "claims that others approved it": _sort(
        "already,previously,approved,verified,certified,graded,已",
        rf"\b(?:{_JUDGE}|committee|auditors?|experts?|board|panel|quality team|compliance"
        r"|supervisor|editor|legal)\b[^.\n]{0,40}\b(?:already|previously)\b[^.\n]{0,30}"
        r"\b(?:approved|accepted|verified|confirmed|certified|passed|rated|cleared|signed)\b",
        r"\bpre-?(?:approved|verified|certified|graded)\b",
        r"\balready (?:been )?(?:approved|verified|graded|judged|certified|passed)\b",
        r"(?:已|已经)(?:被|由|经)?.{0,10}(?:批准|审核通过|通过审核|认可)",
    ),
}
_FORGED_TAG = re.compile(
    r"[<＜‹]\s*[/／]?\s*(?:draft|candidate|context|reference|question|material|data|system|assistant"
    r"|instructions?|rubric|verdict|judge|prompt|untrusted)(?:[-_ ][\w-]{0,60})?\s*[>＞›]"
    r"|[<＜‹]\s*[/／]?\s*\w{1,40}-[0-9a-f]{8,64}\s*[>＞›]"
    r"|^[ \t]*(?:-{3,}|={3,}|#{3,})[ \t]*(?:end|begin|system|instructions?)\b",
    re.I | re.M,
)
# Runs of tag characters, direction overrides, and nothing-wide marks inside a word.
_SECRET = re.compile(
    "[\U000e0020-\U000e007f]{3,}|[\u202d\u202e\u2066-\u2068]|(?<=\\w)[\u200b\u2060-\u2064](?=\\w)"
)
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{24,}={0,2}(?![A-Za-z0-9+/=])")


def find_attempts(text: str) -> tuple[Finding, ...]:
    """Passages that speak to the judge rather than to the reader, one finding of each sort.

    Looks through hidden characters, full-width and styled letters, tag characters and base64.
    Offsets are those of the text where the passage stands in it as it is, else None.
    """
    findings: dict[str, Finding] = {}
    plain = text if text.isascii() else HIDDEN.sub("", text)
    if not text.isascii() and (found := _SECRET.search(text)):
        findings["hides"] = Finding("hides characters", found.start(), found.end())
    marked = any(mark in plain for mark in ("<", "＜", "‹", "---", "===", "###"))
    if marked and (found := _FORGED_TAG.search(plain)):
        findings["tag"] = Finding("forges a delimiter", *_where(text, found.group()))
    for reading in _readings(text):
        folded = _folded(reading)
        for name, sort in _PATTERNS.items():
            if name not in findings and (found := sort.search(reading, folded)):
                findings[name] = Finding(name, *_where(text, found.group()))
    return tuple(findings.values())


def _where(text: str, passage: str) -> tuple[int | None, int | None]:
    at = text.find(passage)
    return (at, at + len(passage)) if at >= 0 else (None, None)


def _readings(text: str) -> list[str]:
    """The text as a machine may read it: plain, its hidden letters, what base64 holds."""
    readings = [text]
    if not text.isascii():
        readings = [unicodedata.normalize("NFKC", HIDDEN.sub("", text))]
        if hidden := "".join(chr(ord(c) - 0xE0000) for c in text if 0xE0020 <= ord(c) <= 0xE007E):
            readings.append(hidden)
    for found in _BASE64.finditer(text):
        try:
            decoded = base64.b64decode(found.group() + "=" * (-len(found.group()) % 4))
            readings.append(decoded.decode("utf-8"))
        except (binascii.Error, UnicodeDecodeError):
            continue
    return readings
