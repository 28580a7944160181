"""Checks of tasks: dependencies between parts, and parameters of tasks, generators and evaluations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue
from aigo_bridge.reading.checks.scoring import check_actions, check_scorers
from aigo_bridge.reading.checks.snippets import call_of
from aigo_bridge.reading.checks.texts import (
    FILTERED,
    JUDGED,
    NEEDS_SOLVER,
    SAMPLE,
    SOLVED,
    check_markers,
    check_no_path,
    check_snippet,
    check_snippet_syntax,
    check_template,
    marker_names,
)
from aigo_bridge.reading.kinds import Kind
from aigo_bridge.reading.messages import found_words, nearest
from aigo_bridge.spec.base import (
    Path,
    duplicates,
    has_marker,
    mapping,
    mappings,
    not_finite,
    number,
    texts,
    texts_of,
    walk,
)
from aigo_bridge.spec.task import SOLVER_WITHOUT_DATASET, dataset_ref_problem

_TEMPLATES = {
    "content": SAMPLE,
    "template": SAMPLE,
    "ground_truth": SOLVED,
    "value": SOLVED,
    "ground_truth_choice": SAMPLE,
    "choices": SAMPLE,
    "continuations": SAMPLE,
    "unconditioned_query": SAMPLE,
    "original_query": SAMPLE,
    "fewshot_sorting_class": SAMPLE,
    "function_calls": SAMPLE,
    "system_prompt": JUDGED,
    "user_prompt": JUDGED,
    "expression": FILTERED,
}
"""Template fields and their variables."""

FUNCTIONS = {
    "compute_scores_snippet": "compute_scores",
    "compute_metrics_snippet": "compute_metrics",
    "postprocess_snippet": "postprocess",
    "run_solver_snippet": "run_solver",
    "compute_evidence_snippet": "compute_evidence",
    "synthesize_snippet": "synthesize",
    "run_inference_snippet": "run_inference",
}
"""Python fields and the function that is called."""


PROMPTS = frozenset({"content", "template", "system_prompt", "user_prompt", "user_prompt_template"})
"""Fields with texts for a model."""


def check_task(task: dict[str, Any], path: Path) -> Iterator[Issue]:
    """Yield all problems of one task."""
    definition = mapping(task.get("definition"))
    place = (*path, "definition")
    parameters = task.get("config_spec")
    yield from check_parameters(parameters, (*path, "config_spec"))
    yield from _texts(definition, place, keys_of(parameters))
    yield from _unused(parameters, definition, (*path, "config_spec"))
    if definition.get("type") == "system_task":
        return
    yield from check_scorers(definition, place)
    yield from duplicates(mappings(definition.get("actions")), (*place, "actions"), "action rule")
    yield from check_actions(definition, place)
    yield from _turns(definition, place)
    yield from _loops(definition, place)
    yield from _examples(definition, place)


def _texts(definition: dict[str, Any], path: Path, parameters: set[str]) -> Iterator[Issue]:
    solved = definition.get("solver") is not None
    for place, part in walk(definition, path):
        for name, value in part.items():
            if name in {"value", "values"} and "op" in part:
                for item in value if isinstance(value, list) else [value]:
                    yield from not_finite(item, (*place, name))
                continue
            for at, _, text in texts_of({name: value}, place):
                yield from check_markers(text, at, parameters)
                if name in _TEMPLATES and text is value:
                    visible = _TEMPLATES[name] if solved else _TEMPLATES[name] - NEEDS_SOLVER
                    yield from check_template(text, at, visible)
                elif name in FUNCTIONS:
                    yield from check_snippet(text, at, FUNCTIONS[name], call_of(name, part, solved=solved))
                if name in PROMPTS:
                    yield from check_no_path(text, at)


def _unused(parameters: Any, definition: dict[str, Any], path: Path) -> Iterator[Issue]:
    declared = mappings(parameters)
    if not declared:
        return
    texts_below = (text for _, part in walk(definition, ()) for _, _, text in texts_of(part, ()))
    used = {name for text in texts_below for name in marker_names(text)}
    for index, parameter in declared:
        key = parameter.get("key")
        if isinstance(key, str) and key and key not in used:
            yield Issue(
                f"parameter {key!r} is never used",
                path=(*path, index, "key"),
                severity="warning",
                code=Code.UNUSED_PARAMETER,
            )


def _turns(definition: dict[str, Any], path: Path) -> Iterator[Issue]:
    """Check that the evaluated model generates a message, or that a recorded conversation contains one."""
    solver = mapping(definition.get("solver"))
    place = (*path, "solver", "message_builders")
    if solver.get("type") != "multi_turn_solver" or not isinstance(solver.get("message_builders"), list):
        return
    builders = list(walk(solver["message_builders"], place))
    if not any(builder.get("type") in ("generate", "load_trace") for _, builder in builders):
        message = "no 'generate' in the conversation, so the evaluated model is never called"
        yield Issue(
            message,
            path=place,
            hint="add '- {type: generate}' at the turn that the model should answer",
            code=Code.WRONG_CONVERSATION,
        )
    for at, builder in builders:
        if "extra_input_messages" in at and builder.get("terminate_if") is not None:
            message = "'terminate_if' has no effect on a message that is not kept in the conversation"
            yield Issue(
                message,
                path=(*at, "terminate_if"),
                hint="put it on the 'generate_message' itself",
                code=Code.WRONG_CONVERSATION,
            )


def _loops(definition: dict[str, Any], path: Path) -> Iterator[Issue]:
    for place, part in walk(definition.get("solver"), (*path, "solver")):
        if part.get("type") != "loop" or part.get("on_max_iterations", "error") != "error":
            continue
        inner = mappings(part.get("message_builders"))
        if not any(builder.get("terminate_if") for _, builder in inner):
            yield Issue(
                "this loop does not have an end condition, so every sample will fail at its last iteration",
                path=place,
                hint=("write 'on_max_iterations: continue', or add 'terminate_if' to one of its builders"),
                severity="warning",
                code=Code.WRONG_CONVERSATION,
            )


def _examples(definition: dict[str, Any], path: Path) -> Iterator[Issue]:
    """Check that `choices` belong to the answer of an example, which must be one of them."""
    builder = mapping(mapping(definition.get("solver")).get("input_builder"))
    for index, message in mappings(builder.get("input_messages")):
        choices, role, content = message.get("choices"), message.get("role"), message.get("content")
        place = (*path, "solver", "input_builder", "input_messages", index, "choices")
        if choices is not None and role in ("user", "system"):
            yield Issue(
                f"'choices' are only allowed for answers, but the role of this message is {role}",
                path=place,
                code=Code.WRONG_CHOICES,
            )
        elif isinstance(choices, list) and isinstance(content, str) and "{" not in content:
            plain = all(isinstance(choice, str) and not has_marker(choice) for choice in choices)
            if plain and not has_marker(content) and content not in choices:
                yield Issue(
                    f"'choices': found {choices!r}, expected {content!r} to be one of them",
                    path=place,
                    code=Code.WRONG_CHOICES,
                )


def relation_issues(kind: Kind, data: dict[str, Any]) -> Iterator[Issue]:
    """Yield the errors that the validators of the models would report for the tasks in a document."""
    if kind == "task":
        yield from _task(data, ())
    if kind == "run":
        for index, task in mappings(data.get("tasks")):
            yield from _task(task, ("tasks", index))


def _task(task: dict[str, Any], path: Path) -> Iterator[Issue]:
    definition = mapping(task.get("definition"))
    place = (*path, "definition")
    dataset = definition.get("dataset")
    if definition.get("solver") is not None and dataset is None and definition.get("type") != "system_task":
        yield Issue(SOLVER_WITHOUT_DATASET, path=place, code=Code.NO_ANSWER_TO_SCORE)
    if isinstance(dataset, dict):
        problem = dataset_ref_problem(dataset.get("source"), dataset.get("key"), dataset.get("keys"))
        if problem is not None:
            yield Issue(problem, path=(*place, "dataset"), code=Code.CONTRADICTION)


_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "float": (int, float),
    "boolean": bool,
}


def check_parameters(value: Any, path: Path) -> Iterator[Issue]:
    """Yield duplicates, impossible ranges, and defaults that the parameter itself does not allow."""
    parameters = mappings(value)
    yield from duplicates(parameters, path, "parameter")
    for index, parameter in parameters:
        place = (*path, index)
        if parameter.get("key") == "":
            yield Issue(
                "'key' is empty, so the parameter cannot be used", path=(*place, "key"), code=Code.WRONG_VALUE
            )
        match parameter.get("type"):
            case "int" | "float":
                yield from _range(parameter, place)
            case "categorical":
                yield from _categories(parameter, place)
            case "list" | "dict":
                yield from _items(parameter, place)
            case "string":
                yield from _text(parameter, place)


def keys_of(value: Any) -> set[str]:
    """Return the keys of the entries in a list. For parameters, these are the names for `<< config.x >>`."""
    return {parameter["key"] for _, parameter in mappings(value) if isinstance(parameter.get("key"), str)}


def _range(parameter: dict[str, Any], path: Path) -> Iterator[Issue]:
    for name in ("min", "max", "default_value"):
        yield from not_finite(parameter.get(name), (*path, name))
    low, high = number(parameter.get("min")), number(parameter.get("max"))
    default = number(parameter.get("default_value"))
    if low is not None and high is not None and low > high:
        yield Issue(
            f"'min' is {low:g} and 'max' is {high:g}, so no value is allowed",
            path=(*path, "min"),
            code=Code.WRONG_DECLARATION,
        )
    if default is not None and ((low is not None and default < low) or (high is not None and default > high)):
        limits = f"from {low:g}" if low is not None else ""
        limits += f" up to {high:g}" if high is not None else ""
        yield Issue(
            f"'default_value': found {default:g}, expected a number {limits.strip()}",
            path=(*path, "default_value"),
            code=Code.WRONG_DECLARATION,
        )


def _categories(parameter: dict[str, Any], path: Path) -> Iterator[Issue]:
    allowed = texts(parameter.get("allowed_values"))
    default = parameter.get("default_value")
    chosen = [default] if isinstance(default, str) else texts(default)
    if isinstance(default, list) and parameter.get("multiple") is not True:
        yield Issue(
            "'default_value': found a list, expected one of the allowed values",
            path=(*path, "default_value"),
            hint="write 'multiple: true' if several may be chosen",
            code=Code.WRONG_DECLARATION,
        )
    for value in chosen:
        if value not in allowed:
            yield Issue(
                f"'default_value': found {value!r}, expected one of "
                f"{', '.join(map(repr, allowed)) or 'nothing'}",
                path=(*path, "default_value"),
                hint=nearest(value, allowed),
                code=Code.WRONG_DECLARATION,
            )
    mapped = parameter.get("values_mapping")
    for value in mapped if isinstance(mapped, dict) else ():
        if value not in allowed:
            yield Issue(
                f"'values_mapping' has {value!r}, which is not an allowed value",
                path=(*path, "values_mapping", value),
                hint=nearest(str(value), allowed),
                code=Code.WRONG_DECLARATION,
            )


def _items(parameter: dict[str, Any], path: Path) -> Iterator[Issue]:
    default = parameter.get("default_value")
    name = "dtype" if parameter["type"] == "list" else "value_dtype"
    wanted = parameter.get(name)
    entries = (
        enumerate(default)
        if isinstance(default, list)
        else default.items()
        if isinstance(default, dict)
        else ()
    )
    for key, value in entries:
        if isinstance(wanted, str) and wanted in _TYPES and not _fits(value, wanted):
            yield Issue(
                f"'default_value' [{key}]: found {found_words(value)}, expected {wanted} as {name!r} says",
                path=(*path, "default_value", key),
                code=Code.WRONG_DECLARATION,
            )


def _fits(value: Any, wanted: str) -> bool:
    if isinstance(value, bool):
        return wanted == "boolean"
    return isinstance(value, _TYPES[wanted])


def _text(parameter: dict[str, Any], path: Path) -> Iterator[Issue]:
    default = parameter.get("default_value")
    if not isinstance(default, str):
        return
    if parameter.get("string_kind") == "jinja":
        yield from check_template(default, (*path, "default_value"))
    elif parameter.get("string_kind") == "python":
        yield from check_snippet_syntax(default, (*path, "default_value"))
