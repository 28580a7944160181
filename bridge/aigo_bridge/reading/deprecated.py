"""Deprecated syntax, converted to the current syntax with a warning that shows the new form.

Sources: the changes between the documented releases of AI GO, and the forms that release 3.17 still
accepts. A form without an exact equivalent is not converted; `OLD_KEYS` contains its replacement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue
from aigo_bridge.reading.document import Dialect
from aigo_bridge.reading.nodes import MAP, NULL, STR, issue_at

OLD_KEYS = {
    "metric": ("deprecated: write a 'python' scorer under 'scorers' with a 'mean' metric over its score"),
    "code": "deprecated: write 'compute_metrics_snippet' with compute_metrics(scores: list[SampleScore])",
    "entity_key": ("deprecated: write 'model_key', or 'dataset_key' for tasks that evaluate a dataset"),
    "entity_id": ("deprecated: write 'model_key', or 'dataset_key' for tasks that evaluate a dataset"),
    "task_id": "deprecated: write 'task_key'",
    "evaluated_entity_type": (
        "no longer needed: a task with a solver evaluates a model, other tasks evaluate a dataset"
    ),
    "fast_subset_size": "no longer supported: remove it",
    "response_format": "not part of the format: describe the answer format in the prompt",
}


_NO_SOLVER = (
    ("'evaluated_entity_type' is 'model', but the definition does not contain a solver to call it"),
    ("add a 'solver', or remove 'evaluated_entity_type' if the task should score a dataset"),
)


def rewrite(kind: str, node: Node, dialect: Dialect) -> Rewriter:
    """Convert the nodes of one entity to the current form, in place."""
    rewriter = Rewriter()
    _apply(kind, node, rewriter, dialect == "default")
    return rewriter


def _apply(kind: str, node: Node | None, rewriter: Rewriter, wide: bool) -> None:
    form = _FORMS.get(kind)
    if form is not None and isinstance(node, MappingNode):
        form(node, rewriter, wide)


def _task(task: MappingNode, rewriter: Rewriter, wide: bool) -> None:
    definition = get(task, "definition")
    if wide:
        _entity_type(task, definition, rewriter)
        _dropped(task, "modalities", rewriter)
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
            ("remove both; a task with a solver evaluates a model, other tasks evaluate a dataset"),
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
            "'evaluated_entity_type' is deprecated",
            ("remove it; a task with a solver evaluates a model, other tasks evaluate a dataset"),
        )
    rewriter.drop(task, "evaluated_entity_type")


def _old_definition(definition: MappingNode, rewriter: Rewriter) -> None:
    _renamed(definition, "kind", "type", rewriter)
    if text_of(definition, "type") == "declarative_task":
        kind = get(definition, "type") or definition
        rewriter.warn(kind, "'declarative_task' is deprecated", "write 'benchmark_task'")
        rewriter.set_scalar(definition, "type", "benchmark_task")
    dataset, solver = get(definition, "dataset"), get(definition, "solver")
    if isinstance(dataset, MappingNode):
        source = get(dataset, "source")
        if isinstance(source, MappingNode) and get(source, "id") is not None and get(dataset, "key") is None:
            rewriter.warn(source, "'source: {id: …}' is deprecated", f"write 'key: {text_of(source, 'id')}'")
            rewriter.replace_by_inner(dataset, "source", "id", "key")
        hint = "remove it, and set num_samples in the run"
        _dropped(dataset, "fast_subset_size", rewriter, hint=hint)
    _renamed(solver, "key", "type", rewriter)
    _renamed(get(solver, "input_builder"), "key", "type", rewriter)
    for scorer in items(get(definition, "scorers")):
        _renamed(scorer, "build_sample_evidence_snippet", "compute_scores_snippet", rewriter)
        for metric in items(get(scorer, "metrics")):
            _renamed(metric, "code", "compute_metrics_snippet", rewriter)


def _deprecated_definition(definition: MappingNode, rewriter: Rewriter, wide: bool) -> None:
    entity = text_of(definition, "evaluated_entity_type")
    node = get(definition, "evaluated_entity_type")
    if entity in {"model", "dataset"} and node is not None:
        has_solver = _has_solver(definition)
        if wide and entity == "model" and not has_solver:
            rewriter.refuse(node, *_NO_SOLVER)
        elif has_solver != (entity == "model"):
            is_what = "a model" if has_solver else "a dataset"
            message = f"'evaluated_entity_type: {entity}' is ignored: this task evaluates {is_what}"
            rewriter.warn(
                node,
                message,
                ("remove it; a task with a solver evaluates a model, other tasks evaluate a dataset"),
            )
        elif not wide:
            rewriter.warn(node, "'evaluated_entity_type' is deprecated and ignored", "remove it")
    solver = get(definition, "solver")
    if not wide and text_of(solver, "message_format") == "latticeflow":
        form = get(solver, "message_format") or definition
        rewriter.warn(form, "'message_format: latticeflow' is deprecated", "write 'open_responses'")


def _has_solver(definition: Node | None) -> bool:
    solver = get(definition, "solver")
    return solver is not None and solver.tag != NULL


def _renamed(mapping: Node | None, old: str, new: str, rewriter: Rewriter) -> None:
    value = get(mapping, old)
    if value is not None and isinstance(mapping, MappingNode) and get(mapping, new) is None:
        rewriter.warn(value, f"{old!r} is deprecated", f"write {new!r}")
        rewriter.rename(mapping, old, new)


def _dropped(
    mapping: MappingNode, old: str, rewriter: Rewriter, whose: str = "", hint: str = "remove it"
) -> None:
    value = get(mapping, old)
    if value is not None:
        rewriter.warn(value, f"{old!r}{whose} is no longer supported", hint)
        rewriter.drop(mapping, old)


def _dataset(dataset: MappingNode, rewriter: Rewriter, wide: bool) -> None:
    path = get(dataset, "file_path")
    if wide and path is not None and get(dataset, "source") is None:
        rewriter.warn(path, "'file_path' is deprecated", "write 'source: {type: local, file_path: …}'")
        rewriter.wrap(dataset, "file_path", "source", ("type", "local"))


def _generator(generator: MappingNode, rewriter: Rewriter, wide: bool) -> None:
    definition = get(generator, "definition")
    _renamed(definition, "data_source", "dataset", rewriter)
    source = get(definition, "dataset")
    _renamed(source, "dataset_key", "key", rewriter)
    _renamed(source, "dataset_keys", "keys", rewriter)
    for synthesizer in items(get(definition, "synthesizers")) if wide else []:
        _renamed(synthesizer, "system_prompt_template", "system_prompt", rewriter)


def _model(model: MappingNode, rewriter: Rewriter, wide: bool) -> None:
    if not wide:
        return
    _dropped(model, "modality", rewriter)
    config = get(model, "config")
    if not isinstance(config, MappingNode):
        return
    for old in ("adapter", "adapter_id"):
        if (adapter := get(model, old)) is not None and get(config, "adapter") is None:
            rewriter.warn(adapter, f"{old!r} is deprecated here", "write 'adapter: {key: …}' under 'config'")
            rewriter.move_adapter(model, old, config)
    if (adapter := get(config, "adapter_id")) is not None and get(config, "adapter") is None:
        rewriter.warn(adapter, "'adapter_id' is deprecated", "write 'adapter: {key: …}'")
        rewriter.rename(config, "adapter_id", "key")
        rewriter.wrap(config, "key", "adapter")


def _adapter(adapter: MappingNode, rewriter: Rewriter, wide: bool) -> None:
    for old in ("task", "modality") if wide else ("task",):
        _dropped(adapter, old, rewriter, " of an adapter")


def _evaluation(evaluation: MappingNode, rewriter: Rewriter, wide: bool) -> None:
    if wide:
        _mode(evaluation, rewriter)
    elif get(evaluation, "description") is None:
        rewriter.warn(evaluation, "'description' is missing", "write one; it may be empty")
    for specification in items(get(evaluation, "task_specifications")):
        if wide and text_of(specification, "type") == "repeatability":
            _renamed(specification, "config", "repeatability_config", rewriter)
        if not wide and (key := get(specification, "dataset_key")) is not None:
            message = "'dataset_key' of a specification is deprecated"
            rewriter.warn(key, message, "write it under 'task_config'")


def _mode(evaluation: MappingNode, rewriter: Rewriter) -> None:
    config = get(evaluation, "config")
    nested = isinstance(config, MappingNode) and len(config.value) == 1 and get(config, "mode") is not None
    holder = config if nested else evaluation
    mode, node = text_of(holder, "mode"), get(holder, "mode")
    if node is None or mode not in {"debug", "full"}:
        return
    if mode == "full" or get(evaluation, "num_samples") is not None:
        rewriter.warn(node, f"'mode: {mode}' is deprecated", "remove it")
        rewriter.drop(evaluation, "config" if nested else "mode")
        return
    rewriter.warn(node, "'mode: debug' is deprecated", "write 'num_samples: 10'")
    if nested:
        rewriter.replace_by_inner(evaluation, "config", "mode", "num_samples")
    else:
        rewriter.rename(evaluation, "mode", "num_samples")
    rewriter.set_scalar(evaluation, "num_samples", "10")


_ENTITIES = {
    "tasks": "task",
    "datasets": "dataset",
    "models": "model",
    "model_adapters": "adapter",
    "dataset_generators": "generator",
}
"""Lists in a run file → kind of their entries."""


def _run(run: MappingNode, rewriter: Rewriter, wide: bool) -> None:
    for key, kind in _ENTITIES.items():
        for entity in items(get(run, key)):
            _apply(kind, entity, rewriter, wide)
    _apply("evaluation", get(run, "evaluation"), rewriter, wide)


def _plan(plan: MappingNode, rewriter: Rewriter, wide: bool) -> None:
    for run in items(get(plan, "evaluations")):
        _apply("run", run, rewriter, wide)


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


@dataclass(frozen=True)
class Edit:
    """Replacement of the text from `start` to `end`, both as 0-based (line, column)."""

    file: str
    start: tuple[int, int]
    end: tuple[int, int]
    text: str
    drops_entry: bool = False
    """Whether a whole `key: value` is removed, including its line if it contains nothing more."""


@dataclass
class Rewriter:
    """Rewriter of nodes in place that records its changes."""

    issues: list[Issue] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)

    def warn(self, node: Node, message: str, hint: str | None = None) -> None:
        """Add a warning about a deprecated form that was converted."""
        self.issues.append(issue_at(node, message, code=Code.OLD_FORM, hint=hint, severity="warning"))

    def refuse(self, node: Node, message: str, hint: str | None = None) -> None:
        """Add an error about a deprecated form without an equivalent."""
        self.issues.append(issue_at(node, message, code=Code.DROPPED_FORM, hint=hint))

    def rename(self, mapping: MappingNode, old: str, new: str) -> None:
        """Rename a key. It must exist, and the new key must not."""
        index, key, value = entry(mapping, old)
        mapping.value[index] = (_scalar_like(key, new), value)
        self.edits.append(Edit(_file(key), _start(key), _end(key), new))

    def set_scalar(self, mapping: MappingNode, key: str, text: str) -> None:
        """Replace a scalar by plain text."""
        index, key_node, value = entry(mapping, key)
        mapping.value[index] = (key_node, _scalar_like(value, text))
        self.edits.append(Edit(_file(value), _start(value), _end(value), text))

    def drop(self, mapping: MappingNode, key: str) -> None:
        """Remove an entry."""
        index, key_node, value = entry(mapping, key)
        del mapping.value[index]
        self.edits.append(Edit(_file(key_node), _start(key_node), content_end(value), "", drops_entry=True))

    def replace_by_inner(self, mapping: MappingNode, outer: str, inner: str, new: str) -> None:
        """Convert `outer: {inner: value}` to `new: value`."""
        index, key_node, value = entry(mapping, outer)
        assert isinstance(value, MappingNode)
        _, _, inner_value = entry(value, inner)
        mapping.value[index] = (_scalar_like(key_node, new), inner_value)
        self.edits.append(Edit(_file(key_node), _start(key_node), _start(inner_value), f"{new}: "))
        self.edits.append(Edit(_file(key_node), content_end(inner_value), content_end(value), ""))

    def wrap(
        self, mapping: MappingNode, key: str, outer: str, leading: tuple[str, str] | None = None
    ) -> None:
        """Convert `key: value` to `outer: {first, key: value}`."""
        index, key_node, value = entry(mapping, key)
        pairs: list[tuple[Node, Node]] = [(key_node, value)]
        if leading is not None:
            pairs.insert(0, (_scalar_like(key_node, leading[0]), _scalar_like(key_node, leading[1])))
        inner = MappingNode(MAP, pairs, key_node.start_mark, value.end_mark)
        mapping.value[index] = (_scalar_like(key_node, outer), inner)
        opening = f"{leading[0]}: {leading[1]}, " if leading is not None else ""
        self.edits.append(Edit(_file(key_node), _start(key_node), _start(key_node), f"{outer}: {{{opening}"))
        self.edits.append(Edit(_file(key_node), content_end(value), content_end(value), "}"))

    def move_adapter(self, model: MappingNode, old: str, config: MappingNode) -> None:
        """Convert `adapter: KEY` of a model to `adapter: {key: KEY}` of its connection."""
        _, key_node, value = entry(model, old)
        self.drop(model, old)
        adapter = value
        written = "adapter: "
        if isinstance(value, ScalarNode):
            adapter = MappingNode(
                MAP, [(_scalar_like(key_node, "key"), value)], value.start_mark, value.end_mark
            )
            written += f"{{key: {value.value}}}"
        else:
            keys = [f"{key.value}: {part.value}" for key, part in value.value if isinstance(part, ScalarNode)]
            written += "{" + ", ".join(keys) + "}"
        config.value.insert(0, (_scalar_like(key_node, "adapter"), adapter))
        at = _start(config)
        if config.flow_style:
            self.edits.append(Edit(_file(config), (at[0], at[1] + 1), (at[0], at[1] + 1), f"{written}, "))
        else:
            self.edits.append(Edit(_file(config), at, at, f"{written}\n{' ' * at[1]}"))


def get(mapping: Node | None, key: str) -> Node | None:
    """Return the value of a key written in the mapping itself; `None` without it, and for other nodes."""
    if not isinstance(mapping, MappingNode):
        return None
    for key_node, value in mapping.value:
        if isinstance(key_node, ScalarNode) and key_node.value == key and key_node.tag == STR:
            node: Node = value
            return node
    return None


def text_of(mapping: Node | None, key: str) -> str | None:
    """Return the text of a key."""
    value = get(mapping, key)
    return value.value if isinstance(value, ScalarNode) and value.tag == STR else None


def items(node: Node | None) -> list[Node]:
    """Return the items of a list; empty for other nodes."""
    return list(node.value) if isinstance(node, SequenceNode) else []


def entry(mapping: MappingNode, key: str) -> tuple[int, ScalarNode, Node]:
    """Return the index, key node and value node of an existing entry."""
    for index, (key_node, value) in enumerate(mapping.value):
        if isinstance(key_node, ScalarNode) and key_node.value == key:
            return index, key_node, value
    raise KeyError(key)


def content_end(node: Node) -> tuple[int, int]:
    """Return the end of a value: the end mark of a block collection is the start of the next element."""
    if not isinstance(node, MappingNode | SequenceNode) or node.flow_style or not node.value:
        return _end(node)
    item = node.value[-1]
    return content_end(item[1] if isinstance(item, tuple) else item)


def apply(text: str, edits: list[Edit]) -> str:
    """Return the text with the edits applied."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)

    def offset(position: tuple[int, int]) -> int:
        return min(starts[position[0]] + position[1], len(text))

    spans = []
    for order, edit in enumerate(edits):
        start, end = offset(edit.start), offset(edit.end)
        if edit.drops_entry:
            start, end = _entry_span(text, start, end)
        spans.append((start, end, order, edit.text))
    for start, end, _, new in sorted(spans, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _entry_span(text: str, start: int, end: int) -> tuple[int, int]:
    line_start = text.rfind("\n", 0, start) + 1
    while end > start and text[end - 1] in "\n ":
        end -= 1
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end
    following_text = text[end:line_end].strip()
    preceding_text = text[line_start:start]
    if not following_text or following_text.startswith("#"):
        if not preceding_text.strip():
            return line_start, min(line_end + 1, len(text))
        if not preceding_text.replace("-", "").strip():  # First entry of a list item: move the next one up.
            following = line_end
            while following < len(text) and text[following].isspace():
                following += 1
            return start, following
    comma = end
    while comma < len(text) and text[comma] in ", ":
        comma += 1
    if text[end:comma].strip():
        return start, comma
    comma = start
    while comma > 0 and text[comma - 1] in ", ":
        comma -= 1
    return (comma, end) if "," in text[comma:start] else (start, end)


def _scalar_like(node: Node, text: str) -> ScalarNode:
    return ScalarNode(STR, text, node.start_mark, node.end_mark)


def _file(node: Node) -> str:
    name: str = node.start_mark.name
    return name


def _start(node: Node) -> tuple[int, int]:
    return node.start_mark.line, node.start_mark.column


def _end(node: Node) -> tuple[int, int]:
    return node.end_mark.line, node.end_mark.column
