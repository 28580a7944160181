"""Checks of a bound definition against the data set's columns, before any model is called."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aigo_bridge.errors import Issue, TemplateError
from aigo_bridge.reading.checks.actions import check_actions
from aigo_bridge.spec import BenchmarkDefinition
from aigo_bridge.spec import scorers as scorer_spec
from aigo_bridge.spec import solvers as solver_spec
from aigo_bridge.spec.parameters import DatasetColumnParameter, Parameter
from aigo_bridge.templates import SampleTemplate

OUTPUT_NAMES = ("solver_output", "trace", "messages", "model_output", "model_outputs", "input_prompt")
"""Template variables of scorers that exist only when the task has a solver."""


@dataclass(frozen=True)
class TemplateField:
    """One field of a definition that is rendered per sample."""

    path: tuple[str | int, ...]
    """Where it stands in the task document."""
    text: str
    sees_output: bool
    """Whether the solver's output can be used in it."""
    sees_columns: bool = True
    """Whether `sample` is a row of the data set; a post-processor may make rows with other columns."""


def definition_issues(
    definition: BenchmarkDefinition,
    columns: Sequence[str] | None,
    nested: Mapping[str, Sequence[str]] | None = None,
) -> list[Issue]:
    """Everything about a bound definition that is known to fail, or looks wrong, with paths into the document.

    Args:
        definition: config bound.
        columns: of the data set; `None`: not known.
        nested: columns of the rows that stand in a column, where several data sets stand side by side.
    """
    issues: list[Issue] = []
    for field in template_fields(definition):
        issues += _template_issues(field, columns, nested or {})
    issues += _duplicate_keys(definition)
    issues += _score_ranges(definition)
    issues += _contradicting_labels(definition)
    issues += _rules(definition, columns)
    return issues


def column_issues(
    parameters: Sequence[Parameter], config: Mapping[str, Any], columns: Sequence[str]
) -> list[Issue]:
    """Parameters that name a column which the data set does not have (snippets would find out only per sample)."""
    issues: list[Issue] = []
    for parameter in parameters:
        name = config.get(parameter.key)
        if isinstance(parameter, DatasetColumnParameter) and name is not None and name not in columns:
            message = f"parameter {parameter.key!r}: {name!r} is not a column of the data set"
            issues.append(Issue(message, path=("config", parameter.key), hint=_columns_hint(name, columns)))
    return issues


def _columns_hint(name: str, columns: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, columns, n=1)
    return f"did you mean {near[0]!r}?" if near else f"columns: {', '.join(columns) or 'none'}"


def template_fields(definition: BenchmarkDefinition) -> Iterator[TemplateField]:
    """Every field of a definition that is a sample-time template."""
    start: tuple[str | int, ...] = ("definition", "solver")
    match definition.solver:
        case solver_spec.SingleTurnSolver() | solver_spec.GroupedSingleTurnSolver() as solver:
            builder = solver.input_builder
            if isinstance(builder, solver_spec.GenericInputBuilder):
                yield TemplateField((*start, "input_builder", "template"), builder.template, False)
            else:
                for number, message in enumerate(builder.input_messages):
                    path = (*start, "input_builder", "input_messages", number)
                    yield TemplateField((*path, "content"), message.content, False)
                    if isinstance(message.choices, str):
                        yield TemplateField((*path, "choices"), message.choices, False)
                for name in ("unconditioned_query", "original_query", "fewshot_sorting_class"):
                    if (template := getattr(builder, name)) is not None:
                        yield TemplateField((*start, "input_builder", name), template, False)
        case solver_spec.MultiTurnSolver() as solver:
            yield from _builder_fields((*start, "message_builders"), solver.message_builders)
        case _:
            pass
    with_output = definition.solver is not None
    own_rows = definition.solver is None or definition.solver.postprocessor is None
    for number, scorer in enumerate(definition.scorers):
        for name in (
            "ground_truth",
            "value",
            "ground_truth_choice",
            "choices",
            "continuations",
            "function_calls",
            "system_prompt",
            "user_prompt",
            "code",
            "tests",
            "post_process",
            "when",
        ):
            text = getattr(scorer, name, None)
            if name == "tests" and "{{" not in str(text):
                continue  # a column
            if isinstance(text, str):
                yield TemplateField(("definition", "scorers", number, name), text, with_output, own_rows)


def _builder_fields(
    path: tuple[str | int, ...], builders: Sequence[solver_spec.MessageBuilder]
) -> Iterator[TemplateField]:
    for number, builder in enumerate(builders):
        match builder:
            case solver_spec.ChatMessageBuilder():
                yield TemplateField((*path, number, "content"), builder.content, False)
            case solver_spec.GenerateMessageBuilder():
                inner = (*path, number, "extra_input_messages")
                yield from _builder_fields(inner, builder.extra_input_messages)
            case solver_spec.LoopBuilder():
                yield from _builder_fields((*path, number, "message_builders"), builder.message_builders)
            case _:
                continue


def _template_issues(
    field: TemplateField, columns: Sequence[str] | None, nested: Mapping[str, Sequence[str]]
) -> list[Issue]:
    try:
        template = SampleTemplate(field.text)
    except TemplateError as error:
        return [
            Issue(issue.message, line=issue.line, column=issue.column, path=field.path, hint=issue.hint)
            for issue in error.issues
        ]
    known = ("sample", *OUTPUT_NAMES) if field.sees_output else ("sample",)
    issues: list[Issue] = []
    for name in sorted(template.reads):
        line = template.line_of(name)
        if name[0] not in known:
            reason = (
                "there is no solver, so only `sample` can be used here"
                if name[0] in OUTPUT_NAMES
                else f"known names: {', '.join(known)}"
            )
            issues.append(Issue(f"`{name[0]}` is not defined here", line=line, path=field.path, hint=reason))
        elif name[0] != "sample" or not field.sees_columns or len(name) < 2 or columns is None:
            continue
        elif name[1] in nested and len(name) > 2 and name[2] not in nested[name[1]]:
            message = f"`sample.{name[1]}.{name[2]}` is not a column of data set {name[1]!r}"
            hint = _columns_hint(str(name[2]), nested[name[1]])
            issues.append(Issue(message, line=line, path=field.path, hint=hint))
        elif name[1] not in columns:
            message = f"`sample.{name[1]}` is not a column of the data set"
            hint = _columns_hint(str(name[1]), columns)
            issues.append(Issue(message, line=line, path=field.path, hint=hint))
    return issues


def _duplicate_keys(definition: BenchmarkDefinition) -> list[Issue]:
    issues: list[Issue] = []
    seen: dict[str, int] = {}
    for number, scorer in enumerate(definition.scorers):
        if scorer.key is None:
            continue
        if scorer.key in seen:
            issues.append(
                Issue(
                    f"scorer key {scorer.key!r} is used twice, first by scorers[{seen[scorer.key]}]",
                    path=("definition", "scorers", number, "key"),
                    hint="give each scorer a key of its own",
                )
            )
        seen.setdefault(scorer.key, number)
    return issues


def _contradicting_labels(definition: BenchmarkDefinition) -> list[Issue]:
    """Labels that are correct and incorrect at once, apart from case and outer blanks as judges' answers are read."""
    issues: list[Issue] = []
    for number, scorer in enumerate(definition.scorers):
        if not isinstance(scorer, scorer_spec.ModelAsAJudgeClassifierScorer):
            continue
        correct = {label.strip().casefold() for label in scorer.correct_labels}
        issues += [
            Issue(
                f"label {label!r} is among the correct and the incorrect labels, so it counts as correct",
                path=("definition", "scorers", number, "incorrect_labels", place),
                severity="warning",
            )
            for place, label in enumerate(scorer.incorrect_labels)
            if label.strip().casefold() in correct
        ]
    return issues


def _rules(definition: BenchmarkDefinition, columns: Sequence[str] | None) -> list[Issue]:
    """Action rules, with their parameters' values in them; the author's post-processor makes rows with columns of its own."""
    if not definition.actions:
        return []
    own_rows = definition.solver is None or definition.solver.postprocessor is None
    document = definition.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return list(check_actions(document, ("definition",), columns if own_rows else None))


def _score_ranges(definition: BenchmarkDefinition) -> list[Issue]:
    return [
        Issue(
            f"score_min is {scorer.score_min}, expected a number below score_max ({scorer.score_max})",
            path=("definition", "scorers", number, "score_min"),
        )
        for number, scorer in enumerate(definition.scorers)
        if isinstance(scorer, scorer_spec.ModelAsAJudgeScorer)
        and not float(scorer.score_min) < float(scorer.score_max)
    ]
