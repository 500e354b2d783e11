"""A prompt ends: what would take gigabytes or hours is one sentence; what people write renders."""

from __future__ import annotations

import resource
import threading
from collections.abc import Iterator

import pytest

from evalkit import rendering
from evalkit.errors import PromptError
from evalkit.prompts import parse_prompt
from evalkit.records import Case, Document

BIG = 10**10
CASE = Case(
    "c1",
    "easy",
    inputs={"question": "Why?", "items": ["a", "b"], "n": 7_900_000_000, "rows": [{"k": "v"}]},
    context=(Document("a", "first"), Document("b", "second")),
    tags=("t", "u"),
)

HOSTILE = [
    "{{ 'x' * 10**10 }}",
    f"{{{{ 'x' * {BIG} }}}}",
    f"{{{{ {BIG} * 'x' }}}}",
    f"{{{{ [1] * {BIG} }}}}",
    f"{{{{ ([1] * {BIG})|length }}}}",
    f"{{{{ range({BIG})|join }}}}",
    f"{{{{ '%{BIG}d'|format(1) }}}}",
    f"{{{{ '%{BIG}d' % 1 }}}}",
    f"{{{{ '%*d' % ({BIG}, 1) }}}}",
    f"{{{{ '%.{BIG}f' % 1.5 }}}}",
    f"{{{{ '{{:>{BIG}}}'.format(1) }}}}",
    f"{{{{ '{{:>{{}}}}'.format(1, {BIG}) }}}}",
    f"{{{{ '{{a:{BIG}}}'.format_map({{'a': 1}}) }}}}",
    f"{{{{ 'x'|center({BIG}) }}}}",
    f"{{{{ 'x'.center({BIG}) }}}}",
    f"{{{{ 'x'.ljust({BIG}) }}}}",
    f"{{{{ 'x'.rjust(width={BIG}) }}}}",
    f"{{{{ 'x'.zfill({BIG}) }}}}",
    f"{{{{ '\t'.expandtabs({BIG}) }}}}",
    f"{{{{ 'x'.encode().ljust({BIG}) }}}}",
    f"{{{{ (1).to_bytes({BIG}, 'big') }}}}",
    f"{{{{ 'x'|indent({BIG}, first=true) }}}}",
    "{{ ('\n' * 10000000)|indent('y' * 10000000) }}",
    "{{ ('x ' * 5000000)|wordwrap(1, wrapstring='y' * 5000000) }}",
    f"{{{{ [1]|batch({BIG}, 'x')|list }}}}",
    f"{{{{ [1]|slice({BIG})|list }}}}",
    f"{{{{ [[1]]|tojson(indent={BIG}) }}}}",
    f"{{{{ 1.5|round({BIG}, 'ceil') }}}}",
    "{{ 9 ** 9999999 }}",
    "{{ 9 ** 9 ** 9 ** 9 ** 9 ** 9 }}",
    "{% set ns = namespace(n=7) %}{% for i in range(64) %}{% set ns.n = ns.n * ns.n %}{% endfor %}",
    "{{ ('x' * 5000000).replace('x', 'y' * 5000000) }}",
    "{{ ('x' * 5000000)|replace('', 'y' * 5000000) }}",
    "{{ range(100000)|join('y' * 5000000) }}",
    "{{ ('y' * 5000000).join(range(100000)|map('string')) }}",
    "{{ range(100000)|map('center', 100000)|join }}",
    "{{ 'x'.translate({120: 'y' * 10000000}) * 3 }}",
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}",
    "{% set s = 'x' * 9000000 %}{% for i in range(99999) %}{{ s }}{% endfor %}",
    "{% set s = 'x' * 9000000 %}{% set t %}{% for i in range(99999) %}{{ s }}{% endfor %}"
    "{% endset %}",
    "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}"
    "{% endfor %}{{ ns.s }}",
    "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}"
    "{% endfor %}{{ ns.s }}",
    "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = [ns.s, ns.s] %}"
    "{% endfor %}{{ ns.s == ns.s|list }}",
    "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = {'a': ns.s, 'b': ns.s} %}"
    "{% endfor %}{{ ns.s }}",
    "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = dict(a=ns.s, b=ns.s) %}"
    "{% endfor %}{{ ns.s }}",
    "{{ ([context] * 9000000)|string }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "{% for i in [[[]]] recursive %}{{ loop(i) }}{{ loop([i, i]) }}{% endfor %}",
    "{{ lipsum(100000) }}",
    "{{ [1, 2]|random }}",
    "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
    "{% for i in [1] %}" * 60 + "{% endfor %}" * 60,
]


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Two gigabytes more than now: what asks for ten fails here instead of taking the machine."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + 2 * 2**30, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("template", HOSTILE, ids=range(len(HOSTILE)))
def test_what_would_take_gigabytes_or_hours_is_one_sentence(template: str) -> None:
    with pytest.raises(PromptError) as caught:
        parse_prompt(f"# user\n{template}", "x").render(CASE)
    assert "\n" not in str(caught.value)
    assert "MemoryError" not in str(caught.value)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ inputs.items|join(', ') }}", "a, b"),
        ("{{ ', '.join(inputs['items']) }}", "a, b"),
        ("{{ '-' * 20 }}", "-" * 20),
        ("{{ inputs.n }} {{ '%d of %s'|format(inputs.n, 'us') }}", "7900000000 7900000000 of us"),
        ("{{ '{:>5}'.format(1) }}{{ '%05.1f' % 2.5 }}", "    1002.5"),
        ("{{ inputs.question.upper().replace('W', 'w').split('H')[0] }}", "w"),
        ("{{ inputs.rows|tojson }} {{ inputs.rows[0].get('k') }}", '[{"k": "v"}] v'),
        ("{{ inputs.rows|tojson(indent=2) }}", '[\n  {\n    "k": "v"\n  }\n]'),
        ("{{ 'a\nb'|indent(2) }}", "a\n  b"),
        ("{% for p in context if p.id != 'b' %}{{ loop.index }}{{ p.text }}{% endfor %}", "1first"),
        ("{% for a, b in [(1, 2), (3, 4)] %}{{ a + b }} {% endfor %}", "3 7 "),
        ("{% for k, v in {'a': 1}.items() %}{{ k ~ v ~ '!' }}{% endfor %}", "a1!"),
        ("{{ context|map(attribute='text')|map('upper')|join('/') }}", "FIRST/SECOND"),
        ("{% macro m(x) %}<{{ x }}>{{ caller() }}{% endmacro %}{% call m(1) %}in{% endcall %}",
         "<1>in"),
        ("{% set x %}a{{ 1 }}{% endset %}{{ x * 2 }}", "a1a1"),
        ("{% for i in [[1, [2]]] recursive %}{{ loop(i) if i is iterable else i }}{% endfor %}",
         "12"),
        ("{{ range(3)|list }} {{ 2 ** 10 }} {{ 7 % 4 }} {{ 2.5 * 2 }}", "[0, 1, 2] 1024 3 5.0"),
        ("{% filter upper %}a{{ 'b' }}{% endfilter %}{{ [1, 2, 3]|sum }}", "AB6"),
        ("{{ [3, 1]|sort|batch(1)|list }} {{ 1.26|round(1) }}", "[[1], [3]] 1.3"),
        ("{{ 'one two'|wordwrap(3) }}", "one\ntwo"),
    ],
)  # fmt: skip
def test_what_people_write_renders_as_before(template: str, text: str) -> None:
    assert parse_prompt(f"# user\n{template}", "x").render(CASE)[0].content == text


def test_a_long_prompt_of_many_pages_is_no_attack() -> None:
    pages = tuple(Document(f"p{i}", "word " * 2000) for i in range(400))
    case = Case("long", "easy", inputs={"q": "?"}, context=pages)
    text = "# user\n{% for p in context %}\n[{{ p.id }}] {{ p.text|trim }}\n{% endfor %}\n?"
    assert len(parse_prompt(text, "x").render(case)[0].content) > 3_900_000


def test_each_rendering_and_each_thread_has_a_budget_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rendering, "STEPS", 50)
    prompt = parse_prompt("# user\n{% for i in range(40) %}{{ i }}{% endfor %}", "x")
    failed: list[BaseException] = []

    def often() -> None:
        try:
            for _ in range(20):
                prompt.render(CASE)
        except PromptError as error:
            failed.append(error)

    threads = [threading.Thread(target=often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    with pytest.raises(PromptError, match="it takes more than 50 steps"):
        parse_prompt("# user\n{% for i in range(60) %}{{ i }}{% endfor %}", "x").render(CASE)


def test_computing_has_an_end_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "SECONDS", 0.0)
    with pytest.raises(PromptError, match="it takes more than 0 s of computing"):
        parse_prompt("# user\n{% for i in range(60) %}{{ i }}{% endfor %}", "x").render(CASE)
