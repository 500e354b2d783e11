"""A parser of almost-JSON: it reads what the strict one refuses and names each thing it mended.

It walks the text once, without recursion, and mends only what leaves no doubt about the value:
raw line breaks in strings, backslashes that JSON does not allow, trailing commas, Python quotes.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from json.decoder import (
    scanstring,  # pyright: ignore[reportAttributeAccessIssue] - public, but not in the stubs
)
from typing import Any, Literal

from evalkit.hashing import canonical_json

__all__ = ["MAX_DEPTH", "Attempt", "latex_escape", "try_json"]

MAX_DEPTH = 64  # deeper than any contract, and shallow enough for every recursive reader after us
_MAX_NUMBER = 1000  # characters

_SPACE = re.compile(r"\s*+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![\w.])")
_WORD = re.compile(r"[-+]?[A-Za-z]++")
_QUOTED = {
    '"': re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL),
    "'": re.compile(r"'((?:[^'\\]|\\.)*+)'", re.DOTALL),
}
_CONTROL = re.compile(r"[\x00-\x1f]")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([A-Za-z]++|.))", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_KEPT = "a backslash that JSON does not allow was kept"
_LITERALS: dict[str, Any] = {"true": True, "false": False, "null": None}
_PYTHON: dict[str, Any] = {"True": True, "False": False, "None": None}
_NOT_NUMBERS = {"nan", "inf", "infinity"}
_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
# TeX commands whose first letter makes a legal JSON escape; `\beta` is no backspace before "eta".
_TEX = frozenset(
    re.findall(
        r"\w+",
        """backslash bar begin beta bf big bigg binom bm bmod boldsymbol bot boxed bullet fbox flat
        footnote forall frac frown nabla natural ne nearrow neg neq newline ni nmid nolimits
        nonumber norm not notin nu nwarrow rangle rbrace rceil re ref renewcommand rfloor rho right
        rightarrow rightharpoonup rm tan tanh tau text textbf textit textrm textsf texttt tfrac
        therefore theta thinspace tilde times tiny to top triangle triangleq ulcorner underbrace
        underline underset unit unlhd uparrow updownarrow uplus upsilon usepackage""",
    )
)
# Form feed and backspace have no place in an answer: where a TeX command explains one, it is one.
latex_escape = re.compile(
    r"(?<!\\)(?:\\\\)*+\\(?:" + "|".join(sorted(w for w in _TEX if w[0] in "bf")) + r")(?![A-Za-z])"
)


@dataclass(slots=True)
class Attempt:
    """What came of reading one value: `end` is where reading stopped, `open` what it left open.

    `begun` is true once a key was read: a lone brace at the end of a sentence is no object.
    """

    outcome: Literal["done", "failed", "cut", "deep"] = "failed"
    value: Any = None
    end: int = 0
    begun: bool = False
    open: list[int] = field(default_factory=list)
    mended: dict[str, None] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    clashes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Frame:
    container: Any
    start: int
    key: str = ""


class _Stop(Exception):
    pass


def try_json(text: str, start: int, *, latex: bool = False) -> Attempt:
    """Read the object or array that opens at `start`.

    Args:
        text: The reply.
        start: Where a brace or bracket stands.
        latex: Whether an escape that spells a TeX command is one. Where a string holds a
            backslash that JSON does not allow, its writer did not escape, so the answer is yes.
    """
    attempt = _Reader(text, latex=latex).read(start)
    if not latex and _KEPT in attempt.mended:
        attempt = _Reader(text, latex=True).read(start)
    return attempt


class _Reader:
    def __init__(self, text: str, *, latex: bool) -> None:
        self.text = text
        self.latex = latex
        self.got = Attempt()
        self.frames: list[_Frame] = []

    def read(self, start: int) -> Attempt:
        got = self.got
        try:
            got.end = self._open(start)
            while self.frames:
                self._step()
            got.outcome = "done"
        except _Stop as stop:
            got.outcome = stop.args[0]
        except IndexError:
            got.outcome = "cut"
        got.open = [frame.start for frame in self.frames]
        return got

    def _step(self) -> None:
        """Read one member (or the end) of the innermost container."""
        frame = self.frames[-1]
        closer = "}" if isinstance(frame.container, dict) else "]"
        at = self._space(self.got.end)
        if frame.container and self.text[at] != closer:
            if self.text[at] != ",":
                raise self._stop("failed", at)
            at = self._space(at + 1)
            if self.text[at] == closer:
                self._mend("a trailing comma was dropped")
        if self.text[at] == closer:
            self.frames.pop()
            self._place(frame.container, at + 1)
            return
        if closer == "}":
            if self.text[at] not in "\"'":
                raise self._stop("failed", at)
            frame.key, at = self._string(at)
            at = self._space(at)
            if self.text[at] != ":":
                raise self._stop("failed", at)
            self.got.begun = True
            at = self._space(at + 1)
        self._value(at)

    def _value(self, at: int) -> None:
        char = self.text[at]
        if char in "{[":
            self.got.end = self._open(at)
        elif char in "\"'":
            self._place(*self._string(at))
        elif number := _NUMBER.match(self.text, at):
            self._place(self._number(number[0]), number.end())
        elif word := _WORD.match(self.text, at):
            self._place(self._word(word[0], word.end()), word.end())
        else:
            raise self._stop("failed", at)

    def _open(self, at: int) -> int:
        if len(self.frames) >= MAX_DEPTH:
            raise self._stop("deep", at)
        self.frames.append(_Frame({} if self.text[at] == "{" else [], at))
        return at + 1

    def _place(self, value: Any, end: int) -> None:
        self.got.end = end
        if not self.frames:
            self.got.value = value
            return
        frame = self.frames[-1]
        if isinstance(frame.container, list):
            frame.container.append(value)
            return
        if frame.key in frame.container:
            if canonical_json(frame.container[frame.key]) != canonical_json(value):
                self.got.clashes.append(f"{self._path()}: given twice, with different values")
            self._mend("a repeated key was dropped")
        frame.container[frame.key] = value

    def _string(self, at: int) -> tuple[str, int]:
        quote = self.text[at]
        if quote == '"' and not self.latex:
            try:
                value, end = scanstring(self.text, at + 1, False)
            except json.JSONDecodeError:
                pass
            else:
                if _CONTROL.search(self.text, at + 1, end - 1):
                    self._mend("a raw line break or control character in a string was kept")
                return value, end
        found = _QUOTED[quote].match(self.text, at)
        if found is None:
            raise self._stop("cut", len(self.text))
        if quote == "'":
            self._mend("Python-style quotes were read")
        if _CONTROL.search(found[1]):
            self._mend("a raw line break or control character in a string was kept")
        value = _ESCAPE.sub(
            lambda found: chr(int(found[1], 16)) if found[1] else self._unescape(found[2], quote),
            found[1],
        )
        if _SURROGATE.search(value):  # two escapes may make one character
            value = value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        return value, found.end()

    def _unescape(self, escape: str, quote: str) -> str:
        if escape in '"\\/' or escape == quote:
            return escape
        if escape[0] in _CONTROLS and escape not in _TEX:
            return _CONTROLS[escape[0]] + escape[1:]
        self._mend(_KEPT)
        return "\\" + escape

    def _number(self, digits: str) -> Any:
        if len(digits) > _MAX_NUMBER or not math.isfinite(float(digits)):
            shown = digits if len(digits) <= 30 else digits[:27] + "..."
            self.got.refused.append(f"{self._path()}: {shown} is too large for a number")
            return None
        return float(digits) if set(digits) & set(".eE") else int(digits)

    def _word(self, word: str, end: int) -> Any:
        if word in _LITERALS:
            return _LITERALS[word]
        if word in _PYTHON:
            self._mend("Python's True, False or None was read")
            return _PYTHON[word]
        if word.lstrip("+-").lower() in _NOT_NUMBERS:
            self.got.refused.append(f"{self._path()}: {word} is not a number that JSON allows")
            return None
        raise self._stop("cut" if end == len(self.text) else "failed", end)

    def _path(self) -> str:
        steps = (
            f".{frame.key}" if isinstance(frame.container, dict) else f"[{len(frame.container)}]"
            for frame in self.frames
        )
        return "$" + "".join(steps)

    def _space(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        self.got.end = found.end() if found else at  # the pattern matches anywhere
        return self.got.end

    def _mend(self, what: str) -> None:
        self.got.mended.setdefault(what)

    def _stop(self, outcome: str, at: int) -> _Stop:
        self.got.end = at
        return _Stop(outcome)
