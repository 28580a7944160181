"""Conversion of metrics and filters of an lm-evaluation-harness task to AI GO scorers."""

from __future__ import annotations

import pprint
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from aigo_formats import definitions
from aigo_formats.definitions import Function, KeyPath
from aigo_formats.lm_eval.tasks.prompts import (
    COLUMN,
    UntranslatableError,
    check_syntax,
    expression_of,
    literal,
    text_of,
)

Json = dict[str, Any]

USUAL_METRICS = {"multiple_choice": ("acc", "acc_norm"), "generate_until": ("exact_match",)}
"""Default metrics by output type."""

DIVIDED_BY = {"acc": "none", "acc_norm": "choice_characters", "acc_bytes": "choice_bytes"}
"""Length normalization by multiple-choice metric."""

FILTERS: dict[str, frozenset[str]] = {
    "regex": frozenset({"regex_pattern", "group_select", "fallback"}),
    "map": frozenset({"mapping_dict", "default_value"}),
    "remove_whitespace": frozenset(),
    "lowercase": frozenset(),
    "uppercase": frozenset(),
    "take_first": frozenset(),
}
"""Supported filters with their settings."""

_EXACT_MATCH = frozenset({"regexes_to_ignore", "ignore_case", "ignore_punctuation", "ignore_numbers"})
_ABOUT_NUMBERS = frozenset({"metric", "aggregation", "higher_is_better", "hf_evaluate"})


class HarnessParts(definitions.ConvertedParts):
    """Converted parts of a harness definition, and the parts that cannot be converted."""

    def text(self, *path: str) -> str | None:
        """Return a template of the definition as an AI GO template; `None` if this is not possible. The
        reason is recorded.
        """
        value: Any = self.definition.values
        for name in path:
            value = value.get(name)
        try:
            return text_of(value)
        except UntranslatableError as error:
            self.refuse(path, f"{path[-1]!r} has no equivalent in AI GO: {error}")
            return None


# Multiple choice


def choice_scorers(parts: HarnessParts) -> list[Json]:
    """Return one scorer for each metric of a multiple choice. All use the same likelihoods."""
    texts = _choices(parts)
    right = _right_choice(parts)
    if texts is None or right is None:
        return []
    delimiter = parts.definition.values.get("target_delimiter", " ")
    every = f"{{% set texts = {texts} %}}"
    continuations = (
        f"{every}[{{% for text in texts %}}{{{{ ({literal(delimiter)} ~ text) | tojson }}}}"
        '{{ ", " if not loop.last }}{% endfor %}]'
    )
    return [
        {
            "type": "string_equals_mcqa",
            "key": name,
            "method": "loglikelihood",
            "ground_truth_choice": f"{every}{right}",
            "choices": f"{{{{ {texts} | tojson }}}}",
            "continuations": continuations,
            "length_normalisation": DIVIDED_BY[name],
            "metrics": [{"type": "mean", "field": "is_correct", "name": name}],
        }
        for _, name, _ in _metrics(parts, DIVIDED_BY)
    ]


def _choices(parts: HarnessParts) -> str | None:
    """Return an expression for the list of choices."""
    value = parts.definition.values.get("doc_to_choice")
    hint = "write the choices as a list, a column, or one `{{ … }}` that returns a list"
    match value:
        case list() if value and all(isinstance(text, str) for text in value):
            return f"[{', '.join(map(literal, value))}]"
        case dict() if value and all(isinstance(text, str) for text in value.values()):
            return f"[{', '.join(map(literal, value.values()))}]"
        case str():
            try:
                expression = expression_of(value)
            except UntranslatableError as error:
                parts.refuse(("doc_to_choice",), f"'doc_to_choice' has no equivalent in AI GO: {error}")
                return None
            if expression is None:
                parts.refuse(("doc_to_choice",), "'doc_to_choice' prints a text that is read as Python", hint)
            return expression
        case Function():
            return None  # refused together with all functions
    parts.refuse(("doc_to_choice",), "a multiple choice needs 'doc_to_choice' with texts", hint)
    return None


def _right_choice(parts: HarnessParts) -> str | None:
    """Return a template that prints the correct one of `texts`. A number is an index from 0."""
    value = parts.definition.values.get("doc_to_target")
    match value:
        case bool():
            pass
        case int():
            return f"{{{{ texts[{value}] }}}}"
        case str() if COLUMN.fullmatch(value):
            gold = f"sample.{value}"
            return f"{{{{ texts[{gold}] if {gold} is integer else {gold} }}}}"
        case str():
            written = parts.text("doc_to_target")
            if written is None:
                return None
            return (
                f"{{% set gold %}}{written}{{% endset %}}"
                "{{ texts[gold | int] if gold.isdigit() else gold }}"
            )
        case list():
            parts.refuse(("doc_to_target",), "several correct choices, which no scorer of AI GO supports")
            return None
        case Function():
            return None
    parts.refuse(("doc_to_target",), "found no 'doc_to_target' for the correct choice")
    return None


# Generated answers


def answer_scorers(parts: HarnessParts) -> list[Json]:
    """Return one scorer for each list of filters. Its scores are the values of the metrics."""
    values = parts.definition.values
    target, choices = values.get("doc_to_target"), values.get("doc_to_choice")
    if target is None:
        parts.refuse(("doc_to_target",), "found no 'doc_to_target', which answers are compared with")
    for name, value in (("doc_to_target", target), ("doc_to_choice", choices)):
        if isinstance(value, str):
            try:
                check_syntax(value)
            except UntranslatableError as error:
                parts.refuse((name,), f"{name!r}: {error}")
    metrics = [
        {"metric": name, **options}
        for path, name, options in _metrics(parts, {"exact_match": None})
        if _takes(parts, path, name, options)
    ]
    if not metrics:
        return []
    return [
        {
            "type": "python",
            "key": name,
            "compute_scores_snippet": snippet(
                {"target": target, "choices": choices, "filters": steps, "metrics": metrics}
            ),
            # The same metric names as in the harness and in its imports.
            "metrics": [
                {
                    "type": "mean",
                    "field": metric["metric"],
                    "name": metric["metric"] if name == "none" else f"{metric['metric']},{name}",
                }
                for metric in metrics
            ],
        }
        for name, steps in _filters(parts)
    ]


def _takes(parts: HarnessParts, path: KeyPath, name: str, options: Mapping[str, Any]) -> bool:
    unknown = sorted(map(str, options.keys() - _EXACT_MATCH))
    if unknown:
        parts.lose(path, f"metric {name!r}: setting {unknown[0]!r} is unknown, so it is left out")
        return False
    patterns = options.get("regexes_to_ignore") or []
    return all(
        _is_pattern(parts, (*path, "regexes_to_ignore", number), pattern)
        for number, pattern in enumerate(patterns if isinstance(patterns, list) else [patterns])
    )


def _is_pattern(parts: HarnessParts, path: KeyPath, pattern: Any) -> bool:
    try:
        re.compile(pattern)
    except (re.error, TypeError) as error:
        parts.refuse(path, f"found {pattern!r}, expected a regular expression: {error}")
        return False
    return True


def _filters(parts: HarnessParts) -> Iterator[tuple[str, list[Json]]]:
    """Yield the lists of filters with their names. Lists that do not end in one first answer are omitted and
    recorded.
    """
    listed = parts.definition.values.get("filter_list")
    if listed is None:
        yield "none", []
        return
    for number, entry in enumerate(listed if isinstance(listed, list) else [listed]):
        path = ("filter_list", number)
        if not isinstance(entry, dict) or not isinstance(entry.get("filter"), list):
            parts.refuse(path, "found no 'name' with a list 'filter'")
            continue
        steps = [step if isinstance(step, dict) else {"function": step} for step in entry["filter"]]
        problem = next(filter(None, map(_why_unknown, steps)), None)
        if problem is None and not any(step["function"] == "take_first" for step in steps):
            problem = "does not take the first answer, so a list would be compared"
        if problem is not None:
            parts.lose(path, f"filter {entry.get('name')!r} {problem}; its metrics are left out")
        elif all(
            _is_pattern(parts, (*path, "filter", at, "regex_pattern"), step.get("regex_pattern", ""))
            for at, step in enumerate(steps)
        ):
            yield str(entry.get("name")), steps


def _why_unknown(step: Mapping[str, Any]) -> str | None:
    name = step.get("function")
    if isinstance(name, Function):
        return f"is the function {name.name!r}, which is not run"
    settings = FILTERS.get(str(name))
    if settings is None:
        return f"uses {name!r}, which no scorer of AI GO supports"
    unknown = sorted(map(str, step.keys() - settings - {"function"}))
    return f"has the unknown setting {unknown[0]!r}" if unknown else None


# Shared


def _metrics(parts: HarnessParts, known: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str, Json]]:
    """Yield the supported metrics that are means, with their settings."""
    values = parts.definition.values
    listed = values.get("metric_list")
    if listed is None:
        yield from (
            (("metric_list",), name, {})
            for name in USUAL_METRICS[values.get("output_type", "generate_until")]
        )
        return
    for number, entry in enumerate(listed if isinstance(listed, list) else [listed]):
        path = ("metric_list", number)
        name = entry.get("metric") if isinstance(entry, dict) else entry
        if isinstance(name, Function):
            problem = f"is the function {name.name!r}, which is not run"
        elif not isinstance(entry, dict) or not isinstance(name, str):
            parts.refuse(path, f"found {name!r}, expected 'metric' with a name")
            continue
        elif name not in known:
            problem = "has no equivalent in AI GO"
        elif entry.get("hf_evaluate") is True:
            problem = "is from the package evaluate"
        elif (aggregation := entry.get("aggregation", "mean")) != "mean":
            called = aggregation.name if isinstance(aggregation, Function) else aggregation
            problem = f"is aggregated by {called!r}, not by a mean"
        else:
            yield path, name, {key: value for key, value in entry.items() if key not in _ABOUT_NUMBERS}
            continue
        called = name.name if isinstance(name, Function) else name
        parts.lose(path, f"metric {called!r} {problem}; its metric is left out")


@lru_cache(maxsize=1)
def _code() -> str:
    return files("aigo_formats.lm_eval.tasks").joinpath("answers.py").read_text("utf-8")


def snippet(settings: Mapping[str, Any]) -> str:
    """Return the scorer code for answers, with the settings of a task."""
    written = pprint.pformat(dict(settings), width=100, sort_dicts=False)
    return _code().replace("SETTINGS: Settings = {}", f"SETTINGS: Settings = {written}")
