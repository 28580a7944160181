"""Conversion of a lighteval task's metrics to scorers of an AI GO task.

Exact matches become Python scorers without dependencies. Likelihoods of choices become `string_equals_mcqa`.
Other metrics of single answers call the installed lighteval. Functions that aggregate all answers become
Python metrics.
"""

from __future__ import annotations

import functools
import json
import types
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lighteval.metrics.metrics import Metrics
from lighteval.metrics.metrics_sample import ExactMatches, LoglikelihoodAcc
from lighteval.metrics.utils.metric_utils import MetricGrouping

from aigo_bridge.exporting.carried_code import NotCarriedError, carried, module_of, with_code
from aigo_bridge.text.json_text import key_of
from aigo_lighteval.benchmarks.tasks import SelectedTask, built_in, own_modules

_REASONING = """

def without_reasoning(text):
    # As lighteval does before it measures.
    while "<think>" in text and "</think>" in text:
        start = text.find("<think>")
        end = text.find("</think>", start)
        if end == -1:
            break
        text = text[:start] + text[end + len("</think>") :]
    return text
"""

_EXACT = (
    """\
# Exact match as lighteval's `ExactMatches` has it: an empty answer matches nothing.
STRIP, KIND = {strip!r}, {kind!r}
"""
    + _REASONING
    + """

def matches(gold, answer):
    if not answer:
        return 0
    if STRIP:
        gold, answer = gold.strip(), answer.strip()
    if KIND == "prefix":
        return int(answer.startswith(gold))
    if KIND == "suffix":
        return int(answer.endswith(gold))
    return int(answer == gold)


def compute_scores(sample, solver_output):
    answer = without_reasoning(solver_output.output.choices[0].message.content or "")
    value = max(matches(gold, answer) for gold in sample["golds"])
    return {{"scores": {{{field!r}: value}}, "metadata": {{"golds": sample["golds"]}}}}
"""
)

_NATIVE = (
    """\
# Measures an answer with lighteval's own metric; needs the package lighteval.
import importlib
import json

import numpy as np
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

origin = importlib.import_module({imports!r})
METRIC = {metric}
TASK = {task!r}
FIELDS = json.loads({fields!r})
"""
    + _REASONING
    + """

def compute_scores(sample, solver_output):
    answer = solver_output.output.choices[0].message.content or ""
    doc = Doc(**{{**json.loads(sample["document"]), "task_name": TASK}})
    response = ModelResponse(text=[answer], text_post_processed=[without_reasoning(answer)])
    found = METRIC.compute_sample(model_response=response, doc=doc)
    values = {{name: plain(value) for name, value in found.items()}}
    scores = {{FIELDS[name]: values[name] for name in values if name in FIELDS}}
    return {{"scores": scores, "metadata": {{"lighteval": values}}}}


def plain(value):
    if hasattr(value, "golds"):  # what a number over all answers is computed from
        value = {{"golds": np.asarray(value.golds).tolist(), "preds": np.asarray(value.preds).tolist()}}
    value = value if isinstance(value, dict) else np.asarray(value).tolist()
    return json.dumps(value) if isinstance(value, (dict, list)) else value
"""
)

_CORPUS = """\
# One number of all answers, by lighteval's own function; needs the package lighteval.
import importlib
import json
from types import SimpleNamespace

import nltk

nltk.download = lambda *_, **__: False  # nothing is downloaded
origin = importlib.import_module({imports!r})
METRIC = {metric}
FUNCTION = METRIC.get_corpus_aggregations()[{name!r}]


def item(value):
    value = json.loads(value) if isinstance(value, str) else value
    return SimpleNamespace(**value) if isinstance(value, dict) else value


def computed(items):
    own = getattr(FUNCTION, "__self__", None)
    if getattr(own, "metric_type", "") not in ("chrf", "chrf++", "ter"):
        return FUNCTION(items)
    # lighteval turns the references of these the wrong way round, and looks at the first answers only.
    answers = [item.preds[0] if isinstance(item.preds, list) else item.preds for item in items]
    golds = [item.golds if isinstance(item.golds, list) else [item.golds] for item in items]
    most = max((len(texts) for texts in golds), default=0)
    references = [[texts[at] if at < len(texts) else None for texts in golds] for at in range(most)]
    return own.get_metric().corpus_score(answers, references).score


def compute_metrics(scores):
    return {{{name!r}: float(computed([item(score.values[{field!r}]) for score in scores]))}}
"""


_ANSWERS = """\
# Keeps an answer: lighteval's metrics look at several answers to a question together.


def compute_scores(sample, solver_output):
    answer = solver_output.output.choices[0].message.content or ""
    kept = {name: sample[name] for name in ("native_id", "answer_number", "document")}
    return {"scores": {"answered": int(bool(answer))}, "metadata": {"answer": answer, **kept}}
"""

_SEVERAL = (
    """\
# Measures several answers to each question with lighteval's own metric; needs the package lighteval.
import importlib
import json
import re

from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

origin = importlib.import_module({imports!r})
METRIC = {metric}
TASK, NUM_ANSWERS = {task!r}, {num_answers}
"""
    + _REASONING
    + """

def compute_metrics(scores):
    questions = {{}}
    for score in scores:
        questions.setdefault(score.metadata["native_id"], []).append(score.metadata)
    values = {{}}
    for answers in questions.values():
        if len(answers) < NUM_ANSWERS:
            continue  # one of them failed, and the question with it
        texts = [kept["answer"] for kept in sorted(answers, key=lambda kept: kept["answer_number"])]
        doc = Doc(**{{**json.loads(answers[0]["document"]), "task_name": TASK}})
        response = ModelResponse(text=texts, text_post_processed=[without_reasoning(text) for text in texts])
        for name, value in METRIC.compute_sample(model_response=response, doc=doc).items():
            values.setdefault(name, []).append(value)
    functions = METRIC.get_corpus_aggregations()
    return {{named(name): float(functions[name](values[name])) for name in functions if name in values}}


def named(name):
    # lighteval writes where in memory a function is, which is another place in each run.
    return re.sub(r"<function (\\S+) at 0x[0-9a-f]+>", r"\\1", name)
"""
)


def num_answers(metric: Any) -> int:
    """Return the number of answers to a question that a metric evaluates together."""
    function = metric.sample_level_fn
    return int(function.num_samples()) if hasattr(function, "num_samples") else 1


def answers_of(selected: SelectedTask, most: int) -> dict[str, Any]:
    """Return the scorer of a task whose metrics evaluate several answers. Each answer is a row."""
    metrics = []
    for number, metric in enumerate(selected.config.metrics):
        origin = origin_of(metric, selected.config.name, number)
        assert origin is not None, "refused before"
        snippet = _SEVERAL.format(
            imports=origin.imports,
            metric=origin.expression,
            task=selected.config.full_name,
            num_answers=most,
        )
        name = metric.metric_name[0] if isinstance(metric, MetricGrouping) else metric.metric_name
        metrics.append(
            {"type": "python", "key": key_of(name), "compute_metrics_snippet": origin.with_code(snippet)}
        )
    return {"type": "python", "key": "answers", "compute_scores_snippet": _ANSWERS, "metrics": metrics}


def is_exact(metric: Any) -> bool:
    """Return whether a metric is an exact match that does not need lighteval."""
    function = metric.sample_level_fn
    return (
        type(function) is ExactMatches
        and function.aggregation_function is max
        and not function.normalize_gold
        and not function.normalize_pred
    )


def weighs_choices(metric: Any) -> bool:
    """Return whether a metric checks for the most likely choice, like `string_equals_mcqa`."""
    function = metric.sample_level_fn
    return type(function) is LoglikelihoodAcc and function.logprob_normalization is None


def functions_of(metric: Any) -> Mapping[str, Any]:
    """Return the functions that aggregate the values of all samples, by name."""
    functions: Mapping[str, Any] = metric.get_corpus_aggregations()
    return functions


def means_of(metric: Any) -> list[str]:
    """Return the names of a metric's values that are means over samples."""
    return [
        name for name, function in functions_of(metric).items() if getattr(function, "__name__", "") == "mean"
    ]


def scorer_of(selected: SelectedTask, number: int) -> dict[str, Any]:
    """Return the scorer of one of a task's metrics, which must be convertible."""
    config = selected.config
    metric = config.metrics[number]
    name = metric.metric_name[0] if isinstance(metric, MetricGrouping) else metric.metric_name
    if weighs_choices(metric):
        return {
            "type": "string_equals_mcqa",
            "key": key_of(name),
            "method": "loglikelihood",
            "ground_truth_choice": "{{ sample.right_choice }}",
            "choices": "{{ sample.choice_numbers | tojson }}",
            "continuations": "{{ sample.continuations | tojson }}",
            "metrics": [{"type": "mean", "key": key_of(name), "field": "is_correct", "name": name}],
        }
    fields = {name: key_of(name) for name in functions_of(metric)}
    means = means_of(metric)
    origin = None if is_exact(metric) else origin_of(metric, config.name, number)
    if origin is None:
        function = metric.sample_level_fn
        snippet = _EXACT.format(
            strip=function.strip_strings,
            kind=function.type_exact_match,
            field=fields[metric.metric_name],
        )
    else:
        snippet = _NATIVE.format(
            imports=origin.imports,
            metric=origin.expression,
            task=config.full_name,
            fields=json.dumps(fields),
        )
        snippet = origin.with_code(snippet)
    return {
        "type": "python",
        "key": key_of(name),
        "compute_scores_snippet": snippet,
        "metrics": [
            {"type": "mean", "key": field, "field": field, "name": native}
            if origin is None or native in means
            else _over_all(origin, native, field)
            for native, field in fields.items()
        ],
    }


def _over_all(origin: Origin, name: str, field: str) -> dict[str, Any]:
    snippet = _CORPUS.format(imports=origin.imports, metric=origin.expression, name=name, field=field)
    return {"type": "python", "key": field, "compute_metrics_snippet": origin.with_code(snippet)}


# Importable code of a metric


@dataclass(frozen=True)
class Origin:
    """Importable location of one of lighteval's metrics."""

    imports: str
    """Module to import."""
    expression: str
    """Expression for the metric, using the module as `origin`."""
    file: Path | None = None
    """User's file of the module; `None` for a lighteval module."""
    names: tuple[str, ...] = ()
    """Top-level names of the file that are copied."""

    def with_code(self, snippet: str) -> str:
        """Return a snippet with the user's code that it imports, if any."""
        return (
            snippet if self.file is None else with_code(snippet, {self.file: carried(self.file, self.names)})
        )


def origin_of(metric: Any, task: str, number: int) -> Origin | None:
    """Return the importable location of a metric; `None` if unknown.

    Args:
        metric: the metric.
        task: name of the metric's task.
        number: position among the task's metrics.
    """
    registry = built_in()
    config = registry.configs.get(task)
    if config is not None and number < len(config.metrics) and is_same(metric, config.metrics[number]):
        table = f"next(config for config in origin.TASKS_TABLE if config.name == {task!r})"
        return Origin(registry.modules[task].__name__, f"{table}.metrics[{number}]")
    for member in Metrics:
        if is_same(metric, member.value):
            return Origin(Metrics.__module__, f"origin.Metrics[{member.name!r}].value")
    try:
        return _own_origin(metric, task, number)
    except NotCarriedError:
        return None


def _own_origin(metric: Any, task: str, number: int) -> Origin | None:
    """Return the location of a metric in a user's file: a name, otherwise an entry in the task table.

    Raises:
        NotCarriedError: the code cannot be copied.
    """
    for module in own_modules():
        file = Path(str(module.__file__))
        names = [name for name, value in vars(module).items() if is_same(metric, value)]
        if names:
            carried(file, names[:1])
            return Origin(module_of(file), f"origin.{names[0]}", file, (names[0],))
        config = next((config for config in module.TASKS_TABLE if config.name == task), None)
        metrics = [] if config is None else config.metrics
        if number < len(metrics) and is_same(metric, metrics[number]):
            carried(file, [TABLE])
            table = f"next(config for config in origin.{TABLE} if config.name == {task!r})"
            return Origin(module_of(file), f"{table}.metrics[{number}]", file, (TABLE,))
    return None


TABLE = "TASKS_TABLE"


def why_unknown(metric: Any, task: str, number: int) -> str:
    """Return why the code of a metric that is not in lighteval cannot be copied."""
    try:
        _own_origin(metric, task, number)
    except NotCarriedError as error:
        return f"its code is in one of your files, and {error}"
    if type(metric.sample_level_fn).__module__.startswith("lighteval."):
        return (
            "is a lighteval metric with other parameters than lighteval's own, which an AI GO task cannot"
            " store"
        )
    return "its code is in one of your files, and the file does not name it"


def is_same(one: Any, two: Any) -> bool:
    """Return whether two metrics have the same classes and settings, at any depth."""
    return _same(one, two, set())


def _same(one: Any, two: Any, seen: set[tuple[int, int]]) -> bool:
    pair = (id(one), id(two))
    if one is two or pair in seen:
        # Objects in a reference cycle are equal unless another part differs.
        return True
    if type(one) is not type(two):
        return False
    seen.add(pair)
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(_same(one[key], two[key], seen) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(
            _same(one_item, right, seen) for one_item, right in zip(one, two, strict=True)
        )
    if isinstance(one, functools.partial):
        return _same(one.__reduce__(), two.__reduce__(), seen)
    if isinstance(one, types.MethodType):
        return one.__func__ is two.__func__ and _same(one.__self__, two.__self__, seen)
    if isinstance(one, types.FunctionType | type | types.ModuleType):
        # The same code is always the same object, even in copies.
        return False
    if hasattr(one, "__dict__"):
        return _same(vars(one), vars(two), seen)
    return bool(one == two)
