from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.scorers.quoting import blank_code, blank_comments, blank_quotes, comments_of


def left(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a ```b``` c", "a c"),
        ("a\n```py\nb\n```\nc", "a c"),
        ("a\n```py\nb", "a"),
        ("a\n```\nb\n~~~\nc\n```\nd", "a d"),
        ("a `b` c ``d`e`` f", "a c f"),
        ("a ` b\n` c", "a ` b ` c"),
        (r"a \verb|b| c \verb*!d! e \lstinline+f+", "a c e"),
        ("\\begin{verbatim}a\\end{verbatim} b", r"\begin{verbatim} \end{verbatim} b"),
        ("\\begin{verbatim}a\\end{lstlisting} b", r"\begin{verbatim}"),
        ("\\begin{itemize}a\\end{itemize}", r"\begin{itemize}a\end{itemize}"),
        ("\\end{verbatim} a", r"\end{verbatim} a"),
    ],
)
def test_code_is_blanked(text: str, kept: str) -> None:
    assert left(blank_code(text)) == kept


@pytest.mark.parametrize(
    ("text", "kept", "comments"),
    [
        ("half of 50% is 25", "half of 50% is 25", []),
        ("% a\nb", "b", ["% a"]),
        ("  % a\nb", "b", ["  % a"]),
        (r"\section{A} % b", r"\section{A}", ["% b"]),
        (r"\alpha 5\% b", r"\alpha 5\% b", []),
        ("\\alpha \\\\% b\nc", r"\alpha c", ["\\\\% b"]),
    ],
)
def test_comments_are_blanked_where_they_are_comments(
    text: str, kept: str, comments: list[str]
) -> None:
    assert left(blank_comments(text)) == kept
    assert comments_of(text) == comments


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('He said "no" twice', "He said twice"),
        ("“no” and «no» and 「no」 and 『no』 x", "and and and x"),
        ("She said 'I can't go' then", "She said then"),
        ("It's the dog's bone", "It's the dog's bone"),
        ("> quoted\nplain", "plain"),
        ('"a whole reply"', '"a whole reply"'),
        ('an "open quote\nand "another', 'an "open quote and "another'),
    ],
)
def test_quotes_are_blanked(text: str, kept: str) -> None:
    assert left(blank_quotes(text)) == kept


@given(st.text(alphabet="`~\"'“”‘’>%\\\n ab{}", max_size=60))
def test_blanking_keeps_every_offset_and_line(text: str) -> None:
    for blank in (blank_code, blank_comments, blank_quotes):
        blanked = blank(text)
        assert len(blanked) == len(text)
        assert all(b in (a, " ") for a, b in zip(text, blanked, strict=True))
        assert blanked.count("\n") == text.count("\n")
