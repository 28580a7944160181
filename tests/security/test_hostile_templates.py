"""Templates that try to escape, fill the memory or run endlessly: a quick error with bounded memory.

One process with a limited address space renders all of them and prints the outcomes, which are checked case by case.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

LIMIT_BYTES = 500 * 1024 * 1024
RENDERING_WORK = 10_000_000
"""A tenth of the limit of a run, as many templates reach it."""
RENDERING_SECONDS = 0.05
"""Instead of the limit of a run: a dozen templates reach it."""
LIMIT_SECONDS = 0.7

REACHES_OUT = [
    "{{ sample.__class__ }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ ''['__class__'] }}",
    "{{ '' | attr('__class__') }}",
    "{{ [''] | map(attribute='__class__') | list }}",
    "{{ '{0.__class__}'.format(1) }}",
    "{{ '{x.__class__}'.format_map({'x': 1}) }}",
    "{{ cycler.__init__.__globals__ }}",
    "{{ joiner.__init__.__globals__ }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ range.__self__ }}",
    "{{ dict.mro() }}",
    "{{ dict.fromkeys('ab', 1) }}",
    "{{ {}.fromkeys(range(9)) }}",
    "{{ self._TemplateReference__context }}",
    "{{ model.parse_file('/etc/hostname') }}",
    "{{ model.parse_raw('x', proto='pickle', allow_pickle=true) }}",
    "{{ model.parse_obj({}) }}",
    "{{ model.model_validate_json('{}') }}",
    "{{ model.model_copy(update={'x': 2}) }}",
    "{{ model.model_construct() }}",
    "{{ function() }}",
    "{{ function.__globals__ }}",
    "{{ model.schema_json.__func__ }}",
    "{% include '/etc/hostname' %}",
    "{% import 'os' as os %}",
    "{% extends 'x' %}",
    "{{ lipsum() }}",
    "{{ [1, 2] | random }}",
    "{{ (5).to_bytes(10 ** 9) }}",
]

FILLS_MEMORY = [
    "{{ 'x' * 10 ** 10 }}",
    "{{ 10 ** 9 * 'x' }}",
    "{{ ('x' * 10 ** 7) * 10 ** 7 }}",
    "{{ (1,) * 10 ** 9 }}",
    "{{ [range(99999) | list] * 100000 }}",
    "{{ ('a' * 1000).encode() * 10 ** 9 }}",
    "{{ (10 ** 999) ** (10 ** 999) }}",
    "{% set ns = namespace(x=3) %}{% for i in range(100) %}{% set ns.x = ns.x * ns.x %}{% endfor %}{{ ns.x }}",
    "{{ 10 ** 5000 }}",
    "{{ range(10 ** 9) | list }}",
    "{{ 'x'.center(10 ** 10) }}",
    "{{ 'x'.ljust(10 ** 10) }}",
    "{{ '1'.zfill(10 ** 10) }}",
    "{{ ('\t' * 1000).expandtabs(10 ** 8) }}",
    "{{ '\t'.expandtabs(tabsize=10 ** 10) }}",
    "{{ ('a ' * 10000000).split() }}",
    "{{ ('a\u2003' * 10000000).split() }}",
    "{{ ('ab' * 10000000).split(sep='b') }}",
    "{{ ('\u2028' * 10000000).splitlines() }}",
    "{{ 'x' | center(10 ** 10) }}",
    "{{ 'x' | center(width=10 ** 10) }}",
    "{{ 'x' | indent(width=10 ** 10, first=true) }}",
    "{{ 1 | tojson(indent='x' * 100000000) }}",
    "{{ '{:{w}}'.format(1, w=10 ** 10) }}",
    "{{ 'x' | indent(10 ** 10, true) }}",
    "{{ ('x\n' * 100000) | indent('y' * 100000) }}",
    "{{ '{:10000000000}'.format(1) }}",
    "{{ '{:>{}}'.format(1, 10 ** 10) }}",
    "{{ '{:.10000000000f}'.format(1.0) }}",
    "{{ '%10000000000d' % 1 }}",
    "{{ '%*d' % (10 ** 10, 1) }}",
    "{{ '%.10000000000f' % 1.5 }}",
    "{{ '%*d' | format(10 ** 10, 1) }}",
    "{{ ('%s' * 1000000) % ((('a' * 1000000),) * 1000000) }}",
    "{{ ('%(a)s' * 1000000) % {'a': 'a' * 1000000} }}",
    "{{ ('{0}' * 1000000).format('a' * 1000000) }}",
    "{{ ('a' * 1000000).replace('a', 'b' * 1000000) }}",
    "{{ ('a' * 1000000) | replace('', 'b' * 1000000) }}",
    "{{ ('a' * 1000000).translate({97: 'b' * 1000000}) }}",
    "{{ ('a' * 1000000).join('b' * 1000000) }}",
    "{{ ('a' * 1000000).join(range(99999) | map('string')) }}",
    "{{ range(99999) | join('a' * 1000000) }}",
    "{{ ('a' * 1000000) | regex_replace('', 'b' * 10000) }}",
    "{{ ('a' * 10000000) | list }}",
    "{{ ('a ' * 1000000) | wordwrap(1, wrapstring='x' * 100000) }}",
    "{{ [('a' * 1000000)] * 100000 | tojson }}",
    "{{ 1 | tojson(indent=10 ** 10) }}",
    "{{ [1] | batch(10 ** 10, 'x') | list }}",
    "{{ range(99999) | slice(10 ** 10) | list }}",
    "{{ 1.5 | round(10 ** 9, 'ceil') }}",
    "{{ date.strftime('%1000000000d') }}",
    "{% set ns = namespace(x='a') %}{% for i in range(100) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x='a') %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x={}) %}{% for i in range(100) %}{% set ns.x = dict(a=ns.x, b=ns.x) %}{% endfor %}",
    "{% set ns = namespace(x={}) %}{% for i in range(100) %}{% set ns.x = {'a': ns.x, 'b': ns.x} %}{% endfor %}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x | zip(ns.x) | list %}{% endfor %}",
    "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = ns.x + ['y' * 100000] %}{% endfor %}",
    "{% for i in range(99999) %}{{ 'x' * 100000 }}{% endfor %}",
    "{% set x %}{% for i in range(99999) %}" + "y" * 100_000 + "{% endfor %}{% endset %}",
    "{% for i in range(99999) %}" + "y" * 100_000 + "{% endfor %}",
]

NEVER_ENDS = [
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "{% for i in range(99999) %}{% for j in range(99999) if false %}{% endfor %}{% endfor %}",
    "{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(1) }}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "{{ range(99999) | select('in', range(99999) | list) | list }}",
    "{{ ('a' * 40 ~ '!') | regex_replace('(a|aa)+$', '') }}",
    "{{ ('a' * 100000) | regex_replace('(?=(a*))', '\\\\1') }}",
    "{{ ('<' * 1000000) | striptags }}",
    "{{ ('<a>' * 100000) | striptags }}",
    "{{ ('-' * 1000000) | wordwrap(5) }}",
    "{{ range(99999) | join }}" * 3000,
    "{% for x in [[]] recursive %}{{ loop([[]]) }}{% endfor %}",
]

ENDED_BY_THE_KERNEL = [
    "{{ 5 | round(-99999999) }}",
    "{{ 5 | round(-99999999, 'floor') }}",
    "{{ hexadecimal | int(base=16) // hexadecimal[:2000000] | int(base=16) == 1 }}",
    "{{ hexadecimal | int(base=16) % hexadecimal[:2000000] | int(base=16) == 1 }}",
    "{{ hexadecimal | int(base=16) is divisibleby(hexadecimal[:2000000] | int(base=16)) }}",
    "{{ letters.strip('b' * 200000 ~ 'a-') }}",
    "{% set n = namespace(x=[1]) %}{% for i in range(30) %}{% set n.x = (n.x, n.x) %}{% endfor %}{{ n.x == n.x[:1] * 2 }}",
    "{{ collisions | unique | list | length }}",
    "{{ (letters * 40) | title | length }}{{ (letters * 40) | title | length }}",
    "{% macro f(x) %}{{ x == x }}{% endmacro %}{% for i in range(99999) %}{{ f(letters ~ i) }}{% endfor %}",
]

TOO_LARGE = [
    "{{ " + "(" * 20_000 + "1" + ")" * 20_000 + " }}",
    "{{ " + "[" * 20_000 + "]" * 20_000 + " }}",
    "{% if 1 %}" * 5_000 + "{% endif %}" * 5_000,
    "{% for a in [1] %}" * 40 + "{% endfor %}" * 40,
    "{{ " + "1 + " * 20_000 + "1 }}",
    "{{ " + "-" * 20_000 + "1 }}",
    "{{ " + "9" * 100_000 + " }}",
    "{{ [" + "1," * 60_000 + "] }}",
    "{{ a }}" * 20_000,
    "{{ sample" + ".b" * 5_000 + " }}",
    "{{ sample" + "[0]" * 5_000 + " }}",
    "{{ sample" + "()" * 5_000 + " }}",
    "{{ sample" + " | upper" * 5_000 + " }}",
    "{{ " + "not " * 5_000 + "1 }}",
    "{{ " + "1 if 1 else " * 5_000 + "1 }}",
    "{{ " + "a ~ " * 5_000 + "a }}",
    "x" * 17_000_000,
]

ADAPTERS = [
    "{% set l = [1] %}{% for x in l %}{% do l.append(x) %}{% endfor %}",
    "{% set l = [1] %}{% for i in range(99) %}{% do l.extend(l) %}{% endfor %}",
    "{% set l = [1] %}{% do l.extend(l | map('string')) %}{% do l.append(l) %}{{ l | tojson }}",
    (
        "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set m = [] %}{% do m.append(ns.l) %}"
        "{% do m.append(ns.l) %}{% set ns.l = m %}{% endfor %}{{ ns.l }}"
    ),
    "{% set d = {} %}{% do d.update({'d': d}) %}{{ d | tojson }}",
    "{{ body.__class__ }}",
    "{{ model.parse_file('/etc/hostname') }}",
]

NOT_NUMBERS = [
    "{{ 1e400 }}",
    "{{ -1e999 }}",
    "{{ [1, 1e309] }}",
    "{{ 1e308 * 10 }}",
    "{{ 1e308 + 1e308 }}",
    "{{ 1e308 / 1e-10 }}",
    "{{ 0x" + "f" * 4_000 + " }}",
]

CASES = [
    ("sample", source)
    for source in REACHES_OUT + FILLS_MEMORY + NEVER_ENDS + ENDED_BY_THE_KERNEL + TOO_LARGE + NOT_NUMBERS
] + [("adapter", source) for source in ADAPTERS]

RUNNER = """
import datetime, json, os, resource, sys, time, warnings
warnings.simplefilter("ignore")
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), int(sys.argv[1])))
from aigo_bridge.dtypes import ChatCompletionInputMessage
from aigo_bridge.errors import TemplateError
from aigo_bridge.templates import budget, filters
from aigo_bridge.templates import CompiledAdapter, SampleTemplate

variables = {"sample": {"question": "q"}, "model": ChatCompletionInputMessage(role="user", content="hi"),
             "function": os.getcwdb, "body": {}, "date": datetime.date(2020, 1, 1),
             "hexadecimal": "f" * 4_000_000, "letters": "a-" * 500_000,
             "collisions": [(2**61 - 1) * number for number in range(60_000)]}
budget.WORK, budget.SECONDS = int(sys.argv[2]), float(sys.argv[3])
filters.SECONDS = budget.SECONDS
for kind, source in json.load(sys.stdin):
    started = time.process_time()
    try:
        template = CompiledAdapter(source) if kind == "adapter" else SampleTemplate(source)
        rendered = template.render(**variables)
        outcome = ["rendered", rendered[:100], None]
    except TemplateError as error:
        outcome = ["error", error.issues[0].message, error.issues[0].line]
    except BaseException as error:
        outcome = [type(error).__name__, str(error)[:200], None]
    print(json.dumps([*outcome, time.process_time() - started]), flush=True)
"""


@pytest.fixture(scope="module")
def outcomes() -> list[list[Any]]:
    bridge = Path(__file__).parents[2] / "bridge"
    ran = subprocess.run(
        [sys.executable, "-c", RUNNER, *map(str, (LIMIT_BYTES, RENDERING_WORK, RENDERING_SECONDS))],
        input=json.dumps(CASES),
        env={"PYTHONPATH": str(bridge)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(found) == len(CASES), ran.stderr
    return found


def _name(source: str) -> str:
    return source if len(source) < 70 else f"{source[:60]}… ({len(source)})"


@pytest.mark.parametrize("number", range(len(CASES)), ids=[_name(source) for _, source in CASES])
def test_hostile_template_is_a_quick_clear_error(outcomes: list[list[Any]], number: int) -> None:
    kind, message, line, seconds = outcomes[number]
    assert kind == "error", message
    assert message
    assert len(message) < 500
    assert line in (1, 2)
    assert seconds < LIMIT_SECONDS
