"""pylatexenc's walker, kept linear.

It reads one character at a time and, when the arguments of a macro do not end, drops them and
reads their text again: doubled by each macro within another, that never ends. Here words are read
as wholes, arguments that failed once are not tried again, and the work is bounded.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from evalkit.scorers.tex_dialect import Bare, context

__all__ = ["BeyondRepair", "walker"]

# Work allowed, in characters read. A sound text needs less than twice its length.
_PER_CHARACTER = 4
_AT_LEAST = 10_000
_WORDS = re.compile(r"[^\W_]+(?:[ ,.;:()=+/]+[^\W_]+)*")  # nothing in it has a meaning to TeX


class BeyondRepair(Exception):
    """So much is left open that the text would have to be read again and again."""


def walker(text: str) -> Any:
    """A walker over a text; its `faults` are (offset, sentence) of what it had to forgive."""
    return _walker_class()(text, latex_context=context(), tolerant_parsing=True)


@lru_cache(maxsize=1)
def _walker_class() -> type:
    from pylatexenc.latexwalker import LatexToken, LatexWalker

    class Walker(LatexWalker):
        def __init__(self, s: str, **settings: Any) -> None:
            super().__init__(s, **settings)
            self.faults: list[tuple[int, str]] = []
            self.endless: set[int] = set()
            self.left = _AT_LEAST + _PER_CHARACTER * len(s)

        def spend(self, characters: int) -> None:
            """Count work, and stop when there was too much."""
            self.left -= characters
            if self.left < 0:
                raise BeyondRepair

        def get_token(self, pos: int, *args: Any, **settings: Any) -> Any:
            """One token, or several words where characters follow each other anyway."""
            in_nodes = "include_brace_chars" in settings and "environments" not in settings
            if in_nodes and (words := _WORDS.match(self.s, pos)):
                self.spend(words.end() - pos)
                return LatexToken("char", words[0], pos, words.end() - pos, "")
            token = super().get_token(pos, *args, **settings)
            self.spend(token.pos + token.len - pos)
            if token.tok == "macro" and token.pos in self.endless:
                token.arg = Bare(token.arg)
            return token

        def _report_ignore_parse_error(self, exc: Any) -> None:
            sentence = (str(getattr(exc, "msg", exc)).splitlines() or ["broken"])[0]
            self.faults.append((min(getattr(exc, "pos", None) or 0, len(self.s)), sentence))

        def _exchandle_parse_subexpression(self, e: Any, tok: Any, what: str) -> Any:
            self.endless.add(tok.pos)
            return super()._exchandle_parse_subexpression(e, tok, what)

    return Walker
