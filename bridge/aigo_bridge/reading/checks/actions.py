"""Action rules: what their expressions name, and whether what they compare can be equal.

A rule whose expression names nothing selects nothing, or everything (`not_equals`), in silence: an undefined name is no error there, because
scores may be missing. So names are checked before anything runs.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from aigo_bridge.errors import Issue, Severity
from aigo_bridge.reading.checks.scoring import SCORER_TYPES, aggregated_names, scores_of
from aigo_bridge.reading.checks.texts import column_of, compiled_template
from aigo_bridge.reading.checks.trees import Path, mapping, mappings, number, texts
from aigo_bridge.reading.wording import nearest
from aigo_bridge.spec import has_marker
from aigo_bridge.spec.base import KEY_PATTERN
from aigo_bridge.spec.scorers import default_keys
from aigo_bridge.templates import SampleTemplate
from aigo_bridge.templates.names import NamePath

_EXISTENCE = ("exists", "not_exists")
_ORDERING = ("greater_than", "less_than", "greater_or_equal", "less_or_equal")
_LABEL = ("labeler_via_model", "label")


def check_actions(
    definition: dict[str, Any], path: Path, columns: Sequence[str] | None = None
) -> Iterator[Issue]:
    """Rules that cannot select what they should.

    Args:
        definition: of a benchmark task.
        path: where it stands.
        columns: of the rows that are scored; `None`: not known.
    """
    rules = mappings(definition.get("actions"))
    if not rules:
        return
    known = _Known(definition, columns)
    for index, rule in rules:
        here = (*path, "actions", index, "filter")
        yield from _filter(mapping(rule.get("filter")), here, known)


def check_constant(expression: str, path: Path, rows: str, example: str | None) -> Iterator[Issue]:
    """An expression without `{{ }}`, which is a text and asks nothing.

    Args:
        expression: as written.
        path: where it stands.
        rows: what it is the same for, `sample` or `row`.
        example: what was probably meant.
    """
    template = compiled_template(expression)
    if template is not None and template.is_constant and not has_marker(expression):
        hint = f"write {example}" if example is not None else "write an expression, such as {{ sample.x }}"
        message = f"'expression': found {expression!r}, plain text, the same for every {rows}"
        yield Issue(message, line=1, column=1, path=path, hint=hint)


def meant_expression(text: str, columns: Sequence[str] | None = None) -> str | None:
    """`{{ sample.x }}` for `sample.x`, `{ sample.x }` and, where `x` is a column, `x`."""
    name = text.strip().strip("{}%").strip()
    if name.split(".")[0].split("[")[0] in ("sample", "scores", "solver_output") and "." in name + name[-1:]:
        return f"{{{{ {name} }}}}"
    return f"{{{{ sample.{name} }}}}" if name.isidentifier() and name in (columns or (name,)) else None


class _Known:
    """What the expressions of a task's rules can name."""

    def __init__(self, definition: Mapping[str, Any], columns: Sequence[str] | None):
        scorers = [scorer for _, scorer in mappings(definition.get("scorers"))]
        self.is_certain = all(map(_is_named, scorers))
        """Whether the scorers' keys are known: one mistake in them is not to be told twice."""
        keys = default_keys([(_text(scorer.get("key")), str(scorer.get("type"))) for scorer in scorers])
        aggregated = aggregated_names(definition)
        self.columns = columns
        self.solver = definition.get("solver")
        self.scorers = dict(zip(keys, scorers, strict=True))
        self.scores: dict[str, frozenset[str] | None] = {}
        """Scorer key → its scores, aggregated ones included; `None` where only the run tells."""
        for key, scorer in self.scorers.items():
            scores = scores_of(scorer)
            more = (name for score in scores or () for name in aggregated.get(score, ()))
            self.scores[key] = None if scores is None else scores.union(more)

    def unknown(self, name: NamePath) -> tuple[str, str | None] | None:
        """What is wrong with a name that an expression reads, and what could have been meant; `None`: nothing."""
        if len(name) < 2:
            return None
        match name[0]:
            case "sample" if self.columns is not None and name[1] not in self.columns:
                return f"`sample.{name[1]}` is not a column of the data set", _choice(
                    name[1], self.columns, "columns"
                )
            case "scores" if not self.is_certain:
                return None
            case "scores" if name[1] not in self.scores:
                return f"the task has no scorer {name[1]!r}", _choice(name[1], self.scores, "its scorers")
            case "scores" if len(name) > 2:
                scores = self.scores[name[1]]
                if scores is not None and name[2] not in scores and name[2].split(".")[0] not in scores:
                    return f"scorer {name[1]!r} has no score {name[2]!r}", _choice(
                        name[2], scores, "its scores"
                    )
            case "solver_output" if self.solver is not None:
                views = _views(self.solver)
                if name[1] not in views:
                    return f"the solver's output has no {name[1]!r}", _choice(name[1], views, "it has")
        return None

    def whole(self, name: NamePath) -> tuple[str, str] | None:
        """What is compared as a whole although only its parts have a value, and one of these parts."""
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
    """Whether it is known which key a scorer has: its own, or one made from its type."""
    key = scorer.get("key")
    if key is None:
        return str(scorer.get("type")) in SCORER_TYPES
    return isinstance(key, str) and re.fullmatch(KEY_PATTERN, key) is not None


def _filter(rule: dict[str, Any], path: Path, known: _Known) -> Iterator[Issue]:
    expression, op = rule.get("expression"), rule.get("op")
    yield from _values(rule, path)
    if not isinstance(expression, str) or has_marker(expression):
        return
    at = (*path, "expression")
    yield from check_constant(expression, at, "sample", meant_expression(expression, known.columns))
    template = compiled_template(expression)
    if template is None:
        return
    for name in sorted(template.reads):
        found = known.unknown(name)
        if found is None:
            continue
        # Rules are shared between tasks: whether there is such a column may be asked.
        asked = name[0] == "sample" and op in _EXISTENCE
        yield _of_name(template, name, at, *found, severe=not asked)
    if template.lone_path is None or op in _EXISTENCE:
        return
    if (whole := known.whole(template.lone_path)) is not None:
        message = f"{expression.strip()} is {whole[0]}, expected one value"
        yield _of_name(template, template.lone_path, at, message, f"write {{{{ {whole[1]} }}}}")
    yield from _constants(rule, path, template.lone_path, known)


def _of_name(
    template: SampleTemplate,
    name: NamePath,
    path: Path,
    message: str,
    hint: str | None,
    *,
    severe: bool = True,
) -> Issue:
    line = template.line_of(name) or 1
    column = column_of(template.source, line, name[0])
    severity: Severity = "error" if severe else "warning"
    return Issue(message, line=line, column=column, path=path, hint=hint, severity=severity)


def _values(rule: Mapping[str, Any], path: Path) -> Iterator[Issue]:
    """Constants that fit no value of any expression."""
    op, value = rule.get("op"), rule.get("value")
    if rule.get("values") == [] and op in ("in", "not_in"):
        number_of = "no sample" if op == "in" else "every sample"
        yield Issue(
            f"'values' is empty, so the rule selects {number_of}", path=(*path, "values"), severity="warning"
        )
    if op in _ORDERING and isinstance(value, str) and number(value) is None and not has_marker(value):
        yield Issue(f"'value': found {value!r}, expected a number for {op!r}", path=(*path, "value"))


def _constants(rule: Mapping[str, Any], path: Path, name: NamePath, known: _Known) -> Iterator[Issue]:
    """Texts that a score never equals: labels that its scorer does not give, texts in place of numbers."""
    if len(name) != 3 or name[0] != "scores" or known.scores.get(name[1]) is None:
        return
    scorer = known.scorers[name[1]]
    values = rule.get("values")
    given = texts(values) if isinstance(values, list) else texts([rule.get("value")])
    for text in given:
        at = (*path, "value") if not isinstance(values, list) else (*path, "values", values.index(text))
        if has_marker(text):
            continue
        if (scorer.get("type"), name[2]) == _LABEL:
            labels = texts(scorer.get("valid_labels"))
            if labels and text not in labels and not any(map(has_marker, labels)):
                hint = _choice(text, labels, "its labels")
                yield Issue(
                    f"{text!r} is none of the labels of scorer {name[1]!r}",
                    path=at,
                    hint=hint,
                    severity="warning",
                )
        elif rule.get("op") not in _ORDERING and (wrong := _no_number(text)) is not None:
            message = f"score {name[2]!r} is a number, and {text!r} is {wrong}, so they are never equal"
            yield Issue(message, path=at, hint="write the number without quotes", severity="warning")


def _no_number(text: str) -> str | None:
    """Why a text never equals a score, which prints as `1.0`."""
    value = number(text)
    if value is None:
        return "no number"
    return None if text == str(value) else "text"


def _views(solver: Any) -> frozenset[str]:
    """What the outputs of a solver have; a post-processor, or the author's solver, may give any of them."""
    from aigo_bridge.dtypes import GroupedSolverOutput, GroupedSolverTrace, SingleSolverOutput, SolverTrace

    kind = mapping(solver).get("type")
    groups = (GroupedSolverOutput, GroupedSolverTrace)
    single = (SingleSolverOutput, SolverTrace)
    free = kind == "python" or mapping(solver).get("postprocessor") is not None
    types = (*groups, *single) if free else groups if kind == "grouped_single_turn_solver" else single
    return frozenset(name for each in types for name in (*each.model_fields, *vars(each)) if name[0] != "_")


def _choice(word: str, known: Collection[str], what: str) -> str:
    return (
        nearest(word, known)
        or _did_you_mean(word, known)
        or f"{what}: {', '.join(sorted(known)[:20]) or 'none'}"
    )


def _did_you_mean(word: str, known: Collection[str]) -> str | None:
    """Names that differ by more than letters, such as `mycol` from `my col`."""
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]!r}?" if close else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
