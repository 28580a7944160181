"""Names that a template reads."""

from __future__ import annotations

import pytest

from aigo_bridge.templates import SampleTemplate


@pytest.mark.parametrize(
    ("source", "required", "optional"),
    [
        ("plain", set(), set()),
        ("{{ sample.question }}", {"sample.question"}, set()),
        ('{{ sample["Col With"] }}', {"sample.Col With"}, set()),
        ("{{ sample | tojson }}", {"sample"}, set()),
        ("{{ sample.a if sample.b else sample.c }}", {"sample.b"}, {"sample.a", "sample.c"}),
        ("{% if sample.a %}{{ sample.b }}{% elif sample.c %}{% else %}{{ sample.d }}{% endif %}", {"sample.a"},
         {"sample.b", "sample.c", "sample.d"}),
        ("{% if sample.x is defined %}{{ sample.x }}{% endif %}", set(), {"sample.x"}),
        ("{{ sample.x | default(sample.y) }}{{ sample.x }}", {"sample.y"}, {"sample.x"}),
        ("{% if 'x' in sample %}{% endif %}{{ sample.x }}", {"sample"}, {"sample.x"}),
        ("{{ sample.get('x') }}", {"sample"}, set()),
        ("{{ sample.get('x') }}{{ sample.x }}", {"sample"}, {"sample.x"}),
        ("{{ sample.items() }}", {"sample"}, set()),
        ("{{ sample.question.upper() }}", {"sample.question"}, set()),
        ("{{ messages[-1].content }}", {"messages"}, set()),
        ("{{ solver_output.output }}", {"solver_output.output"}, set()),
        ("{{ L[sample.idx] }}", {"L", "sample.idx"}, set()),
        ("{{ sample[sample.key] }}", {"sample", "sample.key"}, set()),
        ("{% set s = sample.a %}{{ s }}{{ s.b }}", {"sample.a"}, set()),
        ("{% for c in sample.choices %}{{ c.x }}{{ loop.index }}{{ sample.y }}{% endfor %}",
         {"sample.choices", "sample.y"}, set()),
        ("{% macro f(a) %}{{ a }}{{ sample.z }}{% endmacro %}{{ f(sample.q) }}", {"sample.q"}, {"sample.z"}),
        ("{% if False %}{{ sample.never }}{% else %}{{ sample.always }}{% endif %}", {"sample.always"}, set()),
        ("{{ sample.a if True else sample.b }}", {"sample.a"}, set()),
        ("{{ sample.a and sample.b }}", {"sample.a"}, {"sample.b"}),
        ("{{ range(3) | list }}{{ dict(a=1) }}", set(), set()),
        ("{{ sample.a.b.c }}", {"sample.a.b.c"}, set()),
        ("{% set _ = sample.a %}{% do sample.b %}", {"sample.a", "sample.b"}, set()),
        ("{{ scores.judge.label }}", {"scores.judge.label"}, set()),
        ("{{ sample.choices | map(attribute='x') | join(sample.sep) }}", {"sample.choices", "sample.sep"}, set()),
    ],
)  # fmt: skip
def test_required_and_optional_names_are_found(source: str, required: set[str], optional: set[str]) -> None:
    template = SampleTemplate(source)
    assert {".".join(path) for path in template.reads} == required
    assert {".".join(path) for path in template.optional_reads} == optional


def test_line_of_the_first_read_is_found() -> None:
    template = SampleTemplate("{{ sample.a }}\n\n{{ sample.b }}{{ sample.a }}")
    assert template.line_of(("sample", "a")) == 1
    assert template.line_of(("sample", "b")) == 3
    assert template.line_of(("sample", "c")) is None


def test_template_without_expression_is_constant() -> None:
    assert SampleTemplate("no expression {# only a comment #}").is_constant
    assert not SampleTemplate("{{ 1 }}").is_constant
    assert not SampleTemplate("{% set x = 1 %}").is_constant
