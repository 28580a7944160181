"""Limits of rendering, and values in templates with loops, macros and calls."""

from __future__ import annotations

import asyncio
import types

import pytest

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import ChatCompletionInputMessage
from aigo_bridge.errors import TemplateError
from aigo_bridge.templates import CompiledAdapter, SampleTemplate, budget
from aigo_bridge.templates.compiling import compile_template

ENDLESS = "{% for i in range(99999) %}{% for j in range(99999) %}{{ sample.n }}{% endfor %}{% endfor %}"


@pytest.fixture
def quick_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a small rendering time limit and clear the template cache."""
    monkeypatch.setattr(budget, "SECONDS", 0.05)
    compile_template.cache_clear()


def test_read_only_mapping_renders_as_a_mapping() -> None:
    view = types.MappingProxyType({"a": 1})
    printed = SampleTemplate("{{ sample.x }}{{ 2 ** 2 }}").render(sample={"x": view})
    assert printed == f"{view}4"


def test_object_is_returned_unchanged() -> None:
    message = ChatCompletionInputMessage(role="user", content="hi")
    assert SampleTemplate("{{ (m, 2 ** 2)[0] }}").evaluate(m=message) is message


@pytest.mark.parametrize("source", ["{{ sample.nam ** 2 }}", "{{ other ** 2 }}", "a\n{{ 1 ** sample }}"])
def test_error_has_its_line(source: str) -> None:
    with pytest.raises(TemplateError) as raised:
        SampleTemplate(source).render(sample={"name": 1}, trace=None)
    assert raised.value.issues[0].line == source.count("\n") + 1


def test_name_after_a_filter_is_checked() -> None:
    template = SampleTemplate("{{ ([sample] | sort(attribute='a'))[0].x }}")
    assert template.exists(sample={"a": 1, "x": 2})
    assert not template.exists(sample={"a": 1})


@pytest.mark.parametrize("source", ["{{ cycler(1) }}", "{{ namespace() }}", "{{ dict }}", "{{ 'a'.upper }}"])
def test_value_of_an_unsupported_type_is_an_error(source: str) -> None:
    with pytest.raises(TemplateError, match=r"of type '\w+', which a field cannot contain"):
        SampleTemplate(source).evaluate()


def test_adapter_changes_only_copies() -> None:
    body = {"list": [1]}
    template = CompiledAdapter("{% do body.list.append(2) %}{{ body.list | tojson }}")
    assert template.render(body=body) == "[1, 2]"
    assert body == {"list": [1]}


def test_adapter_can_append_through_a_filter() -> None:
    template = CompiledAdapter("{% set l = [] %}{% do (l | attr('append'))(2) %}{{ l | tojson }}")
    assert template.render() == "[2]"


@pytest.mark.usefixtures("quick_end")
def test_endless_template_is_reported_with_file_and_line() -> None:
    template = SampleTemplate("Question\n" + ENDLESS)
    template.locate("prompts/q.jinja", 10)
    with pytest.raises(TemplateError, match=r"prompts/q\.jinja:11: the template computes for more") as raised:
        template.render(sample={"n": 1})
    assert raised.value.code == Code.TEMPLATE_TOO_COSTLY


@pytest.mark.usefixtures("quick_end")
def test_a_template_that_took_too_long_with_five_rows_is_not_rendered_again() -> None:
    messages = []
    for number in range(7):
        with pytest.raises(TemplateError) as error:
            SampleTemplate(ENDLESS).render(sample={"n": number})
        messages.append(str(error.value))
    assert ["not rendered again" in message for message in messages] == [False] * 5 + [True] * 2


@pytest.mark.usefixtures("quick_end")
def test_time_limit_around_endless_templates_works() -> None:
    async def run() -> str:
        try:
            async with asyncio.timeout(0.01):
                while True:
                    try:
                        SampleTemplate(ENDLESS).render(sample={"n": 7})
                    except TemplateError:
                        await asyncio.sleep(0)
        except TimeoutError:
            return "the time limit held"

    assert asyncio.run(run()) == "the time limit held"


@pytest.mark.parametrize("count", [10, 1_000])
def test_loops_over_short_and_long_lists_know_their_length(count: int) -> None:
    source = "{% for x in sample.items %}{{ loop.index }}/{{ loop.length }}{{ x if loop.last }} {% endfor %}"
    printed = SampleTemplate(source).render(sample={"items": list(range(count))})
    assert printed.split()[-1] == f"{count}/{count}{count - 1}"
