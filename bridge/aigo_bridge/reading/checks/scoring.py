"""Checks of scorers, metrics, trials and action rules for contradictions that would lead to missing or wrong
metrics.

An action rule with an undefined name silently selects nothing, or everything (`not_equals`). Undefined
names are not an error at run time, because scores may be missing. Therefore, names are checked before the
run.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, Severity
from aigo_bridge.reading.checks.texts import column_of, compiled_template
from aigo_bridge.reading.messages import nearest
from aigo_bridge.spec.base import KEY_PATTERN, Path, duplicates, has_marker, mapping, mappings, number, texts
from aigo_bridge.spec.metric import METRICS, MetricSpec
from aigo_bridge.spec.scorer import ScorerSpec, default_keys
from aigo_bridge.spec.scorers import SCORERS
from aigo_bridge.spec.solvers import SOLVERS, SolverSpec
from aigo_bridge.templates import SampleTemplate
from aigo_bridge.templates.names import NamePath


def scores_of(scorer: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the score names of a scorer for one trial; `None` if only the run determines them."""
    spec = SCORERS.get(str(scorer.get("type")))
    return None if spec is None else spec.scores_of(scorer)


def check_scorers(definition: dict[str, Any], path: Path) -> Iterator[Issue]:
    """Check all scorers of a benchmark task with their metrics and the trials."""
    scorers = mappings(definition.get("scorers"))
    solved = definition.get("solver") is not None
    yield from duplicates(scorers, (*path, "scorers"), "scorer")
    aggregated = aggregated_names(definition)
    grouped = _gives_groups(definition.get("solver"))
    for index, scorer in scorers:
        place = (*path, "scorers", index)
        spec = SCORERS.get(str(scorer.get("type")))
        if spec is not None:
            yield from _scorer(scorer, spec, place, solved=solved)
        if scorer.get("length_normalisation") == "pmi" and not _has_unconditioned_query(definition):
            yield Issue(
                "'pmi' needs 'unconditioned_query' in a chat_completion input, to normalize the "
                "likelihood of each choice",
                path=(*place, "length_normalisation"),
                hint='add it to the solver\'s input_builder, e.g. unconditioned_query: "Answer:"',
                code=Code.CONTRADICTION,
            )
        if grouped and spec is not None:
            yield from _of_a_group(scorer, spec, place)
        metrics = mappings(scorer.get("metrics"))
        yield from duplicates(metrics, (*place, "metrics"), "metric")
        for number_of, metric in metrics:
            at = (*place, "metrics", number_of)
            yield from _metric(metric, at, scores_of(scorer), aggregated)
    yield from _trials(definition, path)


def _has_unconditioned_query(definition: dict[str, Any]) -> bool:
    solver = definition.get("solver")
    builder = solver.get("input_builder") if isinstance(solver, dict) else None
    return isinstance(builder, dict) and builder.get("unconditioned_query") is not None


def _gives_groups(solver: Any) -> bool:
    """Return whether scorers receive several answers together. A post-processor may separate them."""
    spec = SOLVERS.get(str(mapping(solver).get("type")))
    return spec is not None and spec.gives_group is True and solver.get("postprocessor") is None


def _of_a_group(scorer: dict[str, Any], spec: type[ScorerSpec], path: Path) -> Iterator[Issue]:
    kind = scorer["type"]
    if spec.answer == "unless_value" and scorer.get("value") is None:
        hint = "pick one, e.g. {{ solver_output.solver_outputs[0].trace.get_last_assistant_text() }}"
        message = f"{kind!r} needs 'value' here: the solver returns a group of answers, not a single one"
        yield Issue(message, path=path, hint=hint, code=Code.NO_ANSWER_TO_SCORE)
    if not spec.takes_group:
        hint = "split the group with a post-processor, or use a python scorer"
        message = f"{kind!r} cannot be used here: the solver returns a group of answers, not a single one"
        yield Issue(message, path=(*path, "type"), hint=hint, code=Code.NO_ANSWER_TO_SCORE)


def _scorer(scorer: dict[str, Any], spec: type[ScorerSpec], path: Path, *, solved: bool) -> Iterator[Issue]:
    kind = scorer["type"]
    if spec.answer == "unless_value" and not solved and scorer.get("value") is None:
        yield Issue(
            f"{kind!r} needs 'value' here: without a solver there is no answer to compare",
            path=path,
            code=Code.NO_ANSWER_TO_SCORE,
        )
    if spec.answer == "needed" and not solved:
        yield Issue(
            f"{kind!r} needs a solver, because it scores the answer of the model",
            path=(*path, "type"),
            code=Code.NO_ANSWER_TO_SCORE,
        )
    yield from spec.check(scorer, path)


def _metric(
    metric: dict[str, Any], path: Path, scores: frozenset[str] | None, aggregated: dict[str, set[str]]
) -> Iterator[Issue]:
    spec = METRICS.get(str(metric.get("type")), MetricSpec)
    yield from spec.check(metric, path)
    if scores is None:
        return
    names = scores | {name for score in scores for name in aggregated.get(score, ())}
    for name in spec.score_fields:
        score = metric.get(name)
        if not isinstance(score, str) or score in names or has_marker(score):
            continue
        if "." in score and score.split(".")[0] in scores:
            continue
        yield Issue(
            f"{name!r}: the scorer does not return score {score!r}",
            path=(*path, name),
            hint=nearest(score, names) or f"its scores: {', '.join(sorted(names))}",
            code=Code.UNKNOWN_SCORE,
        )


def aggregated_names(definition: Mapping[str, Any]) -> dict[str, set[str]]:
    """Return score name → names of the aggregated scores."""
    names: dict[str, set[str]] = {}
    for _, entry in mappings(mapping(definition.get("trials")).get("score_aggregators")):
        name = mapping(entry.get("aggregator")).get("score_name")
        if isinstance(name, str) and isinstance(entry.get("score_name"), str):
            names.setdefault(entry["score_name"], set()).add(name)
    return names


def _trials(definition: dict[str, Any], path: Path) -> Iterator[Issue]:
    names: set[str] = set()
    for _, scorer in mappings(definition.get("scorers")):
        scores = scores_of(scorer)
        if scores is None:
            return
        names |= scores
    for index, entry in mappings(mapping(definition.get("trials")).get("score_aggregators")):
        score = entry.get("score_name")
        if isinstance(score, str) and score not in names and not has_marker(score):
            yield Issue(
                f"no scorer of this task has a score {score!r}",
                path=(*path, "trials", "score_aggregators", index, "score_name"),
                hint=nearest(score, names),
                code=Code.UNKNOWN_SCORE,
            )


_EXISTENCE = ("exists", "not_exists")
_ORDERING = ("greater_than", "less_than", "greater_or_equal", "less_or_equal")


def check_actions(
    definition: dict[str, Any], path: Path, columns: Sequence[str] | None = None
) -> Iterator[Issue]:
    """Yield problems of rules that cannot select the intended samples. `columns` is `None` if unknown."""
    rules = mappings(definition.get("actions"))
    if not rules:
        return
    names = _Known(definition, columns)
    for index, rule in rules:
        place = (*path, "actions", index, "filter")
        yield from _filter(mapping(rule.get("filter")), place, names)


def check_constant(expression: str, path: Path, rows: str, example: str | None) -> Iterator[Issue]:
    """Yield a problem for an expression without `{{ }}`, which is constant; `example` is the intended one."""
    template = compiled_template(expression)
    if template is not None and template.is_constant and not has_marker(expression):
        hint = f"write {example}" if example is not None else "write an expression, such as {{ sample.x }}"
        message = f"'expression': found {expression!r}, which is plain text and the same for every {rows}"
        yield Issue(message, line=1, column=1, path=path, hint=hint, code=Code.CONSTANT_EXPRESSION)


def meant_expression(text: str, columns: Sequence[str] | None = None) -> str | None:
    """Return `{{ sample.x }}` for `sample.x`, `{ sample.x }` and, if `x` is a column, `x`."""
    name = text.strip().strip("{}%").strip()
    if name.split(".")[0].split("[")[0] in ("sample", "scores", "solver_output") and "." in name + name[-1:]:
        return f"{{{{ {name} }}}}"
    return f"{{{{ sample.{name} }}}}" if name.isidentifier() and name in (columns or (name,)) else None


class _Known:
    """Names that the expressions of a task's rules may use."""

    def __init__(self, definition: Mapping[str, Any], columns: Sequence[str] | None):
        scorers = [scorer for _, scorer in mappings(definition.get("scorers"))]
        self.is_certain = all(map(_is_named, scorers))
        """Whether the keys of the scorers are known. If not, unknown names are not reported, to avoid
        duplicate messages.
        """
        keys = default_keys([(_text(scorer.get("key")), str(scorer.get("type"))) for scorer in scorers])
        aggregated = aggregated_names(definition)
        self.columns = columns
        self.solver = definition.get("solver")
        self.scorers = dict(zip(keys, scorers, strict=True))
        self.scores: dict[str, frozenset[str] | None] = {}
        """Scorer key → its scores, including aggregated ones; `None` if only the run determines them."""
        for key, scorer in self.scorers.items():
            scores = scores_of(scorer)
            more = (name for score in scores or () for name in aggregated.get(score, ()))
            self.scores[key] = None if scores is None else scores.union(more)

    def unknown(self, name: NamePath) -> tuple[Code, str, str | None] | None:
        """Return the problem of a name in an expression, with a suggestion; `None` if it is known."""
        if len(name) < 2:
            return None
        match name[0]:
            case "sample" if self.columns is not None and name[1] not in self.columns:
                return (
                    Code.UNKNOWN_COLUMN,
                    f"`sample.{name[1]}` is not a column of the dataset",
                    _choice(name[1], self.columns, "columns"),
                )
            case "scores" if not self.is_certain:
                return None
            case "scores" if name[1] not in self.scores:
                return (
                    Code.UNKNOWN_SCORE,
                    f"the task does not define scorer {name[1]!r}",
                    _choice(name[1], self.scores, "its scorers"),
                )
            case "scores" if len(name) > 2:
                scores = self.scores[name[1]]
                if scores is not None and name[2] not in scores and name[2].split(".")[0] not in scores:
                    return (
                        Code.UNKNOWN_SCORE,
                        f"scorer {name[1]!r} has no score {name[2]!r}",
                        _choice(name[2], scores, "its scores"),
                    )
            case "solver_output" if self.solver is not None:
                views = _views(self.solver)
                if name[1] not in views:
                    return (
                        Code.UNKNOWN_NAME,
                        f"the solver output does not contain {name[1]!r}",
                        _choice(name[1], views, "it has"),
                    )
        return None

    def whole(self, name: NamePath) -> tuple[str, str] | None:
        """Return a description of a compared value that is an object, and a part to compare instead."""
        if name == ("sample",):
            return "the whole row", f"sample.{(self.columns or ('x',))[0]}"
        if name == ("solver_output",):
            return "the whole output of the solver", "solver_output.output"
        if name == ("scores",) or (len(name) == 2 and name[0] == "scores" and name[1] in self.scores):
            key = name[1] if len(name) == 2 else next(iter(self.scores), "x")
            part = min(self.scores.get(key) or ("x",))
            whose = "scorer" if len(name) == 2 else "sample"
            return f"all scores of the {whose}", f"scores.{key}.{part}"
        return None


def _is_named(scorer: Mapping[str, Any]) -> bool:
    """Return whether the key of a scorer is known: its own key, or a key derived from its type."""
    key = scorer.get("key")
    if key is None:
        return str(scorer.get("type")) in SCORERS
    return isinstance(key, str) and re.fullmatch(KEY_PATTERN, key) is not None


def _filter(rule: dict[str, Any], path: Path, names: _Known) -> Iterator[Issue]:
    expression, op = rule.get("expression"), rule.get("op")
    yield from _values(rule, path)
    if not isinstance(expression, str) or has_marker(expression):
        return
    at = (*path, "expression")
    yield from check_constant(expression, at, "sample", meant_expression(expression, names.columns))
    template = compiled_template(expression)
    if template is None:
        return
    for name in sorted(template.reads):
        problem = names.unknown(name)
        if problem is None:
            continue
        # Rules are shared between tasks, so a rule may test whether a column exists.
        tests_existence = name[0] == "sample" and op in _EXISTENCE
        yield _of_name(template, name, at, *problem, severe=not tests_existence)
    if template.lone_path is None or op in _EXISTENCE:
        return
    if (collection := names.whole(template.lone_path)) is not None:
        message = f"{expression.strip()} is {collection[0]}, expected one value"
        yield _of_name(
            template,
            template.lone_path,
            at,
            Code.WHOLE_COLLECTION,
            message,
            f"write {{{{ {collection[1]} }}}}",
        )
    yield from _constants(rule, path, template.lone_path, names)


def _of_name(
    template: SampleTemplate,
    name: NamePath,
    path: Path,
    code: Code,
    message: str,
    hint: str | None,
    *,
    severe: bool = True,
) -> Issue:
    line = template.line_of(name) or 1
    column = column_of(template.source, line, name[0])
    severity: Severity = "error" if severe else "warning"
    return Issue(message, line=line, column=column, path=path, hint=hint, severity=severity, code=code)


def _values(rule: Mapping[str, Any], path: Path) -> Iterator[Issue]:
    """Yield constants that are not valid for any expression."""
    op, value = rule.get("op"), rule.get("value")
    if rule.get("values") == [] and op in ("in", "not_in"):
        number_of = "no sample" if op == "in" else "every sample"
        yield Issue(
            f"'values' is empty, so the rule selects {number_of}",
            path=(*path, "values"),
            severity="warning",
            code=Code.NEVER_EQUAL,
        )
    if op in _ORDERING and isinstance(value, str) and number(value) is None and not has_marker(value):
        yield Issue(
            f"'value': found {value!r}, expected a number for {op!r}",
            path=(*path, "value"),
            code=Code.WRONG_COMPARISON,
        )


def _constants(rule: Mapping[str, Any], path: Path, name: NamePath, names: _Known) -> Iterator[Issue]:
    """Yield texts that a score never equals: other labels, or texts instead of numbers."""
    if len(name) != 3 or name[0] != "scores" or names.scores.get(name[1]) is None:
        return
    scorer = names.scorers[name[1]]
    values = rule.get("values")
    constants = texts(values) if isinstance(values, list) else texts([rule.get("value")])
    for text in constants:
        at = (*path, "value") if not isinstance(values, list) else (*path, "values", values.index(text))
        if has_marker(text):
            continue
        spec = SCORERS[scorer["type"]]
        if name[2] in spec.labels:
            labels = texts(scorer.get(spec.labels[name[2]]))
            if labels and text not in labels and not any(map(has_marker, labels)):
                hint = _choice(text, labels, "its labels")
                yield Issue(
                    f"{text!r} is not a label of scorer {name[1]!r}",
                    path=at,
                    hint=hint,
                    severity="warning",
                    code=Code.NEVER_EQUAL,
                )
        elif rule.get("op") not in _ORDERING and (wrong := _no_number(text)) is not None:
            message = f"score {name[2]!r} is a number and {text!r} is {wrong}, so they are never equal"
            yield Issue(
                message,
                path=at,
                hint="write the number without quotes",
                severity="warning",
                code=Code.NEVER_EQUAL,
            )


def _no_number(text: str) -> str | None:
    """Return why a text never equals a numeric score, which is printed as `1.0`."""
    value = number(text)
    if value is None:
        return "no number"
    return None if text == str(value) else "text"


def _views(solver: Any) -> frozenset[str]:
    """Return the attributes of a solver's outputs. A post-processor, or the author's solver, may return any
    of them.
    """
    from aigo_bridge.dtypes import GroupedSolverOutput, GroupedSolverTrace, SingleSolverOutput, SolverTrace

    spec = SOLVERS.get(str(mapping(solver).get("type")), SolverSpec)
    groups = (GroupedSolverOutput, GroupedSolverTrace)
    single = (SingleSolverOutput, SolverTrace)
    free = spec.gives_group is None or mapping(solver).get("postprocessor") is not None
    types = (*groups, *single) if free else groups if spec.gives_group else single
    return frozenset(
        name
        for kind_of_output in types
        for name in (*kind_of_output.model_fields, *vars(kind_of_output))
        if name[0] != "_"
    )


def _choice(word: str, words: Collection[str], what: str) -> str:
    # The second comparison finds names with other differences, such as `mycol` for `my col`.
    close = difflib.get_close_matches(word, words, n=1)
    listed = f"{what}: {', '.join(sorted(words)[:20]) or 'none'}"
    return nearest(word, words) or (f"did you mean {close[0]!r}?" if close else listed)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
