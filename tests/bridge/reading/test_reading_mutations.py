"""Every key of every example is misspelt, omitted, and given a value of the wrong type.

The nodes of the examples are the test cases; the expected position is the changed node.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.bridge.reading.reading_examples import CONNECTIONS, DATASET, EXAMPLES, MODEL, SOURCES, errors_of

TEXTS = {
    **EXAMPLES,
    **{
        f"source {name}": DATASET[: DATASET.index("source:")] + f"source: {text}\n"
        for name, text in SOURCES.items()
    },
    **{
        f"connection {name}": MODEL[: MODEL.index("config:")] + f"config: {text}\n"
        for name, text in CONNECTIONS.items()
    },
}
FREE = {
    "values_mapping",
    "weights",
    "sample_properties",
    "samples",
    "fields",
    "load_dataset_kwargs",
    "environment",
}
FREE |= {
    "dataset_generator_config",
    "secrets",
    "custom_headers",
    "metadata",
    "config",
    "evaluation_config",
    "arguments",
}


def _pairs(text: str) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    """Yield path, key node and value node of every entry whose key is defined by the format."""
    waiting: list[tuple[tuple[Any, ...], Any]] = [((), yaml.compose(text, Loader=yaml.CSafeLoader))]
    while waiting:
        path, node = waiting.pop()
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                yield (*path, key.value), key, value
                if key.value not in FREE or (key.value == "config" and path == () and "connection" in text):
                    waiting.append(((*path, key.value), value))
        elif isinstance(node, yaml.SequenceNode):
            waiting += [((*path, index), item) for index, item in enumerate(node.value)]


def _replaced(text: str, node: Any, new: str) -> str:
    old = text[node.start_mark.index : _end(node)]
    return text[: node.start_mark.index] + new + old[len(old.rstrip()) :] + text[_end(node) :]


def _end(node: Any) -> int:
    if isinstance(node, yaml.ScalarNode) or node.flow_style:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)


def _own_pairs(name: str) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    """Yield the entries of an example, without those outside a source or connection: other examples have them."""
    own = {"source": "source", "connection": "config"}.get(name.split(maxsplit=1)[0])
    return (pair for pair in _pairs(TEXTS[name]) if own is None or pair[0][0] == own)


CASES = [(name, path) for name in TEXTS for path, _, _ in _own_pairs(name)]


def _entry(name: str, path: tuple[Any, ...]) -> tuple[str, Any, Any]:
    text = TEXTS[name]
    return next((text, key, value) for found, key, value in _pairs(text) if found == path)


def test_mutation_table_has_enough_cases() -> None:
    assert len(CASES) > 450


@pytest.mark.parametrize("name", TEXTS)
def test_misspelt_key_is_reported_at_every_depth_with_a_suggestion(name: str, tmp_path: Path) -> None:
    for path, key, _ in _own_pairs(name):
        if path == ("definition",) or len(key.value) < 3:
            continue  # the kind is unknown without a definition, and two letters have no similar name
        wrong = key.value + "x"
        issues = errors_of(_replaced(TEXTS[name], key, wrong), tmp_path)
        if len(path) == 1 and any("cannot tell" in issue.message for issue in issues):
            continue
        at = (key.start_mark.line + 1, key.start_mark.column + 1)
        found = [issue for issue in issues if (issue.line, issue.column) == at]
        assert found, (path, [str(issue) for issue in issues])
        if key.value in {"type", "op", "function", "connection_type"}:
            continue  # the known keys depend on this value
        assert any(
            issue.message == f"unknown key {wrong!r}" and issue.hint == f"did you mean {key.value!r}?"
            for issue in found
        ), (path, [str(issue) for issue in found])


@pytest.mark.parametrize("name", TEXTS)
def test_a_value_of_the_wrong_type_is_reported_at_its_position(name: str, tmp_path: Path) -> None:
    for path, key, value in _own_pairs(name):
        if (path[-1] in FREE and path[-1] != "config") or path[-2:] == ("config", "api_key"):
            continue
        # No field accepts a list of lists, and a text is neither a mapping nor a list.
        wrong = "[[]]" if isinstance(value, yaml.ScalarNode) else "wrong kind"
        if path[-1] in {
            "use_cases",
            "domains",
            "providers",
            "scope",
            "choices",
            "function_calls",
            "template",
            "trace_id",
        }:
            wrong = "12"
        if isinstance(value, yaml.ScalarNode) and value.style in {"|", ">"}:
            continue  # only the line of the key can be replaced; the other styles cover texts
        text = _replaced(
            TEXTS[name], value, f" {wrong}" if value.start_mark.line > key.start_mark.line else wrong
        )
        issues = errors_of(text, tmp_path)
        assert any(
            issue.line == key.start_mark.line + 1 or issue.line == value.start_mark.line + 1
            for issue in issues
        ), (
            path,
            text,
            [str(issue) for issue in issues],
        )


@pytest.mark.parametrize("name", TEXTS)
def test_missing_required_key_is_reported(name: str, tmp_path: Path) -> None:
    for path, key, value in _own_pairs(name):
        if path[-1] not in {"key", "display_name", "ground_truth", "field", "expression", "url", "model_key"}:
            continue
        if path[-1] in {"key", "model_key"} and name != "single_turn" and len(path) > 1:
            continue
        if (
            isinstance(value, yaml.ScalarNode)
            and key.start_mark.column
            and "{" in TEXTS[name].splitlines()[key.start_mark.line]
        ):
            continue  # flow mappings are covered by the other tests
        text = TEXTS[name][: key.start_mark.index] + "tags: []" + TEXTS[name][_end(value) :]
        issues = errors_of(text, tmp_path)
        optional = any(word in str(path) for word in ("scorers", "metrics", "config")) and path[-1] in {
            "key",
            "display_name",
            "model_key",
        }
        said = (f"{path[-1]!r} is missing", "expected one of 'key' and 'keys', found neither")
        assert optional or any(issue.message in said for issue in issues), (path, [str(i) for i in issues])
