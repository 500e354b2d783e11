"""Contestants are masked: a judge must not know who wrote a draft, nor which is the new one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evalkit.records import Case, Reply

__all__ = ["Masked", "mask", "names_of", "subject_of"]


@dataclass(frozen=True, slots=True)
class Masked:
    """A draft as a judge may see it, and the passages that were replaced, in order."""

    text: str
    replaced: tuple[str, ...] = ()


_MODEL = re.compile(
    r"\b(?:chat-?gpt|gpt-?\d[\w.-]*|claude(?:[ -][\w.-]*\d[\w.-]*| (?:opus|sonnet|haiku))?"
    r"|gemini(?:[ -][\w.-]*\d[\w.-]*)?|gemma[ -]?\d[\w.-]*|(?:code)?llama[ -]?\d[\w.-]*"
    r"|mi[sx]tral[\w.-]*|qwen[\w.-]*|deepseek[\w.-]*|smollm\d?[\w.-]*|phi-\d[\w.-]*|grok(?:-\d[\w.-]*)?"
    r"|copilot|o[1-9]-(?:mini|preview|pro)|palm ?2|command[ -]r\+?|ernie ?bot|kimi|doubao)(?!\w)"
    r"|\b(?:openai|anthropic|deepmind|mistral ai|meta ai|hugging ?face|moonshot ai|zhipu)\b"
    r"|(?:文心一言|通义千问|豆包|智谱清言)",
    re.I,
)
_SELF = re.compile(
    r"\b(?:as|i am|i'm)\s+an?\s+(?:ai|artificial intelligence|large)?\s*(?:language\s+)?"
    r"(?:model|assistant)(?:\s+(?:trained|developed|created|built|made)\s+by\s+[\w-]+)?"
    r"|作为(?:一个|一名)?(?:AI|人工智能|大?语言)(?:语言)?(?:模型|助手)",
    re.I,
)
_FILE = re.compile(
    r"(?<![\w/.-])(?:[\w.-]+/)*[\w-][\w.-]*\.(?:md|txt|jsonl?|tex|pdf|docx?|csv|tsv|py|html?|ya?ml|toml|rtf|odt)(?!\w)",
    re.I,
)
_AGE = (
    r"new(?:er|est)?|improved|revised|updated|rewritten|refined|polished|enhanced|corrected|final|latest|"
    r"current|original|old(?:er)?|previous|earlier|prior|baseline|initial"
)
_KIND = "version|draft|revision|edition|answer|response|reply|prompt|iteration|candidate"
_NUMBER = r"v?\d+(?:\.\d+)*"
_VERSION = re.compile(
    rf"\b(?:the|this|my|our|an?)?\s{{0,3}}\b(?:{_AGE})(?:[ ,]{{1,2}}(?:and )?(?:{_AGE})){{0,3}}"
    rf"\s{{1,3}}(?:{_KIND})\b(?:\s+{_NUMBER})?|\b(?:version|draft|revision|prompt|candidate)\s+{_NUMBER}\b"
    r"|\b(?:draft|prompt|answer|report)[ _-]?v\d+(?:\.\d+)*\b"
    r"|(?:最新|全新|改进|改良|修订|更新|最终|新|旧|原始|原|上一)(?:后的|的)?"
    r"(?:版本|版|草稿|稿件|稿|回答)",
    re.I,
)
_MARK = {
    "name": "[name]",
    "model": "[model]",
    "self": "[model]",
    "file": "[file]",
    "version": "[draft]",
}


def mask(text: str, *, names: Sequence[str] = (), subject: str = "") -> Masked:
    """Replace what tells where a draft came from by neutral words.

    Args:
        text: The draft.
        names: Names of contestants, models, people or runs; whole words, any case.
        subject: What the case is about (inputs, context, material): what stands there is subject
            matter and stays, a file name as much as a model's.
    """
    known = " ".join(subject.lower().split())
    replaced: list[str] = []

    def by(kind: str) -> Callable[[re.Match[str]], str]:
        def swap(found: re.Match[str]) -> str:
            passage = found.group()
            if " ".join(passage.lower().split()) in known:
                return passage
            replaced.append(passage)
            lead = passage[: len(passage) - len(passage.lstrip())]
            return lead + _MARK[kind]

        return swap

    listed = sorted({n.strip() for n in names if len(n.strip()) >= 3}, key=len, reverse=True)
    steps: list[tuple[str, re.Pattern[str]]] = []
    if listed:
        words = "|".join(re.escape(n) for n in listed)
        steps.append(("name", re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.I)))
    steps += [("self", _SELF), ("file", _FILE), ("model", _MODEL), ("version", _VERSION)]
    for kind, pattern in steps:
        text = pattern.sub(by(kind), text)
    return Masked(text, tuple(replaced))


def names_of(*drafts: Reply) -> tuple[str, ...]:
    """The names a draft's own record would betray: its model, with and without the endpoint."""
    names: list[str] = []
    for draft in drafts:
        if draft.model:
            names += [draft.model, draft.model.rsplit("/", 1)[-1]]
    return tuple(dict.fromkeys(names))


def subject_of(case: Case) -> str:
    """Everything the case itself says, as one text."""
    inputs = (str(v) for v in case.inputs.values())
    pages = (f"{d.id} {d.text}" for d in case.context)
    files = (f"{name} {text}" for name, text in case.material.items())
    return "\n".join([*inputs, *pages, *files])
