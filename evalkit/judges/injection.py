"""What is judged is data: sealed in blocks that its author cannot close.

The tags of a block carry a key derived from a digest of everything inside the blocks. A text that
held its own closing tag would have to contain a part of its own digest; the same material still
gives the same prompt, so that a recorded verdict replays.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from evalkit.hashing import sha256_hex

__all__ = ["HIDDEN", "Sealed", "neutralise", "seal"]


@dataclass(frozen=True, slots=True)
class Sealed:
    """Blocks ready for a prompt: name to wrapped text ("" stays ""); `key` is in every tag."""

    key: str
    blocks: Mapping[str, str]


def seal(material: Mapping[str, str], *, salt: str, shown: Collection[str] | None = None) -> Sealed:
    """Wrap each text in tags that carry a key of this call.

    Args:
        material: Block name to raw text; what follows the last dot of a name stands in the tag.
        salt: The judge's hash, so that the key of one judge is of no use against another.
        shown: The blocks that the prompt really shows; only they decide the key, so that what a
            judge never sees cannot cost a new call. None is all.
    """
    clean = {name: neutralise(text) for name, text in material.items()}
    digest = sha256_hex([salt, sorted(i for i in material.items() if not shown or i[0] in shown)])
    key = next(
        k
        for k in (digest[i : i + 12] for i in range(len(digest) - 12))
        if not any(k in text for text in clean.values())
    )
    return Sealed(key, {name: _wrapped(name, key, text) for name, text in clean.items()})


def _wrapped(name: str, key: str, text: str) -> str:
    tag = re.sub(r"\W+", "_", name.rsplit(".", 1)[-1])
    return f"<{tag}-{key}>\n{text}\n</{tag}-{key}>" if text else ""


# Marks that chat templates turn into special tokens, and the names of roles and of our blocks. They
# stay readable but are no longer marks.
_TAG = re.compile(
    r"[<＜](?P<body>\s*[/／]?\s*(?:draft|candidate|context|reference|question|material|inputs?|answer|"
    r"response|output|data|document|system|user|assistant|human|developer|tool|instructions?|rubric|"
    r"verdict|judge|prompt|message|untrusted)\b[\w\s:=\"'.-]{0,80}"
    r"|\s*[/／]?\s*\w{1,40}-[0-9a-f]{8,64}\s*)[>＞]",
    re.I,
)
_SPECIAL = re.compile(
    r"<\|(?P<a>[^<>|\n]{1,40})\|>|<(?P<b>/?s|/?(?:start|end)_of_turn|eos|bos|pad|unk)>"
    r"|<<(?P<c>/?SYS)>>|\[(?P<d>/?INST)\]|<｜(?P<e>[^<>｜\n]{1,40})｜>",
    re.I,
)
# Characters nobody sees: tag characters, bidi controls, zero width, variation selector supplement.
HIDDEN = re.compile(
    "[\U000e0000-\U000e007f\U000e0100-\U000e01ef\u202a-\u202e\u2066-\u2069"
    "\u200b\u2060-\u2064\ufeff\u00ad\u180e]+"
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def neutralise(text: str) -> str:
    """The text without hidden characters; its tags and template marks readable but harmless."""
    if not text:
        return text
    text = _CONTROL.sub("\ufffd", HIDDEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))
    while "<" in text or "＜" in text or "[" in text:
        step = _TAG.sub(lambda m: f"‹{m['body']}›", text)
        step = _SPECIAL.sub(
            lambda m: f"‹{next(g for g in m.group('a', 'b', 'c', 'd', 'e') if g)}›", step
        )
        if step == text:
            break
        text = step
    return text
