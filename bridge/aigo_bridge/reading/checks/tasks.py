"""Tasks: names, texts, duplicates and contradictions between their parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aigo_bridge.errors import Issue
from aigo_bridge.reading.checks.actions import check_actions
from aigo_bridge.reading.checks.parameters import check_parameters, keys_of
from aigo_bridge.reading.checks.scoring import check_scorers
from aigo_bridge.reading.checks.signatures import call_of
from aigo_bridge.reading.checks.texts import (
    FILTERED,
    JUDGED,
    NEEDS_SOLVER,
    SAMPLE,
    SOLVED,
    check_markers,
    check_no_path,
    check_snippet,
    check_template,
    marker_names,
)
from aigo_bridge.reading.checks.trees import Path, duplicates, mapping, mappings, not_finite, walk
from aigo_bridge.spec import has_marker

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
"""Fields that are templates, and what they see."""

FUNCTIONS = {
    "compute_scores_snippet": "compute_scores",
    "compute_metrics_snippet": "compute_metrics",
    "postprocess_snippet": "postprocess",
    "run_solver_snippet": "run_solver",
    "compute_evidence_snippet": "compute_evidence",
    "synthesize_snippet": "synthesize",
    "run_inference_snippet": "run_inference",
}
"""Fields that are Python, and the function that will be called."""


PROMPTS = frozenset({"content", "template", "system_prompt", "user_prompt", "user_prompt_template"})
"""Fields that are texts for a model."""


def check_task(task: dict[str, Any], path: Path) -> Iterator[Issue]:
    """Everything about one task."""
    definition = mapping(task.get("definition"))
    here = (*path, "definition")
    parameters = task.get("config_spec")
    yield from check_parameters(parameters, (*path, "config_spec"))
    yield from _texts(definition, here, keys_of(parameters))
    yield from _unused(parameters, definition, (*path, "config_spec"))
    if definition.get("type") == "system_task":
        return
    yield from check_scorers(definition, here)
    yield from duplicates(mappings(definition.get("actions")), (*here, "actions"), "action rule")
    yield from check_actions(definition, here)
    yield from _turns(definition, here)
    yield from _loops(definition, here)
    yield from _examples(definition, here)


def _texts(definition: dict[str, Any], path: Path, parameters: set[str]) -> Iterator[Issue]:
    solved = definition.get("solver") is not None
    for here, part in walk(definition, path):
        for name, value in part.items():
            if name in {"value", "values"} and "op" in part:
                for item in value if isinstance(value, list) else [value]:
                    yield from not_finite(item, (*here, name))
                continue
            for index, text in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if not isinstance(text, str):
                    continue
                at = (*here, name) if index is None else (*here, name, index)
                yield from check_markers(text, at, parameters)
                if name in _TEMPLATES and index is None:
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
    used: set[str] = set()
    for _, part in walk(definition, ()):
        for value in part.values():
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str):
                    used |= marker_names(text)
    for index, parameter in declared:
        key = parameter.get("key")
        if isinstance(key, str) and key and key not in used:
            yield Issue(f"parameter {key!r} is never used", path=(*path, index, "key"), severity="warning")


def _turns(definition: dict[str, Any], path: Path) -> Iterator[Issue]:
    """A conversation in which the evaluated model says something, or has said it in a recorded one."""
    solver = mapping(definition.get("solver"))
    here = (*path, "solver", "message_builders")
    if solver.get("type") != "multi_turn_solver" or not isinstance(solver.get("message_builders"), list):
        return
    builders = list(walk(solver["message_builders"], here))
    if not any(builder.get("type") in ("generate", "load_trace") for _, builder in builders):
        message = "there is no 'generate', so the evaluated model is never asked"
        yield Issue(message, path=here, hint="add '- {type: generate}' where it is to answer")
    for at, builder in builders:
        if "extra_input_messages" in at and builder.get("terminate_if") is not None:
            message = "'terminate_if' means nothing for a message that does not stay in the conversation"
            yield Issue(message, path=(*at, "terminate_if"), hint="put it on the 'generate_message' itself")


def _loops(definition: dict[str, Any], path: Path) -> Iterator[Issue]:
    for here, part in walk(definition.get("solver"), (*path, "solver")):
        if part.get("type") != "loop" or part.get("on_max_iterations", "error") != "error":
            continue
        inner = mappings(part.get("message_builders"))
        if not any(builder.get("terminate_if") for _, builder in inner):
            yield Issue(
                "nothing in this loop ends it, so every sample will fail at its last iteration",
                path=here,
                hint="write 'on_max_iterations: continue', or a 'terminate_if' in one of its builders",
                severity="warning",
            )


def _examples(definition: dict[str, Any], path: Path) -> Iterator[Issue]:
    """Choices are those of an example's answer, which is one of them."""
    builder = mapping(mapping(definition.get("solver")).get("input_builder"))
    for index, message in mappings(builder.get("input_messages")):
        choices, role, content = message.get("choices"), message.get("role"), message.get("content")
        here = (*path, "solver", "input_builder", "input_messages", index, "choices")
        if choices is not None and role in ("user", "system"):
            yield Issue(f"'choices' are those of an answer, and this message is the {role}'s", path=here)
        elif isinstance(choices, list) and isinstance(content, str) and "{" not in content:
            plain = all(isinstance(choice, str) and not has_marker(choice) for choice in choices)
            if plain and not has_marker(content) and content not in choices:
                yield Issue(f"'choices': found {choices!r}, expected {content!r} among them", path=here)
