"""Scorer that works like lm-evaluation-harness: filters, then the metric, compared with the task's target.

The code of a converted scorer is this file with the settings of one task. It needs Jinja but not aigo-bridge.
"""

from __future__ import annotations

import ast
import re
import string
from typing import Any

from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

Settings = dict[str, Any]

SETTINGS: Settings = {}


def compute_scores(sample: dict[str, Any], solver_output: Any) -> dict[str, Any]:
    """Return the scores of one answer, with the filtered answer and the target."""
    answer: Any = solver_output.output.choices[0].message.content or ""
    for step in SETTINGS["filters"]:
        answer = _filtered(answer, step, sample)
    right = _right(sample, answer)
    scores = {}
    for metric in SETTINGS["metrics"]:
        options = {name: value for name, value in metric.items() if name != "metric"}
        targets = right if isinstance(right, list) else [right]
        scores[metric["metric"]] = float(any(_equal(answer, target, **options) for target in targets))
    return {"scores": scores, "metadata": {"filtered": answer, "target": right}}


def _filtered(answer: Any, step: Settings, sample: dict[str, Any]) -> Any:
    kind = step["function"]
    if kind == "regex":
        return _matched(answer, **{name: value for name, value in step.items() if name != "function"})
    if kind == "map":
        return (step.get("mapping_dict") or {}).get(answer, step.get("default_value"))
    if kind in ("lowercase", "uppercase"):
        return answer.lower() if kind == "lowercase" else answer.upper()
    return answer.strip() if kind == "remove_whitespace" else answer


def _matched(
    answer: Any,
    regex_pattern: str = r"#### (\-?[0-9\.\,]+)",
    group_select: int = 0,
    fallback: str = "[invalid]",
) -> str:
    matches = re.findall(regex_pattern, answer if isinstance(answer, str) else "")
    if not matches:
        return fallback
    match = matches[group_select]
    if isinstance(match, tuple):
        match = next((group for group in match if group), fallback)
    return str(match).strip()


def _right(sample: dict[str, Any], answer: Any) -> Any:
    """Return the target in the form that the harness compares."""
    right = _value(SETTINGS["target"], sample)
    choices = SETTINGS["choices"]
    if choices is not None:
        if isinstance(choices, str):
            listed = sample[choices] if choices in sample else ast.literal_eval(_text(choices, sample))
        else:
            listed = list(choices.values()) if isinstance(choices, dict) else choices
        return listed[right]
    if isinstance(right, list):
        return right
    return right if type(right) is type(answer) else type(answer)(right)


def _value(target: Any, sample: dict[str, Any]) -> Any:
    if not isinstance(target, str):
        return target
    if target in sample:
        return sample[target]
    text = _text(target, sample)
    if text.isdigit() and SETTINGS["choices"] is not None:
        return ast.literal_eval(text)
    if len(text) >= 2 and text[0] == "[" and text[-1] == "]":
        try:
            return ast.literal_eval(text)
        except (SyntaxError, ValueError):
            return text
    return text


def _text(template: str, sample: dict[str, Any]) -> str:
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
    environment.filters["regex_replace"] = lambda text, pattern, new, count=0: re.sub(
        pattern, new, text, count=count
    )
    return environment.from_string(template).render(**sample)


def _equal(
    answer: Any,
    right: Any,
    *,
    regexes_to_ignore: list[str] | None = None,
    ignore_case: bool = False,
    ignore_punctuation: bool = False,
    ignore_numbers: bool = False,
) -> bool:
    if not isinstance(answer, str) or not isinstance(right, str):
        return bool(answer == right)
    pair = [answer, right]
    for pattern in regexes_to_ignore or ():
        pair = [re.sub(pattern, "", text) for text in pair]
    if ignore_case:
        pair = [text.lower() for text in pair]
    removed = (string.punctuation if ignore_punctuation else "") + (string.digits if ignore_numbers else "")
    pair = [text.translate(str.maketrans("", "", removed)) for text in pair]
    return pair[0] == pair[1]
