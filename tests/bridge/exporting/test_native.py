"""Templates over the answer: translation to Python methods, and templates that have none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aigo_bridge.exporting.native import answer_methods
from aigo_bridge.exporting.runtime import METHODS
from aigo_bridge.solving.conversation import chat_output
from aigo_bridge.templates import SampleTemplate

CONTENT = "solver_output.output.choices[0].message.content"


@pytest.mark.parametrize(
    ("template", "methods"),
    [
        (None, ()),
        ("{{ solver_output.output }}", ()),
        ("{{- solver_output['output'] -}}\n", ()),
        ("{{ solver_output.output | trim | lower }}", ("trim", "lower")),
        (f"{{{{ {CONTENT} | upper }}}}", ("upper",)),
    ],
)
def test_template_is_translated_to_methods_of_the_answer(
    template: str | None, methods: tuple[str, ...]
) -> None:
    assert answer_methods(template) == methods


@pytest.mark.parametrize(
    "template",
    [
        "",
        "x",
        "{{ solver_output.output }} ",
        " {{ solver_output.output }}",
        "{{ solver_output.output }}\n\n",
        "{{ solver_output.output }}{{ solver_output.output }}",
        "{{ solver_output }}",
        "{{ sample.output }}",
        "{{ solver_output.output.choices[1].message.content }}",
        "{{ solver_output.output.choices[0].message }}",
        "{{ solver_output.output | trim('x') }}",
        "{{ solver_output.output | title }}",
        "{{ solver_output.output[:1] }}",
        "{{ solver_output.output or 'x' }}",
        "{{ solver_output['out' ~ 'put'] }}",
        "{% if true %}{{ solver_output.output }}{% endif %}",
        "{{ solver_output.output",
        "{% set solver_output = sample %}{{ solver_output.output }}",
    ],
)
def test_template_without_equivalent_methods_is_not_translated(template: str) -> None:
    assert answer_methods(template) is None


class Output:
    """Solver output as templates see it."""

    def __init__(self, text: str):
        self.output = chat_output(text)


filters = st.lists(st.sampled_from(["trim", "lower", "upper"]), max_size=4)


@settings(deadline=None)
@given(
    text=st.text(st.characters(exclude_categories=["Cs"])),
    names=filters,
    start=st.sampled_from(["solver_output.output", CONTENT]),
)
def test_translated_methods_give_the_same_text_as_the_template(
    text: str, names: list[str], start: str
) -> None:
    """This holds for any answer, including all kinds of whitespace and letters whose case changes the length."""
    template = "{{ " + " | ".join([start, *names]) + " }}"
    said = text
    for method in answer_methods(template) or ("missing",) * bool(names):
        said = METHODS[method](said)

    assert SampleTemplate(template).render(solver_output=Output(text).__dict__, sample={}) == said
