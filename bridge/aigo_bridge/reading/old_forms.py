"""Old spellings, rewritten to the current ones with a warning that shows the new form.

Sources: the changes between the documented releases of AI GO and what release 3.17 still accepts.
A form whose meaning cannot be carried over is not guessed at; `OLD_KEYS` says what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable

from yaml.nodes import MappingNode, Node, ScalarNode

from aigo_bridge.reading.document import Dialect
from aigo_bridge.reading.edits import Rewriter, get, items, text_of
from aigo_bridge.reading.nodes import NULL

OLD_KEYS = {
    "metric": "old form: write a 'python' scorer under 'scorers' with a 'mean' metric over its score",
    "code": "old form: write 'compute_metrics_snippet' that defines compute_metrics(scores: list[SampleScore])",
    "entity_key": "old form: write 'model_key', or 'dataset_key' for tasks that evaluate a data set",
    "entity_id": "old form: write 'model_key', or 'dataset_key' for tasks that evaluate a data set",
    "task_id": "old form: write 'task_key'",
    "evaluated_entity_type": "no longer needed: what is evaluated follows from the presence of a solver",
    "fast_subset_size": "no longer has a meaning: remove it",
    "response_format": "not part of the format: say in the prompt what the answer must look like",
}


_NO_SOLVER = (
    "'evaluated_entity_type' is 'model', but the definition has no solver to ask one",
    "add a 'solver'; a task without one scores a data set: remove 'evaluated_entity_type' if that is meant",
)


def rewrite(kind: str, node: Node, dialect: Dialect) -> Rewriter:
    """Brings the nodes of one entity to the current form, in place."""
    rewriter = Rewriter()
    form = _FORMS.get(kind)
    if form is not None and isinstance(node, MappingNode):
        form(node, rewriter, dialect == "default")
    return rewriter


def _task(task: MappingNode, rewriter: Rewriter, wide: bool) -> None:
    definition = get(task, "definition")
    if wide:
        _entity_type(task, definition, rewriter)
        if (modalities := get(task, "modalities")) is not None:
            rewriter.warn(modalities, "'modalities' no longer has a meaning", "remove it")
            rewriter.drop(task, "modalities")
    if isinstance(definition, MappingNode):
        if wide:
            _old_definition(definition, rewriter)
        _deprecated_definition(definition, rewriter, wide)


def _entity_type(task: MappingNode, definition: Node | None, rewriter: Rewriter) -> None:
    outer = get(task, "evaluated_entity_type")
    if outer is None:
        return
    inner = text_of(definition, "evaluated_entity_type")
    written = text_of(task, "evaluated_entity_type")
    if not isinstance(outer, ScalarNode) or (outer.tag != NULL and written not in {"model", "dataset"}):
        rewriter.refuse(outer, "'evaluated_entity_type': expected one of 'model', 'dataset'")
    elif inner is not None and written is not None and inner != written:
        rewriter.refuse(
            outer,
            f"'evaluated_entity_type' is {written!r} here and {inner!r} in the definition",
            "remove both: what is evaluated follows from the presence of a solver",
        )
    elif written == "model" and inner is None and not _has_solver(definition):
        rewriter.refuse(outer, *_NO_SOLVER)
    elif written == "dataset" and get(definition, "solver") is not None:
        rewriter.refuse(
            outer,
            "'evaluated_entity_type' is 'dataset', but the definition has a solver",
            "a task with a solver evaluates a model; remove one of the two",
        )
    else:
        rewriter.warn(
            outer,
            "'evaluated_entity_type' is an old form",
            "remove it: what is evaluated follows from the presence of a solver",
        )
    rewriter.drop(task, "evaluated_entity_type")


def _old_definition(definition: MappingNode, rewriter: Rewriter) -> None:
    _renamed(definition, "kind", "type", rewriter)
    if text_of(definition, "type") == "declarative_task":
        rewriter.warn(
            get(definition, "type") or definition,
            "'declarative_task' is an old form",
            "write 'benchmark_task'",
        )
        rewriter.set_scalar(definition, "type", "benchmark_task")
    dataset, solver = get(definition, "dataset"), get(definition, "solver")
    if isinstance(dataset, MappingNode):
        source = get(dataset, "source")
        if isinstance(source, MappingNode) and get(source, "id") is not None and get(dataset, "key") is None:
            rewriter.warn(source, "'source: {id: …}' is an old form", f"write 'key: {text_of(source, 'id')}'")
            rewriter.replace_by_inner(dataset, "source", "id", "key")
        if (size := get(dataset, "fast_subset_size")) is not None:
            rewriter.warn(
                size,
                "'fast_subset_size' no longer has a meaning",
                "remove it, and use num_samples of the run",
            )
            rewriter.drop(dataset, "fast_subset_size")
    if isinstance(solver, MappingNode):
        _renamed(solver, "key", "type", rewriter)
        if isinstance(builder := get(solver, "input_builder"), MappingNode):
            _renamed(builder, "key", "type", rewriter)
    for scorer in items(get(definition, "scorers")):
        if isinstance(scorer, MappingNode):
            _renamed(scorer, "build_sample_evidence_snippet", "compute_scores_snippet", rewriter)
            for metric in items(get(scorer, "metrics")):
                if isinstance(metric, MappingNode):
                    _renamed(metric, "code", "compute_metrics_snippet", rewriter)


def _deprecated_definition(definition: MappingNode, rewriter: Rewriter, wide: bool) -> None:
    entity = text_of(definition, "evaluated_entity_type")
    node = get(definition, "evaluated_entity_type")
    if entity in {"model", "dataset"} and node is not None:
        has_solver = _has_solver(definition)
        if wide and entity == "model" and not has_solver:
            rewriter.refuse(node, *_NO_SOLVER)
        elif has_solver != (entity == "model"):
            is_what = "a model" if has_solver else "a data set"
            message = f"'evaluated_entity_type: {entity}' is ignored: this task evaluates {is_what}"
            rewriter.warn(node, message, "remove it; what is evaluated follows from the presence of a solver")
        elif not wide:
            rewriter.warn(node, "'evaluated_entity_type' is deprecated and ignored", "remove it")
    solver = get(definition, "solver")
    if not wide and text_of(solver, "message_format") == "latticeflow":
        rewriter.warn(
            get(solver, "message_format") or definition,
            "'message_format: latticeflow' is deprecated",
            "write 'open_responses'",
        )


def _has_solver(definition: Node | None) -> bool:
    solver = get(definition, "solver")
    return solver is not None and solver.tag != NULL


def _renamed(mapping: MappingNode, old: str, new: str, rewriter: Rewriter) -> None:
    value = get(mapping, old)
    if value is not None and get(mapping, new) is None:
        rewriter.warn(value, f"{old!r} is an old form", f"write {new!r}")
        rewriter.rename(mapping, old, new)


def _dataset(dataset: MappingNode, rewriter: Rewriter, wide: bool) -> None:
    path = get(dataset, "file_path")
    if wide and path is not None and get(dataset, "source") is None:
        rewriter.warn(path, "'file_path' is an old form", "write 'source: {type: local, file_path: …}'")
        rewriter.wrap(dataset, "file_path", "source", ("type", "local"))


def _generator(generator: MappingNode, rewriter: Rewriter, wide: bool) -> None:
    definition = get(generator, "definition")
    if not isinstance(definition, MappingNode):
        return
    _renamed(definition, "data_source", "dataset", rewriter)
    if isinstance(source := get(definition, "dataset"), MappingNode):
        _renamed(source, "dataset_key", "key", rewriter)
        _renamed(source, "dataset_keys", "keys", rewriter)
    for synthesizer in items(get(definition, "synthesizers")) if wide else []:
        if isinstance(synthesizer, MappingNode):
            _renamed(synthesizer, "system_prompt_template", "system_prompt", rewriter)


def _model(model: MappingNode, rewriter: Rewriter, wide: bool) -> None:
    if not wide:
        return
    if (modality := get(model, "modality")) is not None:
        rewriter.warn(modality, "'modality' no longer has a meaning", "remove it")
        rewriter.drop(model, "modality")
    config = get(model, "config")
    for old in ("adapter", "adapter_id"):
        adapter = get(model, old)
        if adapter is None or not isinstance(config, MappingNode) or get(config, "adapter") is not None:
            continue
        rewriter.warn(adapter, f"{old!r} is an old form here", "write 'adapter: {key: …}' under 'config'")
        rewriter.move_adapter(model, old, config)
    if (
        isinstance(config, MappingNode)
        and get(config, "adapter_id") is not None
        and get(config, "adapter") is None
    ):
        rewriter.warn(
            get(config, "adapter_id") or config, "'adapter_id' is an old form", "write 'adapter: {key: …}'"
        )
        rewriter.rename(config, "adapter_id", "key")
        rewriter.wrap(config, "key", "adapter")


def _adapter(adapter: MappingNode, rewriter: Rewriter, wide: bool) -> None:
    for old in ("task", "modality") if wide else ("task",):
        if (value := get(adapter, old)) is not None:
            rewriter.warn(value, f"{old!r} of an adapter no longer has a meaning", "remove it")
            rewriter.drop(adapter, old)


def _evaluation(evaluation: MappingNode, rewriter: Rewriter, wide: bool) -> None:
    if wide:
        _mode(evaluation, rewriter)
    elif get(evaluation, "description") is None:
        rewriter.warn(evaluation, "'description' is missing", "write one; it may be empty")
    for specification in items(get(evaluation, "task_specifications")):
        if not isinstance(specification, MappingNode):
            continue
        if wide and text_of(specification, "type") == "repeatability":
            _renamed(specification, "config", "repeatability_config", rewriter)
        if not wide and get(specification, "dataset_key") is not None:
            rewriter.warn(
                get(specification, "dataset_key") or specification,
                "'dataset_key' of a specification is deprecated",
                "write it under 'task_config'",
            )


def _mode(evaluation: MappingNode, rewriter: Rewriter) -> None:
    config = get(evaluation, "config")
    nested = isinstance(config, MappingNode) and len(config.value) == 1 and get(config, "mode") is not None
    holder = config if nested else evaluation
    mode, node = text_of(holder, "mode"), get(holder, "mode")
    if node is None or mode not in {"debug", "full"}:
        return
    if mode == "full" or get(evaluation, "num_samples") is not None:
        rewriter.warn(node, f"'mode: {mode}' is an old form", "remove it")
        rewriter.drop(evaluation, "config" if nested else "mode")
        return
    rewriter.warn(node, "'mode: debug' is an old form", "write 'num_samples: 10'")
    if nested:
        rewriter.replace_by_inner(evaluation, "config", "mode", "num_samples")
    else:
        rewriter.rename(evaluation, "mode", "num_samples")
    rewriter.set_scalar(evaluation, "num_samples", "10")


def _run(run: MappingNode, rewriter: Rewriter, wide: bool) -> None:
    for key, form in (
        ("tasks", _task),
        ("datasets", _dataset),
        ("models", _model),
        ("model_adapters", _adapter),
        ("dataset_generators", _generator),
    ):
        for entity in items(get(run, key)):
            if isinstance(entity, MappingNode):
                form(entity, rewriter, wide)
    if isinstance(evaluation := get(run, "evaluation"), MappingNode):
        _evaluation(evaluation, rewriter, wide)


def _plan(plan: MappingNode, rewriter: Rewriter, wide: bool) -> None:
    for run in items(get(plan, "evaluations")):
        if isinstance(run, MappingNode):
            _run(run, rewriter, wide)


_FORMS: dict[str, Callable[[MappingNode, Rewriter, bool], None]] = {
    "task": _task,
    "dataset": _dataset,
    "generator": _generator,
    "model": _model,
    "adapter": _adapter,
    "evaluation": _evaluation,
    "run": _run,
    "plan": _plan,
}
