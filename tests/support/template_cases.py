"""Cases for templates: every form that the environment has, with operands from small to hostile.

A form is a template over the variables `a`, `b` and `c`; it is compiled once and rendered with many operands.
"""

from __future__ import annotations

import datetime as dt
import inspect
import itertools
import json
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import jinja2.filters
import jinja2.tests
from jinja2 import nodes

from aigo_bridge.errors import TemplateError
from aigo_bridge.templates import SampleTemplate, sample
from aigo_bridge.templates.filters import FILTERS

SECONDS_OF_A_CASE = 4.0
"""Processor time after which the kernel ends the process: far from what a quick case takes, and from what a slow machine adds."""


def operands(size: int) -> dict[str, Any]:
    """Return values of every type that a row can contain, scaled to a size."""
    nested: Any = []
    for _ in range(min(size // 100, 150)):
        nested = [nested]
    return {
        "text": "lorem ipsum, " * (size // 13),
        "one letter": "a" * size,
        "spaces": " " * size,
        "brackets": "<" * size,
        "tags": "<a>" * (size // 3),
        "dashes": "a-" * (size // 2),
        "lines": "x\n" * (size // 2),
        "escapes": '"\\' * (size // 2),
        "unicode": "ßİ\u0345\ud7ff😀" * (size // 5),
        "digits": "9" * size,
        "hexadecimal": "0x" + "f" * size,
        "percent": "%s" * (size // 2),
        "braces": "{0}" * (size // 3),
        "json": "[" * (size // 2) + "]" * (size // 2),
        "numbers as json": "[" + "1," * (size // 2) + "1]",
        "empty": "",
        "short": "x",
        "a number": "1e3",
        "small": 3,
        "negative": -7,
        "large": 99_999_999,
        "very negative": -99_999_999,
        "huge": 16 ** (size // 4),
        "very long": 16**size,
        "real": 2.5,
        "largest": 1.7e308,
        "infinite": float("inf"),
        "not a number": float("nan"),
        "true": True,
        "nothing": None,
        "list": list(range(size // 8)),
        "texts": ["x"] * (size // 8),
        "long texts": ["b" * 1000] * (size // 1000),
        "huge numbers": [16 ** (size // 16)] * 16,
        "maps": [{"x": 1, "y": "z"}] * (size // 16),
        "pairs": [["k", 1]] * (size // 16),
        "mixed": [1, "a", None, 2.5, [1]] * (size // 40),
        "nested": nested,
        "map": {str(number): number for number in range(size // 16)},
        "colliding": {(2**61 - 1) * number: number for number in range(min(size // 100, 400))},
        "colliding list": [(2**61 - 1) * number for number in range(size // 16)],
        "range": range(size),
        "date": dt.date(2024, 2, 29),
        "bytes": b"ab" * (size // 2),
    }


def forms() -> Iterator[str]:
    """Return a template for each template feature."""
    environment = sample.STRICT
    signatures = {**jinja2.filters.FILTERS, **FILTERS}
    for name in sorted(environment.filters):
        yield from _applied("{{ a | %s%s }}", name, signatures[name], skip=1)
        yield f"{{% filter {name} %}}{{{{ a }}}}{{% endfilter %}}"
        yield f"{{{{ [a, b] | map('{name}') | list }}}}"
    for name in sorted(environment.tests):
        if name.isidentifier():
            yield from _applied("{{ a is %s%s }}", name, jinja2.tests.TESTS[name], skip=1)
        yield f"{{{{ [a, b] | select({name!r}) | list }}}}"
        yield f"{{{{ a | reject({name!r}, b) | list }}}}"
    for operator in sorted({*nodes.BinExpr.__subclasses__()}, key=lambda kind: kind.__name__):
        if operator.operator is not None:
            yield f"{{{{ a {operator.operator} b }}}}"
    for operator_text in ("==", "!=", "<", "<=", ">", ">=", "in", "not in"):
        yield f"{{{{ a {operator_text} b }}}}"
        yield f"{{{{ a < b {operator_text} a }}}}"
    yield from (f"{{{{ {prefix} a }}}}" for prefix in ("-", "+", "not"))
    for name in sorted(environment.globals):
        yield from (f"{{{{ {name}{arguments} }}}}" for arguments in ("", "(a)", "(a, b)", "(x=a)"))
    for kind in (str, bytes, int, float, list, tuple, dict, set, range, dt.date):
        for name in dir(kind):
            if not name.startswith("_"):
                yield from (f"{{{{ a.{name}{arguments} }}}}" for arguments in ("", "()", "(b)", "(b, c)"))
    yield from STATEMENTS


def _applied(pattern: str, name: str, function: Any, *, skip: int) -> Iterator[str]:
    parameters = (
        [
            parameter.name
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind is not parameter.VAR_KEYWORD
        ]
        if callable(function) and not isinstance(function, type)
        else []
    )
    yield pattern % (name, "")
    yield pattern % (name, "(b)")
    yield pattern % (name, "(b, c)")
    yield pattern % (name, "(*b)")
    yield from (pattern % (name, f"({parameter}=b)") for parameter in parameters[skip:])


STATEMENTS = [
    "{{ a }}",
    "{{ a ~ b }}",
    "{{ [a, b, a] }}{{ (a, b) }}{{ {'k': a} }}",
    "{{ {a: b} }}",
    "{{ a[b] }}{{ a[0] }}{{ a.x }}",
    "{{ a[b:] }}{{ a[:b] }}{{ a[::-1] }}",
    "{{ a[::b] }}",
    "{{ a if b else c }}{{ a and b }}{{ a or b }}",
    "{% for x in a %}{{ loop.index }}{{ x }}{% else %}{{ b }}{% endfor %}",
    "{% for x in a if x != b %}{{ x }}{% endfor %}",
    "{% for x in a if false %}{% endfor %}",
    "{% for x in a %}{% for y in b %}{{ x == y }}{% endfor %}{% endfor %}",
    "{% for x in a %}{{ loop.cycle(a, b) }}{{ loop.changed(a) }}{{ loop.previtem is defined }}{% endfor %}",
    "{% for x in a recursive %}{{ loop(a) }}{% endfor %}",
    "{% for k, v in a.items() %}{{ k }}{{ v }}{% endfor %}",
    "{% set x = a %}{% set y = x %}{{ x == y }}",
    "{% set x %}{{ a }}{% endset %}{{ x }}",
    "{% set n = namespace(x=a) %}{% for i in range(40) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}",
    "{% set n = namespace(x=a) %}{% for i in range(40) %}{% set n.x = n.x * n.x %}{% endfor %}{{ n.x }}",
    "{% set n = namespace(x=a) %}{% for i in range(40) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}",
    "{% with x = a, y = b %}{{ x == y }}{% endwith %}",
    "{% macro f(x, y=2) %}{{ x }}{{ varargs }}{% endmacro %}{{ f(a) }}{{ f(a, b, c) }}{{ f == a }}",
    "{% macro f(x) %}{{ caller(x) }}{% endmacro %}{% call(x) f(a) %}{{ x }}{% endcall %}",
    "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(a) }}",
    "{% set c = cycler(a, b) %}{{ c.next() == c.next() }}{{ c == a }}",
    "{% set j = joiner(a) %}{{ j() }}{{ j() }}",
    "{% filter upper %}{{ a }}{% endfilter %}",
    "{% for x in a %}{% if x == b %}{% break %}{% endif %}{% continue %}{% endfor %}",
    "{% autoescape true %}{{ a }}{% endautoescape %}",
    "{% do a %}",
    "{{ a.b.c.d }}{{ a['x']['y'] }}",
    "{{ a | tojson | fromjson | tojson == a | tojson }}",
    "{{ a | map('length') | map('string') | join(b) }}",
    "{{ a | map(attribute='x') | list }}{{ a | map(attribute='x.y', default=b) | list }}",
    "{{ a | selectattr('x') | list }}{{ a | selectattr('x', '==', b) | list }}",
    "{{ a | groupby('x') | list }}{{ a | sum(attribute='x') }}{{ a | sort(attribute='x') }}",
    "{{ '%s %d %(x)s' % a }}{{ a % b }}",
    "{{ '{0:{1}}'.format(a, b) }}{{ a.format(b) }}",
    "{{ a ** b }}{{ a // b }}{{ a % b }}",
    "{{ a.strip(b) }}{{ a.strip(a) }}{{ a.translate({97: b}) }}",
    "{{ a | int(base=16) // a | int(base=16) }}",
    "{{ a | int(base=16) is divisibleby 7 }}",
]


def examine(size: int = 8_000, stride: int = 101) -> Iterator[list[Any]]:
    """Render every form with hostile operands; yield unexpected errors, and last the number of cases.

    The kernel ends the process if one case takes too long.

    Args:
        size: of the larger ones of the operands.
        stride: of how many pairs of operands one is taken, other ones for each form; 1 takes all.
    """
    counts: Counter[str] = Counter()
    large = operands(size)
    pairs = list(itertools.product(large, large))
    for number, form in enumerate(forms()):
        try:
            template = SampleTemplate(form)
        except TemplateError:
            counts["not templates"] += 1
            continue
        counts["forms"] += 1
        cases = pairs[number % stride :: stride] if "b" in form else [(a, "short") for a in large]
        for a, b in cases:
            print(json.dumps(["case", form, a, b]), file=sys.stderr, flush=True)
            signal.setitimer(signal.ITIMER_PROF, SECONDS_OF_A_CASE)
            try:
                template.render(a=large[a], b=large[b], c=large["large"])
                counts["rendered"] += 1
            except TemplateError:
                counts["refused"] += 1
            except Exception as error:  # noqa: BLE001  # any other error is the finding
                yield ["problem", f"{form} with {a}, {b}", f"{type(error).__name__}: {error}"]
            signal.setitimer(signal.ITIMER_PROF, 0)
    yield ["counts", dict(counts)]
