"""Forms that the default dialect accepts and release 3.17 rejects.

Both dialects use the same models. This module lists the additional forms of the default dialect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue
from aigo_bridge.reading.document import Document
from aigo_bridge.reading.kinds import Kind
from aigo_bridge.reading.messages import found_words
from aigo_bridge.spec.base import Path, has_marker, is_whole_marker, mapping, mappings, walk
from aigo_bridge.spec.metric import METRICS, MetricSpec
from aigo_bridge.spec.scorer import ScorerSpec
from aigo_bridge.spec.scorers import SCORERS
from aigo_bridge.spec.solvers import SOLVERS, SolverSpec


def refuse_wide_forms(kind: Kind, document: Document[Any]) -> Iterator[Issue]:
    """Yield an error with its position for every such form in a document."""
    if kind not in _RULES or not isinstance(document.data, dict):
        return
    yield from map(document.place, _RULES[kind](document.data, ()))


def _task(task: dict[str, Any], path: Path) -> Iterator[Issue]:
    if task.get("needs") is not None:
        yield _refused("'needs' is an aigo-bridge extension", (*path, "needs"))
    definition = mapping(task.get("definition"))
    place = (*path, "definition")
    yield from _parameters(task.get("config_spec"), (*path, "config_spec"))
    dataset = mapping(definition.get("dataset"))
    yield from _template_only(dataset, "key", (*place, "dataset"))
    for index, key in enumerate(dataset.get("keys") or () if isinstance(dataset.get("keys"), list) else ()):
        yield from _literal(key, (*place, "dataset", "keys", index))
    kind = str(mapping(definition.get("solver")).get("type"))
    if SOLVERS.get(kind, SolverSpec).is_extension:
        yield _refused(f"'type': {kind!r} is an aigo-bridge extension", (*place, "solver", "type"))
    for at, part in walk(definition.get("solver"), (*place, "solver")):
        yield from _template_only(part, "model_key", at)
        if part.get("type") == "loop":
            yield from _no_template(part, "max_iterations", at)
        yield from _half_template(part, ("role", "output_role", "include_conversation"), at)
        for name in ("choices", "unconditioned_query", "original_query", "fewshot_sorting_class"):
            if part.get(name) is not None:
                yield _refused(f"{name!r} is an aigo-bridge extension", (*at, name))
    trials = mapping(definition.get("trials"))
    yield from _half_template(trials, ("num_trials",), (*place, "trials"))
    yield from _at_least(trials, "num_trials", 2, (*place, "trials"))
    for index, scorer in mappings(definition.get("scorers")):
        yield from _scorer(scorer, (*place, "scorers", index))


def _scorer(scorer: dict[str, Any], path: Path) -> Iterator[Issue]:
    kind = str(scorer.get("type"))
    spec = SCORERS.get(kind, ScorerSpec)
    for name in spec.extension_fields:
        if scorer.get(name) is not None:
            yield _refused(f"{name!r} is an aigo-bridge extension", (*path, name))
    if spec.is_extension:
        yield _refused(f"'type': {kind!r} is an aigo-bridge extension", (*path, "type"))
    yield from _template_only(scorer, "model_key", path)
    yield from _template_only(scorer, "judge_model_key", path)
    if spec.snippet is not None and scorer.get("metrics") is None:
        yield _refused(f"'metrics' is missing: {kind!r} scorers must have it, even if empty", path)
    for name in ("choices", "function_calls"):
        if isinstance(scorer.get(name), list):
            yield _refused(
                f"{name!r}: found a list, expected text", (*path, name), "write the list as JSON in quotes"
            )
    for name in ("correct_labels", "incorrect_labels", "valid_labels"):
        if isinstance(scorer.get(name), str):
            yield _refused(f"{name!r}: found text, expected a list", (*path, name))
    yield from _half_template(scorer, ("score_min", "score_max"), path)
    if kind == "rag_checker":
        yield from _half_template(scorer, ("mode",), path)
    for index, metric in mappings(scorer.get("metrics")):
        at = (*path, "metrics", index)
        kind = str(metric.get("type"))
        if METRICS.get(kind, MetricSpec).is_extension:
            yield _refused(f"'type': {kind!r} is an aigo-bridge extension", (*at, "type"))
        yield from _half_template(metric, ("weights",), at)


def _parameters(parameters: Any, path: Path) -> Iterator[Issue]:
    for index, parameter in mappings(parameters):
        if parameter.get("type") == "categorical" and isinstance(parameter.get("default_value"), list):
            yield _refused("'default_value': found a list, expected text", (*path, index, "default_value"))
        for number, example in mappings(parameter.get("examples")):
            if example.get("display_name") == "":
                at = (*path, index, "examples", number, "display_name")
                yield _refused("'display_name': found an empty text, expected a name", at)


def _generator(generator: dict[str, Any], path: Path) -> Iterator[Issue]:
    yield from _parameters(generator.get("config_spec"), (*path, "config_spec"))
    definition = mapping(generator.get("definition"))
    place = (*path, "definition")
    source = mapping(definition.get("dataset"))
    if source.get("key") is not None:
        yield from _literal(source["key"], (*place, "dataset", "key"))
    yield from _template_only(source, "ai_app_key", (*place, "dataset"))
    for index, key in enumerate(source["keys"] if isinstance(source.get("keys"), list) else ()):
        yield from _literal(key, (*place, "dataset", "keys", index))
    yield from _no_template(source, "num_samples", (*place, "dataset"))
    yield from _half_template(source, ("random_seed",), (*place, "dataset"))
    for index, synthesizer in mappings(definition.get("synthesizers")):
        yield from _template_only(synthesizer, "model_key", (*place, "synthesizers", index))


def _model(model: dict[str, Any], path: Path) -> Iterator[Issue]:
    config = mapping(model.get("config"))
    if "process_input" in mapping(config.get("adapter")):
        yield _refused("'adapter': found an adapter, expected its key", (*path, "config", "adapter"))
    if config.get("connection_type") == "custom_inference":
        for name in ("environment", "timeout"):
            if config.get(name) is None:
                yield _refused(f"{name!r} is missing", (*path, "config"))


def _evaluation(evaluation: dict[str, Any], path: Path) -> Iterator[Issue]:
    yield from _parameters(evaluation.get("config_spec"), (*path, "config_spec"))
    for name in ("num_samples", "subsampling", "cache_policy"):
        if name in evaluation:
            yield _refused(
                f"unknown key {name!r}", (*path, name), "it belongs under 'run_config' of the run file"
            )
    for name in ("use_cases", "domains", "providers"):
        listed = evaluation.get(name)
        if isinstance(listed, list) and "any" in listed:
            place = (*path, name, listed.index("any"))
            yield _refused(f"{name!r}: found 'any' in a list", place, f"write '{name}: any', or list names")
    for index, specification in mappings(evaluation.get("task_specifications")):
        holder = (*path, "task_specifications", index)
        for name in ("model_key", "dataset_key", "subsampling"):
            if specification.get(name) is not None:
                yield from _literal(specification[name], (*holder, name))
        yield from _half_template(specification, ("num_samples",), holder)
        if "display_name" in specification and specification.get("type") == "repeatability":
            yield _refused("unknown key 'display_name'", (*holder, "display_name"))


def _run(run: dict[str, Any], path: Path) -> Iterator[Issue]:
    for name, rule in (
        ("tasks", _task),
        ("dataset_generators", _generator),
        ("models", _model),
    ):
        for index, entity in mappings(run.get(name)):
            yield from rule(entity, (*path, name, index))
    if isinstance(run.get("evaluation"), dict):
        yield from _evaluation(run["evaluation"], (*path, "evaluation"))


def _plan(plan: dict[str, Any], path: Path) -> Iterator[Issue]:
    if "evaluations" in plan:
        yield _refused(
            "unknown key 'evaluations'", (*path, "evaluations"), "write 'evaluation_specifications'"
        )
    if plan.get("evaluation_specifications") is None:
        yield _refused("'evaluation_specifications' is missing", path)


def _app(app: dict[str, Any], path: Path) -> Iterator[Issue]:
    if "key_info" in app:
        yield _refused("unknown key 'key_info'", (*path, "key_info"), "write 'risk_profile'")


_RULES: dict[Kind, Callable[[dict[str, Any], Path], Iterator[Issue]]] = {
    "task": _task,
    "generator": _generator,
    "model": _model,
    "evaluation": _evaluation,
    "run": _run,
    "plan": _plan,
    "app": _app,
}


def _refused(message: str, path: Path, hint: str | None = None) -> Issue:
    return Issue(f"{message} (release 3.17)", path=path, hint=hint, code=Code.NOT_IN_DIALECT)


def _literal(value: Any, path: Path) -> Iterator[Issue]:
    if isinstance(value, str) and not is_whole_marker(value):
        name = path[-1] if isinstance(path[-1], str) else path[-2]
        yield _refused(
            f"{name!r}: found {found_words(value)}, expected one '<< config.… >>'",
            path,
            "declare a parameter and give the key as its default_value",
        )


def _template_only(part: dict[str, Any], name: str, path: Path) -> Iterator[Issue]:
    if part.get(name) is not None:
        yield from _literal(part[name], (*path, name))


def _no_template(part: dict[str, Any], name: str, path: Path) -> Iterator[Issue]:
    if has_marker(part.get(name)):
        yield _refused(f"{name!r}: AI GO 3.17 cannot load '<< config.… >>' here", (*path, name))


def _half_template(part: dict[str, Any], names: tuple[str, ...], path: Path) -> Iterator[Issue]:
    """Check that typed fields contain a whole `<< config.x >>` or a value, not a text with a marker."""
    for name in names:
        if has_marker(part.get(name)) and not is_whole_marker(part[name]):
            yield _refused(
                f"{name!r}: found {found_words(part[name])}, expected one '<< config.… >>' and nothing else",
                (*path, name),
            )


def _at_least(part: dict[str, Any], name: str, least: int, path: Path) -> Iterator[Issue]:
    value = part.get(name)
    if isinstance(value, str) and not has_marker(value):
        value = int(float(value)) if value.strip().replace(".", "", 1).isdigit() else None
    if isinstance(value, int | float) and value < least:
        yield _refused(f"{name!r}: found {found_words(value)}, expected {least} or more", (*path, name))
