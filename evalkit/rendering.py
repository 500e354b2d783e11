"""The sandbox in which prompts are rendered: no way to files or to Python, and an end to it.

A template is a program of whoever wrote the prompt or the suite. Here it makes at most so many
characters, in so many steps: what would take gigabytes or hours is an error (decision 0119).
Whatever a template builds is weighed when it is built, and what multiplies is weighed before.
"""

from __future__ import annotations

import functools
import math
import re
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.sandbox import SandboxedEnvironment

__all__ = ["TooMuch", "render", "template_of"]

MOST = 20_000_000  # characters, of all that is made on the way to one part of a prompt
STEPS = 1_000_000  # calls, filters and rounds of loops
SECONDS = 10.0  # of this thread's own computing
BITS = 100_000  # of one number

# What a template may call on a text, a number or a container: nothing that can grow unweighed.
_METHODS = """
capitalize casefold center copy count endswith find format get index isalnum isalpha isascii
isdecimal isdigit islower isnumeric isspace istitle isupper items join keys ljust lower lstrip
partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split
splitlines startswith strip swapcase title upper values zfill
"""
METHODS = frozenset(_METHODS.split())
# These make HTML, or another text each time, and so no prompt.
NO_FILTERS = ("random", "urlize", "xmlattr")


class TooMuch(Exception):
    """A template that asks for more than a prompt can need."""


class _Budget(threading.local):
    left = steps = until = math.inf


_budget = _Budget()


@contextmanager
def _bounded() -> Generator[None]:
    now = time.thread_time()
    _budget.left, _budget.steps, _budget.until = MOST, STEPS, now + SECONDS
    try:
        yield
    finally:
        _budget.left = _budget.steps = _budget.until = math.inf


def _room(size: float) -> None:
    """Whether so much may still be made; found out before memory is asked for it."""
    if size > _budget.left:
        raise TooMuch(f"it makes more than {MOST:,} characters")


def _make(size: float) -> None:
    _room(size)
    _budget.left -= size


def _step() -> None:
    _budget.steps -= 1
    if _budget.steps < 0:
        raise TooMuch(f"it takes more than {STEPS:,} steps")
    if time.thread_time() > _budget.until:
        raise TooMuch(f"it takes more than {SECONDS:g} s of computing")


def _weight(value: Any) -> int:
    """Characters and entries (8) in a value, each as often as it is reached; stops past `MOST`."""
    total, waiting = 0, [value]
    while waiting and total <= MOST:
        one = waiting.pop()
        if isinstance(one, str | bytes):
            total += len(one)
        elif isinstance(one, Mapping):
            total += 8 * len(one)
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple | set | frozenset):
            total += 8 * len(one)
            waiting += one
        elif isinstance(one, int):
            total += 1 + one.bit_length() // 3
        elif is_dataclass(one) and not isinstance(one, type):
            waiting += [getattr(one, f.name) for f in fields(one)]
        else:
            total += 1
    return total


def _weighed(value: Any) -> Any:
    _make(_weight(value))
    return value


def _formatted(text: str, args: tuple[Any, ...], named: Mapping[str, Any]) -> float:
    """The most that a format can make: every field as long as all values, and as its width."""
    given = [*args, *named.values()]
    widths = [float(found) for found in re.findall(r"\d+", text)]
    if "*" in text or re.search(r"\{[^{}]*\{", text):  # a width among the values
        widths += [float(abs(v)) for v in given if isinstance(v, int)]
    count = text.count("%") + text.count("{")
    return len(text) + count * (_weight(given) + max(widths, default=0.0))


def _number(value: Any) -> float:
    return float(abs(value)) if isinstance(value, int | float) else float(_weight(value))


def _estimate(name: str, value: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> float:
    """What a filter or a method of that name may make of a value, where that is more than both."""
    given = [*args, *named.values()]
    most = max(map(_number, given), default=0.0)
    if name in ("center", "ljust", "rjust", "zfill", "batch", "slice", "round"):
        return most
    if name == "format":
        return _formatted(str(value), args, named)
    if name == "replace":
        old = str(given[0]) if given else ""
        found = str(value).count(old) if len(given) > 1 else 0
        return _weight(value) + found * float(_weight(given[1:2]))
    if name == "indent":
        return (str(value).count("\n") + 1) * most
    if name == "wordwrap":
        return len(str(value)) * float(_weight([v for v in given if isinstance(v, str)]))
    if name == "tojson" and most:
        return _weight(value) * (most + 1)
    if name == "sum" and not isinstance(given[-1] if given else 0, int | float):
        return float(len(value)) * _weight(value) if hasattr(value, "__len__") else 0.0
    return 0.0


def _joined(value: Any, sep: Any) -> list[Any]:
    """What is joined, at hand and weighed with what stands between."""
    items = list(value)
    _room(_weight(items) + len(items) * float(_weight(sep)))
    return items


def _filter(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    """The filter, weighed; Jinja passes it a context or environment first where it asks for one."""
    skip = 1 if hasattr(plain, "jinja_pass_arg") else 0

    @functools.wraps(plain)
    def bounded(*args: Any, **named: Any) -> Any:
        _step()
        if len(args) > skip:
            value, rest = args[skip], args[skip + 1 :]
            if name == "join" and not isinstance(value, str):
                sep = rest[0] if rest else named.get("d", "")
                args = (*args[:skip], _joined(value, sep), *rest)
            _room(_estimate(name, value, rest, named))
        return _weighed(plain(*args, **named))

    return bounded


@functools.cache
def _environment() -> SandboxedEnvironment:
    from jinja2 import StrictUndefined, nodes, pass_context
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.visitor import NodeTransformer

    class Weigh(NodeTransformer):
        """What is built is weighed; each round of a loop and each call of a macro is a step."""

        def built(self, node: Any) -> Any:
            self.generic_visit(node)
            return nodes.Filter(node, "_weighed", [], [], None, None, lineno=node.lineno)

        visit_List = visit_Dict = visit_Concat = built

        def visit_Tuple(self, node: Any) -> Any:
            return self.built(node) if node.ctx == "load" else self.generic_visit(node)

        def round(self, node: Any) -> Any:
            self.generic_visit(node)
            raw = sum(len(n.data) for part in node.body for n in _data(part))
            step = nodes.Filter(nodes.Const(raw), "_step", [], [], None, None)
            node.body.insert(0, nodes.ExprStmt(step, lineno=node.lineno).set_lineno(node.lineno))
            return node

        visit_For = visit_Macro = visit_CallBlock = round

    def _data(part: Any) -> list[Any]:
        own = [part] if isinstance(part, nodes.TemplateData) else []
        return own + list(part.find_all(nodes.TemplateData))

    class Environment(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset({"*", "**", "+", "%"})

        def getattr(self, obj: Any, attribute: str) -> Any:
            """A key of the case wins over a method of dict: `inputs.items` is the user's item."""
            if isinstance(obj, Mapping) and attribute in obj:
                return obj[attribute]
            return super().getattr(obj, attribute)

        def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
            return Weigh().visit(super()._parse(source, name, filename))

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            _step()
            if operator == "*":
                for value, count in ((left, right), (right, left)):
                    if isinstance(count, int) and not isinstance(value, int | float):
                        _room(_weight(value) * max(float(min(count, MOST + 1)), 0.0))
            if operator == "%" and isinstance(left, str):
                _room(_formatted(left, right if isinstance(right, tuple) else (right,), {}))
            if isinstance(left, int) and isinstance(right, int) and operator in ("*", "**"):
                bits = left.bit_length() + right.bit_length()
                if operator == "**":
                    bits = left.bit_length() * max(min(right, BITS + 1), 0)
                if bits > BITS:
                    raise TooMuch("it computes a number of more digits than anybody reads")
            return _weighed(super().call_binop(context, operator, left, right))

        def call(  # pyright: ignore[reportIncompatibleMethodOverride]  # theirs has mangled names
            self, context: Any, obj: Any, /, *args: Any, **named: Any
        ) -> Any:
            _step()
            method = getattr(obj, "__wrapped__", obj)  # `format` comes wrapped by the sandbox
            owner, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
            if isinstance(owner, str | bytes | int | float | list | tuple | set | Mapping):
                if name not in METHODS:
                    raise TooMuch(f"a prompt does not call {name!r} of a {type(owner).__name__}")
                if name == "join" and args:
                    args = (_joined(args[0], owner),)
                _room(_estimate(name, owner, args, named))
            return _weighed(super().call(context, obj, *args, **named))

    # Plain text for a model: nothing is escaped here; pages escape what they show.
    environment = Environment(
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_weighed,
    )
    del environment.globals["lipsum"]
    for name, plain in list(environment.filters.items()):
        environment.filters[name] = _filter(name, plain)
    for name in NO_FILTERS:
        del environment.filters[name]

    @pass_context  # with a context, Jinja does not work it out once for all when it compiles
    def step(_: Any, raw: int) -> None:
        _step()
        _make(raw)

    @pass_context
    def weighed(_: Any, value: Any) -> Any:
        return _weighed(value)

    filters: Any = environment.filters  # theirs is the union of the types of its own
    filters |= {"_step": step, "_weighed": weighed}
    return environment


@functools.lru_cache(maxsize=256)
def template_of(text: str) -> Template:
    """The template that a text is, compiled once.

    Raises:
        jinja2.TemplateSyntaxError: If it is none.
    """
    with _bounded():  # constants are worked out when it is compiled
        template = _environment().from_string(text)
    # Jinja copies these at each rendering: a dictionary faster than its chain of mappings.
    template.globals = dict(template.globals)
    return template


def render(template: Template, names: Mapping[str, Any]) -> str:
    """The text that a template makes of these names.

    Raises:
        TooMuch: If it asks for more than a prompt can need.
        Exception: Whatever its expressions raise.
    """
    with _bounded():
        return template.render(names)
