"""Data sets, generators, models, adapters and evaluations, each by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from aigo_bridge.errors import Issue
from aigo_bridge.reading.checks.actions import check_constant, meant_expression
from aigo_bridge.reading.checks.parameters import check_parameters, keys_of
from aigo_bridge.reading.checks.signatures import call_of
from aigo_bridge.reading.checks.tasks import FUNCTIONS
from aigo_bridge.reading.checks.texts import (
    check_adapter_template,
    check_markers,
    check_snippet,
    check_template,
)
from aigo_bridge.reading.checks.trees import Path, duplicates, mapping, mappings, not_finite, texts, walk

_AGENTS = frozenset({"langsmith", "azure_foundry", "aws_bedrock", "claude_managed_agents", "dify"})


def check_dataset(dataset: dict[str, Any], path: Path) -> Iterator[Issue]:
    """A data set needs rows from somewhere, and filters that can be evaluated."""
    source, generated = dataset.get("source"), dataset.get("generator_specification")
    if source is None and generated is None:
        yield Issue("expected 'source' or 'generator_specification', found neither", path=path)
    if source is not None and generated is not None:
        yield Issue(
            "'source' and 'generator_specification' are both given",
            path=(*path, "generator_specification"),
            hint="a data set is read or generated; remove one",
        )
    for index, entry in mappings(mapping(source).get("filters")):
        here = (*path, "source", "filters", index)
        if isinstance(entry.get("expression"), str):
            at = (*here, "expression")
            yield from check_template(entry["expression"], at)
            meant = meant_expression(entry["expression"])
            for issue in check_constant(entry["expression"], at, "row", meant):
                # The platform takes it, and the constant of such a filter may be meant: `True` to keep every row.
                yield replace(issue, severity="warning")
        yield from not_finite(entry.get("value"), (*here, "value"))


def check_generator(generator: dict[str, Any], path: Path) -> Iterator[Issue]:
    """Texts and parameters of a generator."""
    parameters = generator.get("config_spec")
    yield from check_parameters(parameters, (*path, "config_spec"))
    known = keys_of(parameters)
    for here, part in walk(generator.get("definition"), (*path, "definition")):
        if here[-2:-1] == ("samples",):
            continue  # rows are data, whatever they look like
        for name, value in part.items():
            for index, text in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if not isinstance(text, str):
                    continue
                at = (*here, name) if index is None else (*here, name, index)
                yield from check_markers(text, at, known)
                if name in FUNCTIONS:
                    yield from check_snippet(text, at, FUNCTIONS[name], call_of(name, part, solved=False))
                elif name in {"system_prompt", "user_prompt_template", "template"}:
                    yield from check_template(text, at)


def check_model(model: dict[str, Any], path: Path) -> Iterator[Issue]:
    """A model's secrets and code."""
    secrets = set(texts(list(mapping(model.get("secrets")))))
    config = mapping(model.get("config"))
    for here, part in walk(config, (*path, "config")):
        for name, value in part.items():
            if not isinstance(value, str):
                continue
            if secrets:  # otherwise they are those of the run file
                yield from check_markers(value, (*here, name), secrets, root="secrets")
            if name in FUNCTIONS:
                yield from check_snippet(
                    value, (*here, name), FUNCTIONS[name], call_of(name, part, solved=False)
                )
    limit = model.get("rate_limit")
    if isinstance(limit, int) and not isinstance(limit, bool) and limit < 1:
        yield Issue(
            f"'rate_limit': found {limit}, expected 1 request per minute or more", path=(*path, "rate_limit")
        )


def check_adapter(adapter: dict[str, Any], path: Path) -> Iterator[Issue]:
    """An adapter's two templates."""
    for name in ("process_input", "process_output"):
        source = mapping(adapter.get(name)).get("source_code")
        if isinstance(source, str):
            yield from check_adapter_template(source, (*path, name, "source_code"))


def check_evaluation(evaluation: dict[str, Any], path: Path) -> Iterator[Issue]:
    """Parameters and keys of an evaluation."""
    parameters = evaluation.get("config_spec")
    yield from check_parameters(parameters, (*path, "config_spec"))
    specifications = mappings(evaluation.get("task_specifications"))
    here = (*path, "task_specifications")
    yield from duplicates(specifications, here, "specification")
    known = keys_of(parameters)
    for at, part in walk(evaluation.get("task_specifications"), here):
        for name, value in part.items():
            for index, text in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(text, str):
                    yield from check_markers(
                        text, (*at, name) if index is None else (*at, name, index), known
                    )
    for index, specification in specifications:
        count = specification.get("num_samples")
        if isinstance(count, int) and not isinstance(count, bool) and count < 1:
            yield Issue(
                f"'num_samples': found {count}, expected 1 or more", path=(*here, index, "num_samples")
            )
