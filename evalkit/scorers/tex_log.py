"""The first error of a TeX run in one sentence, naming the Debian package that helps."""

from __future__ import annotations

import re

__all__ = ["first_error", "forbidden_act"]

# Which Debian package carries a LaTeX package that reports often ask for.
_PACKAGES = {
    "texlive-latex-recommended": "booktabs caption fontspec listings microtype setspace xcolor",
    "texlive-science": "siunitx mhchem physics algorithm algorithmic algorithm2e algpseudocode "
    "chemfig units nicefrac",
    "texlive-bibtex-extra": "biblatex",
    "texlive-pictures": "tikz pgf pgfplots circuitikz",
    "texlive-lang-chinese": "ctex ctexart ctexrep CJK CJKutf8 xeCJK",
    "texlive-fonts-extra": "libertine newtxtext newtxmath fontawesome5",
    "texlive-latex-extra": "enumitem titlesec cleveref lipsum blindtext minted tcolorbox "
    "tabularray todonotes wrapfig subfigure multirow makecell adjustbox csquotes",
    "texlive-xetex": "xltxtra xunicode polyglossia",
}
_DEBIAN_OF_STYLE = {style: debian for debian, names in _PACKAGES.items() for style in names.split()}
_DEBIAN_OF_FONT = (
    ("wenquanyi", "fonts-wqy-microhei"),
    ("wqy", "fonts-wqy-microhei"),
    ("noto serif cjk", "fonts-noto-cjk"),
    ("noto sans cjk", "fonts-noto-cjk"),
    ("noto", "fonts-noto-core"),
    ("latin modern", "fonts-lmodern"),
    ("lmroman", "fonts-lmodern"),
    ("tex gyre", "tex-gyre"),
    ("texgyre", "tex-gyre"),
    ("times new roman", "fonts-liberation, whose Liberation Serif has the same widths"),
    ("arial", "fonts-liberation, whose Liberation Sans has the same widths"),
    ("dejavu", "fonts-dejavu"),
    ("simsun", "fonts-wqy-microhei, with the font name WenQuanYi Micro Hei"),
    ("songti", "fonts-wqy-microhei, with the font name WenQuanYi Micro Hei"),
    ("fandol", "texlive-lang-chinese"),
)
_ERROR = re.compile(r"^(?:\./)?(?:(?P<file>[\w.-]+):(?P<line>\d+): |! )(?P<what>.+)", re.MULTILINE)
_AT_LINE = re.compile(r"^l\.(\d+) (.*)", re.MULTILINE)
_NO_FILE = re.compile(r"File [`'\"]([^'\"`]+)['\"] not found|I can't find file [`'\"]([^'`\"]+)")
_NO_WRITE = re.compile(r"I can't write on file [`'\"]([^'`\"]+)")
_NO_METRIC = re.compile(r"Font \S*?=(\S+) (?:at [\d.]+pt |scaled \d+ )?not load\w*: Metric")
_NO_FONT = re.compile(r"font [\"“]([^\"”]{1,80})[\"”] cannot be found", re.IGNORECASE)
_NO_PICTURE = re.compile(r"Unable to load picture or PDF file ['`]([^'`]+)'")
_SHELL = re.compile(r"^runsystem\((.{0,200}?)\)\.\.\.disabled", re.MULTILINE)
_REFUSED = re.compile(r"Not (reading from|writing to) (\S{1,200}) \(open(?:in|out)_any")


def forbidden_act(log: str, stderr: str) -> str:
    """What the document tried that no report may: a shell command, a file elsewhere; or empty."""
    if found := _SHELL.search(log):
        return f"asks for a shell command (\\write18), which is not allowed: {found[1]}"
    if found := _REFUSED.search(stderr) or _REFUSED.search(log):
        verb = "read" if found[1] == "reading from" else "write"
        return f"tries to {verb} {found[2]}, outside its own folder"
    if found := _NO_WRITE.search(log):
        return f"tries to write {found[1]}, outside its own folder"
    return ""


def first_error(log: str) -> tuple[str, int | None]:
    """The first error of a log in one sentence, and its line; ("", None) when there is none.

    Args:
        log: The log of a run with `-file-line-error`, lines not wrapped.
    """
    found = _ERROR.search(log)
    if found is None:
        return "", None
    after = log[found.end() : found.end() + 2000]
    what = found["what"].strip(" .")
    line = int(found["line"]) if found["line"] else None
    at = _AT_LINE.search(after)
    if line is None and at:
        line = int(at[1])
    sentence = _explained(what, after, at[2] if at else "")
    return (f"line {line}: {sentence}" if line else sentence), line


def _explained(what: str, after: str, context: str) -> str:
    nearby = f"{what}\n{after[:600]}"
    if missing := _NO_FILE.search(what):
        return _missing_file(missing[1] or missing[2])
    if metric := _NO_METRIC.search(nearby):
        if "/" in metric[1]:
            return _missing_file(metric[1].strip("[]"))
        return (
            f"the font metric {metric[1]} is missing; "
            "it comes with Debian's texlive-fonts-recommended"
        )
    if font := _NO_FONT.search(re.sub(r"\s*\n\(\w+\)\s*", " ", nearby)):
        name = font[1]
        debian = next((d for key, d in _DEBIAN_OF_FONT if key in name.lower()), "")
        hint = f"it comes with Debian's {debian}" if debian else "fc-list names the fonts there are"
        return f"the font {name} is missing; {hint}"
    if picture := _NO_PICTURE.search(what):
        return _missing_file(picture[1])
    if what.startswith("File ended while scanning"):
        return f"{what}: a brace is never closed"
    if what.startswith("Undefined control sequence"):
        command = re.findall(r"\\[a-zA-Z@]+|\\.", context)
        return f"Undefined control sequence {command[-1]}" if command else what
    if "Emergency stop" in what and "\\end{document}" not in context and "<*>" in after[:200]:
        return "Emergency stop: no legal \\end found (\\end{document} is missing)"
    return what[:300]


def _missing_file(name: str) -> str:
    if name.startswith(("/", "~", "..")):
        return f"tries to read {name}, outside its own folder"
    stem, _, suffix = name.rpartition(".")
    if suffix in ("sty", "cls", "def", "fd"):
        debian = _DEBIAN_OF_STYLE.get(stem)
        hint = (
            f"it comes with Debian's {debian}"
            if debian
            else f"`apt-file search {name}` names the Debian package, often texlive-latex-extra"
        )
        return f"the LaTeX package {stem} is missing; {hint}"
    return f"the file {name} is not beside the report"
