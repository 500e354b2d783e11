r"""One parse of a TeX source, shared by every scorer that reads it.

`parse` walks the text once with pylatexenc and flattens the tree into plain lists (macros,
environments, faults) and the text a reader of the document would see, each character with its
place in the source. Comments, verbatim material, macro options, the preamble and everything after
`\end{document}` are not visible. The parse is tolerant: broken TeX gives faults, not exceptions.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from evalkit.scorers.tex_dialect import (
    HIDDEN_ARGUMENTS,
    OPAQUE,
    SECTIONING,
    SHOWN,
    SPECIALS,
    VERBATIM,
    is_cite,
)

__all__ = ["BREAK", "Environment", "Macro", "Tex", "looks_like_tex", "parse"]

BREAK = "\x1f"  # stands in the visible text where markup keeps two neighbours apart
MAX_CHARS = 500_000
MAX_DEPTH = 80

_NESTING = re.compile(r"\\begin(?=\s*\{)|\\end(?=\s*\{)|\\.|[{}]", re.DOTALL)
_TEX_SIGN = re.compile(
    r"\\(?:[a-zA-Z]+|[,;%$&]|[\[(])|\{,\}|\$[^$\n]{0,80}[\\^_][^$\n]{0,80}\$", re.ASCII
)
_MARKDOWN_SIGN = re.compile(
    r"^(?:#{1,6}\s|```|~~~)|\[[^\]\n]{1,200}\]\([^)\n]|\*\*\w", re.MULTILINE
)


class Macro(NamedTuple):
    """A macro that takes effect; `args` are its parsed arguments without delimiters, or None."""

    name: str
    start: int
    end: int
    args: tuple[str | None, ...]
    preamble: bool

    @property
    def last(self) -> str:
        """The last argument, usually the mandatory one; empty when it has none."""
        return next((a for a in reversed(self.args) if a is not None), "")


class Environment(NamedTuple):
    r"""An environment, or display mathematics named `\[`; `body` is its raw inner source."""

    name: str
    start: int
    end: int
    args: tuple[str | None, ...]
    body: str


@dataclass(frozen=True, slots=True)
class Tex:
    """What one parse found.

    `visible` is the text a reader sees, `where[i]` the offset in the source of `visible[i]`,
    `math[i]` is 1 inside mathematics. `problem` is a sentence when the source could not be parsed
    at all (then the lists are empty); `faults` are (offset, sentence) of what had to be guessed.
    """

    source: str
    problem: str = ""
    macros: tuple[Macro, ...] = ()
    environments: tuple[Environment, ...] = ()
    faults: tuple[tuple[int, str], ...] = ()
    visible: str = ""
    where: Sequence[int] = ()
    math: Sequence[int] = b""

    def named(self, *names: str) -> Iterator[Macro]:
        """Macros of these names that stand in the document, in order of appearance."""
        return (m for m in self.macros if m.name in names and not m.preamble)

    def within(self, *names: str) -> Iterator[Environment]:
        """Environments of these names, in order of appearance."""
        return (e for e in self.environments if e.name in names)

    def line(self, offset: int) -> int:
        """The line (from 1) of an offset in the source."""
        return self.source.count("\n", 0, offset) + 1


def looks_like_tex(text: str) -> bool:
    """True for a TeX document or fragment; Markdown with a formula in it is not one."""
    if "\\documentclass" in text or "\\begin{document}" in text:
        return True
    return bool(_TEX_SIGN.search(text)) and not _MARKDOWN_SIGN.search(text)


@lru_cache(maxsize=8)
def parse(text: str) -> Tex:
    """Parse a TeX source or fragment once; equal texts share the result.

    Time grows linearly with the text: about a quarter of a second for 100 kB. A text longer than
    500,000 characters, nested deeper than 80 levels or with too much left open is not parsed, and
    `problem` says so.
    """
    if len(text) > MAX_CHARS:
        return Tex(text, f"too long to parse: {len(text):,} characters, {MAX_CHARS:,} are allowed")
    if (deepest := _depth(text)) > MAX_DEPTH:
        return Tex(text, f"nested too deeply to parse: {deepest:,} levels, {MAX_DEPTH} are allowed")
    from pylatexenc.latexwalker import LatexWalkerError

    from evalkit.scorers.tex_walker import BeyondRepair, walker

    walk = walker(text)
    try:
        nodes = walk.get_latex_nodes()[0]
    except RecursionError:
        return Tex(text, "nested too deeply to parse")
    except BeyondRepair:
        at, why = min(walk.faults, default=(0, "this would be read again and again"))
        line = text.count("\n", 0, at) + 1
        return Tex(text, f"too much is left open to be read as TeX; first, line {line}: {why}")
    except (LatexWalkerError, IndexError) as fault:  # IndexError: a text that ends inside \verb
        return Tex(
            text, f"not readable as TeX: {(str(fault).splitlines() or ['it ends early'])[0]}"
        )
    return _Flattening(text, walk.faults).run(nodes)


def _depth(text: str) -> int:
    depth = deepest = 0
    for found in _NESTING.finditer(text):
        token = found[0]
        if token in ("{", "\\begin"):
            depth += 1
            deepest = max(deepest, depth)
        elif depth and token in ("}", "\\end"):
            depth -= 1
    return deepest


@dataclass(slots=True)
class _Flattening:
    """Walks the tree with a stack of its own, so that depth costs no recursion."""

    source: str
    faults: list[tuple[int, str]]
    macros: list[Macro] = field(default_factory=list)
    environments: list[Environment] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    where: array[int] = field(default_factory=lambda: array("I"))
    math: bytearray = field(default_factory=bytearray)
    last: str = ""

    def run(self, nodes: Sequence[Any]) -> Tex:
        nodes, preamble = self._document(nodes)
        # an \end{document} inside something left open: what follows it is still outside
        cut = min((at for at, why in self.faults if "'document'" in why), default=len(self.source))
        stack: list[tuple[Any, bool, bool]] = []
        stack += [(n, False, False) for n in reversed(nodes)]
        stack += [(n, False, True) for n in reversed(preamble)]
        while stack:
            node, math, hidden = stack.pop()
            if isinstance(node, tuple):  # (offset, text): markup that was replaced
                self._emit(node[0], node[1], math)
            elif node is not None and node.pos < cut:
                stack.extend(reversed(self._open(node, math, hidden)))
        return Tex(
            self.source,
            macros=tuple(self.macros),
            environments=tuple(self.environments),
            faults=tuple(sorted(self.faults)),
            visible="".join(self.pieces),
            where=self.where,
            math=bytes(self.math),
        )

    def _document(self, nodes: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The nodes of the document's body, and those before it; nothing after it counts."""
        for i, node in enumerate(nodes):
            if getattr(node, "environmentname", None) == "document":
                self._record(node)
                return list(node.nodelist), list(nodes[:i])
        return list(nodes), []

    def _open(self, node: Any, math: bool, hidden: bool) -> list[tuple[Any, bool, bool]]:
        kind = type(node).__name__
        at = node.pos
        if kind == "LatexCharsNode":
            if not hidden:
                self._emit_source(at, node.chars, math)
            return []
        if kind == "LatexGroupNode":
            inside: list[Any] = list(node.nodelist)
            self._check_closed(node, node.delimiters[1], f"'{node.delimiters[0]}' is never closed")
            if math and self.last == "_":  # an index is a name, not a quantity
                inside, after = [], [(at, BREAK)]
            else:
                after = [(at, BREAK)] if self.last == "^" else []
            return [(n, math, hidden) for n in (*inside, *after)]
        if kind == "LatexMathNode":
            display = node.displaytype == "display"
            self._check_closed(node, node.delimiters[1], f"'{node.delimiters[0]}' is never closed")
            if display:
                self._record(node)
            rim = [((at, BREAK), True, hidden)] if display else []
            return [*rim, *((n, True, hidden) for n in node.nodelist), *rim]
        if kind == "LatexSpecialsNode":
            shown = SPECIALS.get(node.specials_chars, BREAK)
            return [] if hidden else [((at, shown), math, hidden)]
        if kind == "LatexMacroNode":
            return self._macro(node, math, hidden)
        if kind == "LatexEnvironmentNode":
            self._record(node)
            if node.environmentname in VERBATIM or node.environmentname == "thebibliography":
                hidden = True
            inner = math or any(n.parsing_state.in_math_mode for n in node.nodelist[:1])
            rim = [] if hidden else [((at, "\n"), math, hidden)]
            return [*rim, *((n, inner, hidden) for n in node.nodelist), *rim]
        return []  # a comment

    def _macro(self, node: Any, math: bool, hidden: bool) -> list[tuple[Any, bool, bool]]:
        name, at = node.macroname, node.pos
        argd = node.nodeargd
        arguments = list(argd.argnlist or ()) if argd is not None else []
        spec = (argd.argspec or "") if argd is not None else ""
        texts = tuple(None if a is None else self._text(a) for a in arguments)
        self.macros.append(Macro(name, at, at + node.len, texts, hidden))
        if hidden and name != "title":
            return [(a, math, True) for a in arguments]
        if is_cite(name) or name in OPAQUE:
            return [((at, BREAK), math, False)]
        if name in SHOWN:
            return [((at, SHOWN[name]), math, False)]
        around = "\n\n" if name in SECTIONING or name in ("title", "item", "caption") else ""
        seen: list[tuple[Any, bool, bool]] = [((at, around), math, False)] if around else []
        if name == "textsuperscript":
            seen.append(((at, "^"), math, False))
        unseen = HIDDEN_ARGUMENTS.get(name, ())
        for i, argument in enumerate(arguments):
            optional = spec[i : i + 1] in ("*", "[") and name != "item"
            if argument is None or optional or i in unseen:
                continue
            if seen and i:
                seen.append(((at, BREAK), math, False))
            seen.append((argument, math, False))
        return [*seen, ((at, around or BREAK), math, False)] if around or not seen else seen

    def _check_closed(self, node: Any, closing: str, why: str) -> None:
        """Note a group that the parser closed on its own: its last child reaches to its end."""
        end = node.pos + node.len
        last = node.nodelist[-1] if node.nodelist else None
        begin = last.pos + last.len if last is not None else end - len(closing)
        if "".join(self.source[begin:end].split()) != closing:
            self.faults.append((node.pos, why))

    def _record(self, node: Any) -> None:
        start, end = node.pos, node.pos + node.len
        if type(node).__name__ == "LatexMathNode":
            body = self.source[start + 2 : end - 2]
            self.environments.append(Environment("\\[", start, end, (), body))
            return
        arguments = list(node.nodeargd.argnlist or ()) if node.nodeargd is not None else []
        name = node.environmentname
        self._check_closed(node, f"\\end{{{name}}}", f"\\begin{{{name}}} has no \\end{{{name}}}")
        closing = self.source.rfind("\\end", start, end)
        stop = closing if closing >= 0 else end
        body = self.source[node.nodelist[0].pos if node.nodelist else stop : stop]
        if name in VERBATIM and arguments:
            body = arguments[0].chars
        texts = tuple(None if a is None else self._text(a) for a in arguments)
        self.environments.append(Environment(name, start, end, texts, body))

    def _text(self, node: Any) -> str:
        """The source of an argument without its delimiters and comments."""
        if type(node).__name__ == "LatexCharsNode":
            return str(node.chars)
        parts = getattr(node, "nodelist", None)
        if type(node).__name__ == "LatexGroupNode" and parts is not None:
            return "".join(
                "" if type(n).__name__ == "LatexCommentNode" else self.source[n.pos : n.pos + n.len]
                for n in parts
            )
        return self.source[node.pos : node.pos + node.len]

    def _emit(self, offset: int, text: str, math: bool) -> None:
        if text:
            self.pieces.append(text)
            self.where.extend([offset] * len(text))
            self.math.extend((b"\1" if math else b"\0") * len(text))
            self.last = text[-1]

    def _emit_source(self, offset: int, text: str, math: bool) -> None:
        if text:
            self.pieces.append(text)
            self.where.extend(range(offset, offset + len(text)))
            self.math.extend((b"\1" if math else b"\0") * len(text))
            self.last = text[-1]
