"""Prompt files: header, parts, hash, strict rendering; the shape they must keep; drafts.

A prompt file is an optional YAML header between `---` lines, an optional `# system` part and a
`# user` part, each a Jinja2 template. Templates see `inputs`, `context` (pages with `id` and
`text`), `material` (name to text), `id`, `stratum` and `tags` of the case, never what is expected
of it. `rendering` gives them no way to files or to Python; an undefined name is an error.
"""

from __future__ import annotations

import functools
import json
import os
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from evalkit.cases.problems import did_you_mean
from evalkit.cases.tables import read_text
from evalkit.errors import PromptError
from evalkit.hashing import clean_text, short_hash
from evalkit.records import Case, Finding, Message
from evalkit.rendering import TooMuch, render, template_of

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = [
    "Prompt",
    "ShapeRule",
    "check_shape",
    "draft_path",
    "is_draft",
    "load_prompt",
    "load_shape",
    "parse_prompt",
    "save_draft",
    "save_prompt",
]

HEADER_KEYS = ("schema", "description", "language")
_HEADER = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_PART = re.compile(r"^# (system|user)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Prompt:
    """A prompt: two templates and a header.

    `hash` is the first 12 hex digits of SHA-256 over roles and template texts; the header, the
    name and the line endings do not enter it.
    """

    name: str
    system: str
    user: str
    header: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None

    @functools.cached_property
    def hash(self) -> str:
        """The prompt hash (design.md, "Keys")."""
        return short_hash([[role, text] for role, text in self.parts])

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """Role and template text of each part that has any."""
        return tuple(p for p in (("system", self.system), ("user", self.user)) if p[1])

    def render(self, case: Case, **extra: Any) -> tuple[Message, ...]:
        """The messages for one case; `extra` are further names the templates may use.

        Raises:
            PromptError: If a template names something undefined, or cannot be rendered.
        """
        names = _names(case, extra)
        return tuple(
            Message(role, _render(text, names, f"{self.name}, part '# {role}'", case.id))
            for role, text in self.parts
        )

    def schema_in(self, folder: Path) -> Mapping[str, Any] | None:
        """The JSON schema that the header's `schema` names inside `folder`; None without one.

        Raises:
            PromptError: If the file is missing, outside the folder, or not a JSON object.
        """
        name = self.header.get("schema")
        if name is None:
            return None
        path = (folder / str(name)).resolve()
        if not isinstance(name, str) or not path.is_relative_to(folder.resolve()):
            raise PromptError(f"{self.name}: 'schema' names a file of the suite, not {name!r}")
        try:
            schema = json.loads(read_text(path, error=PromptError))
        except ValueError as error:
            raise PromptError(f"{path}: is not JSON: {error}") from None
        if not isinstance(schema, dict):
            raise PromptError(f"{path}: a JSON schema is an object")
        return schema


def load_prompt(path: Path | str, *, allowed: Collection[str] | None = HEADER_KEYS) -> Prompt:
    """The prompt in a file, named after it.

    Args:
        path: The file.
        allowed: The keys its header may have; None accepts any (judge files have their own).

    Raises:
        PromptError: If the file is missing, has no `# user` part, or its header is wrong.
    """
    path = Path(path)
    prompt = parse_prompt(read_text(path, error=PromptError), path.stem, path=path)
    for key in prompt.header:
        if allowed is not None and key not in allowed:
            raise PromptError(
                f"{path}: unknown key {key!r} in the header{did_you_mean(key, allowed)}"
            )
    return prompt


def parse_prompt(text: str, name: str, *, path: Path | None = None) -> Prompt:
    """The prompt that a text describes; `name` (or the path) is what messages call it.

    Raises:
        PromptError: If the header is not YAML, a part is missing or doubled, or a template does
            not parse (names the line).
    """
    where = str(path or name)
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    header, body, first_line = _split_header(text, where)
    marks = list(_PART.finditer(body))
    if body[: marks[0].start() if marks else None].strip():
        raise PromptError(f"{where}: text before the first part; parts begin '# system', '# user'")
    parts: dict[str, str] = {}
    ends = [*(mark.start() for mark in marks[1:]), len(body)]
    for mark, end in zip(marks, ends, strict=False):
        role, inside = mark[1], body[mark.end() : end]
        if role in parts:
            raise PromptError(f"{where}: the part '# {role}' stands twice")
        parts[role] = inside.strip("\n")
        blank = len(inside) - len(inside.lstrip("\n"))
        line = first_line + body.count("\n", 0, mark.end()) + blank
        _compile(parts[role], where, line)
    if not parts.get("user", "").strip():
        raise PromptError(f"{where}: has no '# user' part, so there is nothing to send")
    return Prompt(name, parts.get("system", ""), parts["user"], header, path)


def _split_header(text: str, where: str) -> tuple[dict[str, Any], str, int]:
    """Header, the rest, and the number of lines before the rest, plus one."""
    found = _HEADER.match(text)
    if not found:
        if text.startswith("---"):
            raise PromptError(f"{where}: the header's closing '---' is missing")
        return {}, text, 1
    import yaml

    try:
        header = yaml.safe_load(found[1]) or {}
    except yaml.YAMLError as error:
        raise PromptError(
            f"{where}: the header is not YAML: {' '.join(str(error).split())}"
        ) from None
    if not isinstance(header, dict) or not all(isinstance(key, str) for key in header):
        raise PromptError(f"{where}: the header must be 'name: value' lines")
    return header, text[found.end() :], found[0].count("\n") + 1


def _names(case: Case, extra: Mapping[str, Any]) -> dict[str, Any]:
    names = ("inputs", "context", "material", "id", "stratum", "tags")
    return {**{name: getattr(case, name) for name in names}, **extra}


def _compile(text: str, where: str, line: int = 1) -> Template:
    try:
        return template_of(text)
    except Exception as error:
        from jinja2 import TemplateSyntaxError  # here: an import costs something each time

        if not isinstance(error, TemplateSyntaxError):  # nested deeper than Python compiles
            said = f"{type(error).__name__}: {error}"
            raise PromptError(f"{where}:{line}: template: cannot be compiled: {said}") from None
        raise PromptError(f"{where}:{line + error.lineno - 1}: template: {error.message}") from None


def _render(text: str, names: Mapping[str, Any], where: str, case_id: str) -> str:
    template = _compile(text, where)
    try:
        return clean_text(render(template, names))
    except Exception as error:  # a template can raise whatever its expressions raise
        from jinja2 import UndefinedError

        if isinstance(error, UndefinedError):
            known = ", ".join([f"inputs.{key}" for key in names["inputs"]] + sorted(names))
            said = f"{error.message}; known: {known}"
            raise PromptError(f"{where}: case {case_id!r}: {said}") from None
        said = str(error) if isinstance(error, TooMuch) else f"{type(error).__name__}: {error}"
        raise PromptError(f"{where}: case {case_id!r}: cannot be rendered: {said}") from None


# The shape of a prompt


@dataclass(frozen=True)
class ShapeRule:
    """One thing the rendered prompt must keep: `part` is "system", "user", or "all" of it.

    `text` is itself a template, so a rule can demand `{{ inputs.question }}`.
    """

    kind: Literal["contains", "forbids", "equals"]
    text: str
    part: Literal["system", "user", "all"] = "all"
    why: str = ""


def load_shape(path: Path | str) -> tuple[ShapeRule, ...]:
    """The rules of a `*.shape.toml`, or those beside a prompt file; () when there is no file.

    Raises:
        PromptError: If the file is not TOML, or a table has an unknown key or no rule.
    """
    path = Path(path)
    path = path if path.name.endswith(".shape.toml") else path.with_suffix(".shape.toml")
    if not path.is_file():
        return ()
    try:
        data = tomllib.loads(read_text(path, error=PromptError))
    except tomllib.TOMLDecodeError as error:
        raise PromptError(f"{path}: is not TOML: {error}") from None
    tables = data.pop("rules", [])
    if data or not isinstance(tables, list):
        raise PromptError(f"{path}: holds [[rules]] tables and nothing else")
    return tuple(rule for table in tables for rule in _rules(table, path))


def check_shape(
    prompt: Prompt, rules: Sequence[ShapeRule], case: Case, **extra: Any
) -> tuple[Finding, ...]:
    """One finding for each rule the prompt breaks when rendered for `case`; () when all hold.

    Offsets of a forbidden text count in its part, or in all parts joined by a blank line.

    Raises:
        PromptError: If the prompt or a rule's text cannot be rendered.
    """
    texts = {message.role: message.content for message in prompt.render(case, **extra)}
    texts["all"] = "\n\n".join(texts.values())
    names = _names(case, extra)
    findings: list[Finding] = []
    for rule in rules:
        wanted = _render(rule.text, names, f"{prompt.name}, shape rule", case.id)
        text, where = texts.get(rule.part, ""), "prompt" if rule.part == "all" else rule.part
        because = f" ({rule.why})" if rule.why else ""
        at = text.find(wanted)
        if rule.kind == "contains" and at < 0:
            findings.append(Finding(f"{where} lacks {wanted!r}{because}"))
        elif rule.kind == "forbids" and at >= 0:
            said = f"{where} holds the forbidden {wanted!r}{because}"
            findings.append(Finding(said, at, at + len(wanted)))
        elif rule.kind == "equals" and text != wanted:
            findings.append(Finding(f"{where} is not exactly {wanted!r}{because}"))
    return tuple(findings)


_KINDS: tuple[Literal["contains", "forbids", "equals"], ...] = ("contains", "forbids", "equals")


def _rules(table: Any, path: Path) -> list[ShapeRule]:
    known = (*_KINDS, "part", "why")
    if not isinstance(table, dict):
        raise PromptError(f"{path}: holds [[rules]] tables and nothing else")
    for key in table:
        if key not in known:
            raise PromptError(f"{path}: unknown key {key!r} in a rule{did_you_mean(key, known)}")
    part, why = table.get("part", "all"), table.get("why", "")
    if part not in ("system", "user", "all"):
        raise PromptError(f"{path}: 'part' is {part!r}; allowed: 'system', 'user', 'all'")
    rules: list[ShapeRule] = []
    for kind in _KINDS:
        given = table.get(kind, [])
        for text in [given] if isinstance(given, str) else given:
            if not isinstance(text, str) or not text:
                raise PromptError(f"{path}: {kind!r} holds texts that are not empty, not {text!r}")
            _compile(text, str(path))
            rules.append(ShapeRule(kind, text, part, str(why)))
    if not rules:
        raise PromptError(f"{path}: a rule has none of {', '.join(_KINDS)}")
    return rules


# Drafts: a prompt being edited lives in exports/drafts/<suite>/<name>.md until it is saved


def draft_path(exports: Path, suite: str, name: str) -> Path:
    """Where the draft of a prompt lives.

    Raises:
        PromptError: If a name would lead out of the drafts' folder.
    """
    for part in (suite, name):
        if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", part):
            raise PromptError(f"{part!r} cannot name a draft; use letters, digits, '-', '_', '.'")
    return exports / "drafts" / suite / f"{name}.md"


def save_draft(text: str, *, exports: Path, suite: str, name: str) -> Path:
    """Keep an edited prompt text as a draft, whatever it holds; returns its path."""
    path = draft_path(exports, suite, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, text)
    return path


def is_draft(prompt: Prompt, saved: Path) -> bool:
    """True when the prompt says something else than the prompt file `saved`, or lives elsewhere.

    Both the meaning (the hash) and the header must agree; a run of a draft cannot be frozen.
    """
    if not saved.is_file():
        return True
    try:
        known = load_prompt(saved, allowed=None)
    except PromptError:
        return True
    return (prompt.hash, dict(prompt.header)) != (known.hash, dict(known.header))


def save_prompt(text: str, path: Path, *, draft: Path | None = None) -> Prompt:
    """Write the prompt file and drop its draft; a text that is no prompt is refused.

    Raises:
        PromptError: If the text does not parse; the file is left as it was.
    """
    parse_prompt(text, path.stem, path=path)
    _write(path, text)
    if draft is not None:
        draft.unlink(missing_ok=True)
    return load_prompt(path)


def _write(path: Path, text: str) -> None:
    """Replace the file in one step, so that a crash leaves the old text or the new one."""
    whole = clean_text(text).replace("\r\n", "\n")
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(whole if whole.endswith("\n") else whole + "\n", encoding="utf-8", newline="\n")
    part.replace(path)
