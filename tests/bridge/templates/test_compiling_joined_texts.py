"""Templates of only texts and columns are joined without Jinja, with the same output."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.errors import TemplateError
from aigo_bridge.templates import SampleTemplate

VALUES = st.text() | st.integers() | st.none() | st.booleans() | st.lists(st.text(), max_size=2)


@given(st.dictionaries(st.sampled_from(["a", "items", "keys"]), VALUES, min_size=3))
def test_joined_template_renders_like_its_single_columns(row: dict[str, Any]) -> None:
    names = ("a", "items", "keys")
    whole = "<{{ sample.a }}>\n{{ sample.items }} and {{sample.keys}}"
    # A filter keeps a template from being joined.
    jinja = {name: SampleTemplate(f"{{{{ sample.{name} | string }}}}").render(sample=row) for name in names}
    wanted = f"<{jinja['a']}>\n{jinja['items']} and {jinja['keys']}"
    assert SampleTemplate(whole).render(sample=row) == wanted


def test_long_text_is_rendered_completely() -> None:
    text = "x" * 10_001
    assert SampleTemplate("{{ sample.a }}!").render(sample={"a": text}) == text + "!"


def test_missing_column_is_reported() -> None:
    with pytest.raises(TemplateError, match=r"`sample\.b` is undefined; known: a"):
        SampleTemplate("{{ sample.a }}\n{{ sample.b }}").render(sample={"a": "x"})


def test_template_with_many_parts_has_the_rendering_budget() -> None:
    many = SampleTemplate("{{ sample.a }}" * 200)
    assert many.render(sample={"a": "ab"}) == "ab" * 200
    with pytest.raises(TemplateError, match="creates more than"):
        many.render(sample={"a": "x" * 1_000_000})
