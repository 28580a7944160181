"""Which scorers, metrics and trials of a task plain code of an engine carries out exactly, and what that code compares with.

Exact means: from the same answers the same scores of every sample and the same metrics. Expected answers are rendered at the time of the
export, so templates over the sample alone are no obstacle; over the model's answer only those that are as short in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from aigo_bridge.engine import Fidelity, Gap
from aigo_bridge.errors import SampleError, TemplateError
from aigo_bridge.exporting.answer_templates import answer_methods
from aigo_bridge.metrics import default_metrics, excluded
from aigo_bridge.metrics.trials import aggregated_name
from aigo_bridge.plan import Sample, TaskPlan
from aigo_bridge.scoring.variables import render_compared
from aigo_bridge.templates import SampleTemplate, as_list

SCORES = {"string_equals": "is_correct", "string_equals_mcqa": "is_correct", "bleu": "bleu_score"}
"""Scorers with a native form → the score that they give."""

METRICS = frozenset({"mean", "min", "max", "std_dev", "frequency"})
PASSES = frozenset({"pass@k", "pass^k"})


Expect = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Row → what a scorer compares with: `ground_truth`, and where the scorer has them `value` and `choices`."""


# Parts with their fidelity


def part(name: str, problem: str | None) -> Gap:
    """A part that is exact unless there is a problem."""
    return Gap(name, problem or "", Fidelity.UNSUPPORTED if problem else Fidelity.EXACT)


def unsupported(name: str, problem: str) -> Gap:
    """A part without a native form."""
    return Gap(name, problem, Fidelity.UNSUPPORTED)


def scorer_parts(plan: TaskPlan, scorer: Any, where: str) -> Iterator[Gap]:
    """A scorer that compares an answer with an expected one (see `SCORES`), and its metrics."""
    fields = ("ground_truth", "ground_truth_choice", "value", "choices")
    texts = {field: text for field in fields if isinstance(text := getattr(scorer, field, None), str)}
    late = [
        field
        for field, text in texts.items()
        if not reads_sample_only(text)
        and (field != "value" or plan.entity != "model" or answer_methods(text) is None)
    ]
    yield part(
        f"{where} ({scorer.type})", f"{late[0]} is a template over the model's answer" if late else None
    )
    known = score_names(plan, scorer)
    names: list[str] = []
    for number, metric in enumerate(metrics_of(scorer)):
        name = f"{where}.metrics[{number}] ({metric.type})"
        if metric.type not in METRICS:
            yield unsupported(name, "it has no native form")
        elif metric.field not in known:
            yield unsupported(name, f"it reads {metric.field!r}, the scorer gives {', '.join(known)}")
        else:
            given = value_name(metric)
            twice = given is not None and given in names
            names += [given] if given is not None else []
            yield part(name, f"two metrics are called {given!r}" if twice else None)


def value_name(metric: Any) -> str | None:
    """The name of a metric's value; `None` for frequencies, which have one for each value that occurs."""
    if metric.type == "frequency":
        return None
    return str(metric.name or f"{metric.field}_{metric.type}")


def score_names(plan: TaskPlan, scorer: Any) -> list[str]:
    """Scores that metrics of a scorer can read: its own, and what trials make of it."""
    name = SCORES[scorer.type]
    trials = plan.benchmark.trials
    if plan.num_trials == 1 or trials is None:
        return [name]
    own = [entry for entry in trials.score_aggregators or () if entry.score_name == name]
    return [name, *(aggregated_name(entry) for entry in own)]


def metrics_of(scorer: Any) -> tuple[Any, ...]:
    """The metrics of a scorer with a native form, default ones included."""
    return tuple(default_metrics(scorer.type, []) if scorer.metrics is None else scorer.metrics)


def trials_part(plan: TaskPlan) -> Gap | None:
    """Several trials; `None` where the task says nothing of them."""
    return None if plan.benchmark.trials is None else part("trials", _trials_problem(plan))


def actions_part(plan: TaskPlan) -> Gap | None:
    """Rules that leave samples out; `None` where there are none."""
    if not plan.benchmark.actions:
        return None
    late = [rule.key for rule in plan.benchmark.actions if not reads_sample_only(rule.filter.expression)]
    return part("actions", f"rule {late[0]!r} looks at what was said or scored" if late else None)


def _trials_problem(plan: TaskPlan) -> str | None:
    trials = plan.benchmark.trials
    if trials is None or plan.num_trials == 1:
        return None
    names: set[str] = set(SCORES.values())
    for entry in trials.score_aggregators or ():
        if entry.aggregator.function in PASSES and entry.score_name == "bleu_score":
            return f"{entry.aggregator.function} of {entry.score_name!r}, which is neither passed nor failed"
        name = aggregated_name(entry)
        if name in names:
            return f"several aggregated scores are called {name!r}"
        names.add(name)
    return None


# What is compared


def reads_sample_only(text: str) -> bool:
    """Whether a template can be rendered before a model has answered."""
    try:
        template = SampleTemplate(text)
    except TemplateError:
        return False
    return all(path[0] == "sample" for path in template.reads | template.optional_reads)


def has_own_value(scorer: Any) -> bool:
    """Whether a scorer compares a value made from the sample, not the model's answer."""
    text = getattr(scorer, "value", None)
    return text is not None and reads_sample_only(text)


def expected(scorer: Any) -> Expect:
    """What a scorer of `SCORES` compares with; raises `SampleError` or `TemplateError` for a row where there is nothing."""
    truth = SampleTemplate(
        scorer.ground_truth_choice if scorer.type == "string_equals_mcqa" else scorer.ground_truth
    )
    value = SampleTemplate(scorer.value) if has_own_value(scorer) else None
    choices = _choices(scorer.choices) if scorer.type == "string_equals_mcqa" else None

    def expect(row: Mapping[str, Any]) -> dict[str, Any]:
        fields: dict[str, Any] = {"ground_truth": render_compared(truth, {"sample": row}, "ground_truth")}
        if scorer.type == "bleu" and not fields["ground_truth"].strip():
            raise SampleError("the ground truth is empty", stage="score", kind="EmptyGroundTruth")
        if value is not None:
            fields["value"] = render_compared(value, {"sample": row}, "value")
        if choices is not None:
            fields["choices"] = choices(row)
        return fields

    return expect


def _choices(given: Any) -> Callable[[Mapping[str, Any]], list[str]]:
    if not isinstance(given, str):
        return lambda _: [str(choice) for choice in given]
    template = SampleTemplate(given)

    def letters(row: Mapping[str, Any]) -> list[str]:
        found = as_list(template.evaluate(sample=row))
        if not all(isinstance(letter, str) for letter in found):
            raise SampleError(f"choices: found {found!r}, expected a list of texts", stage="score")
        return found

    return letters


def is_excluded(plan: TaskPlan, sample: Sample) -> bool:
    """Whether an action rule keeps a sample out of the metrics, whatever it will score."""
    result = excluded(plan.benchmark.actions, sample.data, None, {})
    if result.errors:
        raise SampleError(result.errors[0].message, stage="action")
    return result.excluded
