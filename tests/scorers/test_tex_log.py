# ruff: noqa: E501 - a row of a table stands on one line
r"""What a log says, entry by entry: packages, fonts, and the usual errors, without an engine."""

from __future__ import annotations

import pytest

from evalkit.scorers.tex_log import first_error, forbidden_act

PACKAGES = {
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
FONTS = {
    "WenQuanYi Micro Hei": "fonts-wqy-microhei",
    "wqy-zenhei": "fonts-wqy-microhei",
    "Noto Serif CJK SC": "fonts-noto-cjk",
    "Noto Sans CJK SC": "fonts-noto-cjk",
    "Noto Serif": "fonts-noto-core",
    "Latin Modern Roman": "fonts-lmodern",
    "lmroman10-regular": "fonts-lmodern",
    "TeX Gyre Termes": "tex-gyre",
    "texgyretermes-regular": "tex-gyre",
    "Times New Roman": "fonts-liberation, whose Liberation Serif has the same widths",
    "Arial": "fonts-liberation, whose Liberation Sans has the same widths",
    "DejaVu Sans": "fonts-dejavu",
    "SimSun": "fonts-wqy-microhei, with the font name WenQuanYi Micro Hei",
    "Songti SC": "fonts-wqy-microhei, with the font name WenQuanYi Micro Hei",
    "FandolSong": "texlive-lang-chinese",
}


@pytest.mark.parametrize(
    ("style", "debian"), [(name, d) for d, names in PACKAGES.items() for name in names.split()]
)
@pytest.mark.parametrize("suffix", ["sty", "cls", "def", "fd"])
def test_a_missing_package_names_the_debian_package(style: str, debian: str, suffix: str) -> None:
    said = first_error(f"./a.tex:3: LaTeX Error: File `{style}.{suffix}' not found.\n")
    assert said == (
        f"line 3: the LaTeX package {style} is missing; it comes with Debian's {debian}",
        3,
    )


@pytest.mark.parametrize(("font", "debian"), FONTS.items())
def test_a_missing_font_names_the_debian_package(font: str, debian: str) -> None:
    log = f'a.tex:2: Package fontspec Error: \n(fontspec)    The font "{font}" cannot be found.\n'
    assert first_error(log) == (
        f"line 2: the font {font} is missing; it comes with Debian's {debian}",
        2,
    )


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        ("fine\n", ""),
        ("! Undefined control sequence.\nl.7 a \\b \\foo\n", "line 7: Undefined control sequence \\foo"),
        ("! Undefined control sequence.\n", "Undefined control sequence"),
        ("! Undefined control sequence.\nl.7 \n", "line 7: Undefined control sequence"),
        ("a.tex:5: Missing $ inserted.\nl.9 x\n", "line 5: Missing $ inserted"),
        ("! Emergency stop.\n<*> a.tex\n", "Emergency stop: no legal \\end found (\\end{document} is missing)"),
        ("! Emergency stop.\n<to be read> a\n", "Emergency stop"),
        ("! Emergency stop.\n<*> a.tex\nl.4 \\end{document}\n", "line 4: Emergency stop"),
        ("! File ended while scanning use of \\x.\n", "File ended while scanning use of \\x: a brace is never closed"),
        ("! I can't find file `b.tex'.\n", "the file b.tex is not beside the report"),
        ("! LaTeX Error: File `/etc/x' not found.\n", "tries to read /etc/x, outside its own folder"),
        ("! LaTeX Error: File `~/x' not found.\n", "tries to read ~/x, outside its own folder"),
        ("! LaTeX Error: File `../x' not found.\n", "tries to read ../x, outside its own folder"),
        ("! LaTeX Error: File `odd.sty' not found.\n", "the LaTeX package odd is missing; `apt-file search odd.sty` names the Debian package, often texlive-latex-extra"),
        ("! Unable to load picture or PDF file 'fit.pdf'.\n", "the file fit.pdf is not beside the report"),
        ("! Font \\x=pzdr at 10.0pt not loadable: Metric (TFM) file not found.\n", "the font metric pzdr is missing; it comes with Debian's texlive-fonts-recommended"),
        ("! Font \\x=[/etc/x] at 10.0pt not loadable: Metric (TFM) file not found.\n", "tries to read /etc/x, outside its own folder"),
        ('! Package fontspec Error: The font "Odd" cannot be found.\n', "the font Odd is missing; fc-list names the fonts there are"),
        ("! " + "x" * 400 + "\n", "x" * 300),
    ],
)  # fmt: skip
def test_a_usual_error_is_explained(log: str, sentence: str) -> None:
    said, line = first_error(log)
    assert said == sentence
    assert (line is not None) == sentence.startswith("line ")


@pytest.mark.parametrize(
    ("log", "stderr", "act"),
    [
        ("runsystem(rm x)...disabled.\n", "", "asks for a shell command (\\write18), which is not allowed: rm x"),
        ("", "Not reading from /etc/x (openin_any = p).", "tries to read /etc/x, outside its own folder"),
        ("Not writing to /x (openout_any = p).", "", "tries to write /x, outside its own folder"),
        ("! I can't write on file `/x'.", "", "tries to write /x, outside its own folder"),
        ("runsystem(rm x)...executed.\n", "", ""),
    ],
)  # fmt: skip
def test_a_forbidden_act_is_named(log: str, stderr: str, act: str) -> None:
    assert forbidden_act(log, stderr) == act
