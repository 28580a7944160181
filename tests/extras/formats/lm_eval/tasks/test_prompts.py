"""Translated templates render the same text as the harness's templates."""

from __future__ import annotations

from typing import Any

import jinja2
import pytest

from aigo_bridge.templates import SampleTemplate
from aigo_formats.lm_eval.tasks.prompts import UntranslatableError, expression_of, text_of

HARNESS = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
ROW: dict[str, Any] = {
    "question": "  Why?\n",
    "choices": {"text": ["a é", "b"], "label": ["A", "B"]},
    "answerKey": "B",
    "n": 1,
    "x": 2,
    "sample": "a column of that name",
    "nothing": None,
}


@pytest.mark.parametrize(
    "template",
    [
        "Question: {{question}}\nAnswer:",
        "{{ question.strip() }} {{choices.text[0]}}",
        "{{choices.label.index(answerKey)}}",
        "{% for text in choices.text %}{{loop.index}}. {{text|trim}}{% if not loop.last %}, {% endif %}{% endfor %}",
        "{% set q = question %}{{ q ~ q }}",
        "{{ {'n': n, 'x': x}['n'] }}",
        "{{ ['A', 'B'][n] }}{{ x if x is defined and n is not none else 'question' }}",
        "{%- if n -%}  {{ n }}  {%- endif -%}  end",
        "{{ question | replace('Why', 'n') }}{{ 'question' }}",
        "{{ dict(x=x, n=n).n }} {{ range(n) | list }}",
        "{{ sample }} {{ nothing }} {# question #}{% raw %}{{ n }}{% endraw %}",
        "{% macro said(n) %}<{{ n }}>{% endmacro %}{{ said(x) }}",
        "plain text with << and {curly} braces",
        "{{ choices['text'][n] }}{{ choices.text | map('upper') | join('|') }}",
    ],
)
def test_translated_template_renders_like_the_harness_template(template: str) -> None:
    assert SampleTemplate(text_of(template)).render(sample=ROW) == HARNESS.from_string(template).render(**ROW)


def test_bare_name_is_translated_as_a_column() -> None:
    assert text_of("question") == "{{ sample.question }}"
    assert expression_of("question") == "sample.question"


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{choices.text}}", ["a é", "b"]),
        ("{{[n, x]}}", [1, 2]),
        (" {{- choices.label -}} ", ["A", "B"]),
        ("{{ n if x > 1 else x }}", 1),
    ],
)
def test_translated_expression_has_the_expected_value(template: str, value: Any) -> None:
    expression = expression_of(template)
    assert SampleTemplate(f"{{{{ {expression} }}}}").evaluate(sample=ROW) == value


@pytest.mark.parametrize("template", ["['a', '{{n}}']", "{{n}}{{x}}", "text", "{% if n %}{{x}}{% endif %}"])
def test_template_with_literal_text_has_no_expression(template: str) -> None:
    assert expression_of(template if template != "text" else "some text") is None


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{ question", "not a template"),
        ("{{ question | nowhere }}", "lack the filter 'nowhere'"),
        ("{{ n is prime }}", "lack the test 'prime'"),
        ("{% include 'other' %}", "not available"),
        ("{{" + "(" * 5000 + "n" + ")" * 5000 + "}}", "nested too deeply"),
        ("{{n}}" * 40_000, "characters"),
    ],
)
def test_untranslatable_template_is_rejected_with_a_reason(template: str, why: str) -> None:
    with pytest.raises(UntranslatableError, match=why):
        text_of(template)
