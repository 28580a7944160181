"""Rendering and compiling templates, compared with Jinja alone (plain, and with its own sandbox).

    python benchmarks/templates.py [--renders 20000]

aigo-bridge adds the sandbox, a budget for every operation, strict names, and columns before methods.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment
from ratios import record

from aigo_bridge.templates import SampleTemplate

SAMPLE: dict[str, Any] = {
    "question": "What is the capital of France?",
    "choices": ["Paris", "Rome", "Bern", "Oslo"],
    "context": "Some longer passage of text. " * 40,
    "answer": 0,
}

TEMPLATES = {
    "two columns": "Answer briefly: {{ sample.question }}\n\n{{ sample.context }}",
    "choices in a loop": (
        "{{ sample.question }}\n{% for c in sample.choices %}{{ 'ABCD'[loop.index0] }}) {{ c }}\n{% endfor %}"
    ),
    "filters": "{{ sample.choices | tojson }} {{ sample.question | upper }}",
    "condition": (
        "{% if sample.answer == 0 %}{{ sample.choices[0] }}{% else %}{{ sample.context }}{% endif %}"
    ),
    "constant": "Answer with one letter.",
    "macro": "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(sample.question) }} {{ m(sample.context) }}",
}


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Return the time per call in the best of three rounds."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        for _ in range(repeats):
            call()
        best = min(best, (time.process_time() - start) / repeats)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--renders", type=int, default=20_000)
    renders = parser.parse_args().renders
    plain = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    sandbox = ImmutableSandboxedEnvironment(undefined=jinja2.StrictUndefined)

    print(f"{'rendering, µs per sample':28} {'ours':>8} {'Jinja':>8} {'sandboxed Jinja':>16}")
    for name, source in TEMPLATES.items():
        ours, bare, boxed = SampleTemplate(source), plain.from_string(source), sandbox.from_string(source)
        expected = bare.render(sample=SAMPLE)
        if name != "filters":  # Jinja's own tojson returns Markup, which escapes the text after it
            assert ours.render(sample=SAMPLE) == expected
        times = [
            seconds(functools.partial(template.render, sample=SAMPLE), renders)
            for template in (ours, bare, boxed)
        ]
        print(f"{name:28} {times[0] * 1e6:8.1f} {times[1] * 1e6:8.1f} {times[2] * 1e6:16.1f}")
        record(name, times[0] / times[1])

    distinct = iter(range(10**9))
    source = TEMPLATES["choices in a loop"]

    def fresh() -> str:
        return f"{next(distinct)} {source}"

    print(f"\n{'compiling, µs per template':28} {'ours':>8} {'Jinja':>8}")
    checked = seconds(lambda: SampleTemplate(fresh()), 300)
    rendered = seconds(lambda: SampleTemplate(fresh()).render(sample=SAMPLE), 300)
    bare_time = seconds(lambda: plain.from_string(fresh()), 300)
    again = seconds(lambda: SampleTemplate(source), 10_000)
    print(f"{'checked (names known)':28} {checked * 1e6:8.1f} {'–':>8}")
    print(f"{'ready to render':28} {rendered * 1e6:8.1f} {bare_time * 1e6:8.1f}")
    record("ready to render", rendered / bare_time)
    print(f"{'the same text again':28} {again * 1e6:8.1f} {'–':>8}")


if __name__ == "__main__":
    main()
