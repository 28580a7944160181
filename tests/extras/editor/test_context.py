"""Completion context at the cursor in incomplete YAML."""

from __future__ import annotations

import pytest
from tests.support.editor import CURSOR

from aigo_editor.context import Context, context_at, in_text


def at(marked: str) -> Context:
    offset = marked.index(CURSOR)
    return context_at(marked.replace(CURSOR, ""), offset)


@pytest.mark.parametrize(
    ("marked", "subject", "path", "prefix"),
    [
        ("█", "key", (), ""),
        ("key: a\nde█", "key", (), "de"),
        ("definition:\n  █", "key", ("definition",), ""),
        ("definition:\n  so█\n  scorers: []", "key", ("definition",), "so"),
        ("a:\n  - type: x\n    █\n  - b: c", "key", ("a", 0), ""),
        ("a:\n  - █", "item", ("a", 0), ""),
        ("a: [b, █]", "item", ("a", 1), ""),
        ("a: {type: x, k█}", "key", ("a",), "k"),
        ("a: {type: █}", "value", ("a", "type"), ""),
        ("a: b█\nc: {d: [", "value", ("a",), "b"),
        ('a: "b█', "value", ("a",), "b"),
        ('a: "{{ sample.█', "column", ("a",), ""),
        ('a: "{{ sample.qu█ }} and {{ b }}"', "column", ("a",), "qu"),
        ("a: |\n  x {{ sample['q█'] }}\n", "column", ("a",), "q"),
        ("a: |\n  {% if sample.q█ %}\n", "column", ("a",), "q"),
        ('a: "{{ sa█ }}"', "variable", ("a",), "sa"),
        ('a: "{{ sample.x | to█ }}"', "filter", ("a",), "to"),
        ('a: "{{ scores.█ }}"', "scores", ("a",), ""),
        ("a: << █", "parameter", ("a",), ""),
        ("a: << config.da█ >>", "parameter", ("a",), "da"),
        ("a: !include pr█", "file", ("a",), "pr"),
        ("a:\n  $ref: ../q█", "file", ("a", "$ref"), "../q"),
        ("a: {{ b }} x█", "nothing", (), ""),
        ("a: b # c█", "nothing", (), ""),
        ("a: |\n  plain words█\n", "nothing", (), ""),
    ],
)
def test_context_has_the_subject_path_and_prefix_at_the_cursor(
    marked: str, subject: str, path: tuple[object, ...], prefix: str
) -> None:
    context = at(marked)
    assert (context.subject, context.prefix) == (subject, prefix)
    if subject != "nothing":
        assert context.path == path


def test_completion_replaces_the_typed_word() -> None:
    marked = "tags: [𝄞]\ndefinition:\n  scor█\n"
    context = at(marked)
    text = marked.replace(CURSOR, "")
    assert text[context.replaced.start : context.replaced.end] == "scor"


def test_context_contains_the_document_without_the_typed_word() -> None:
    context = at("key: a\ndefinition:\n  scorers:\n    - type: str█\n      key: s\n")
    assert context.data == {"key": "a", "definition": {"scorers": [{"type": "str", "key": "s"}]}}
    assert at("a:\n  b: c\n  d█").siblings == {"b"}


def test_completed_key_gets_a_colon_only_if_it_has_none() -> None:
    assert at("de█").needs_colon
    assert not at("de█: {}").needs_colon


@pytest.mark.parametrize(
    ("text", "subject", "prefix"),
    [
        ("Answer in {{ sample.la", "column", "la"),
        ("n = sample['qu", "column", "qu"),
        ('n = sample.data["qu', "column", "qu"),
        ("limit = << config.li", "parameter", "li"),
    ],
)
def test_context_is_found_in_prompts_and_snippets(text: str, subject: str, prefix: str) -> None:
    context = in_text(text, len(text), (), None)
    assert context is not None
    assert (context.subject, context.prefix) == (subject, prefix)


def test_plain_text_has_no_completion_context() -> None:
    assert in_text("Answer in {{ sample.language }} only, pl", 40, (), None) is None
