"""Native export: the parts of a task that plain engine code reproduces exactly, and the data for this code.

Exact means that the same answers give the same scores of every sample and the same metrics. Expected
answers are rendered during the export, so templates of the sample alone are supported. Templates of the
model's answer are supported if they only trim it or change its case. The code comes from `runtime`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import nodes

from aigo_bridge.codes import Code
from aigo_bridge.engine.protocol import Fidelity, Gap
from aigo_bridge.errors import SampleError, TemplateError, UnsupportedPlanError
from aigo_bridge.exporting.manifest import ExportManifest, PackedDataset, checksum
from aigo_bridge.metrics.metric import default_metrics, excluded
from aigo_bridge.metrics.trials import aggregated_name
from aigo_bridge.plan.plan import Sample, TaskPlan
from aigo_bridge.scoring.registry import scorer_keys
from aigo_bridge.scoring.strings import SETTINGS
from aigo_bridge.scoring.variables import render_compared
from aigo_bridge.templates import SampleTemplate, as_list
from aigo_bridge.text.plurals import plural


class InexactExportError(UnsupportedPlanError):
    """Error for a task with parts that cannot be exported exactly."""

    usual_code = Code.NOT_EXPORTABLE

    def __init__(self, message: str, parts: Sequence[Gap]):
        self.parts = tuple(parts)
        """All parts of the task, including exact ones."""
        super().__init__(message)


def refuse_inexact(key: str, parts: Sequence[Gap], what: str) -> None:
    """Check that every part is exact.

    Raises:
        InexactExportError: a part is not; the message lists all parts with their fidelity.
    """
    inexact = [part for part in parts if part.fidelity is not Fidelity.EXACT]
    if not inexact:
        return
    count = f"{len(inexact)} of its {plural(len(parts), 'part')}"
    verb = "has" if len(inexact) == 1 else "have"
    lines = [f"task {key!r} cannot be exported as {what}: {count} {verb} no exact form there"]
    width = max(len(part.part) for part in parts)
    for part in parts:
        reason = f": {part.reason}" if part.reason else ""
        hint = f" ({part.hint})" if part.hint else ""
        lines.append(f"  {part.part:{width}}  {part.fidelity.value}{reason}{hint}")
    lines.append("hint: without --native the whole task is exported; its file then needs aigo-bridge to run")
    raise InexactExportError("\n".join(lines), parts)


@dataclass(frozen=True)
class Form:
    """Native form of a kind of solver or scorer, or the reason why it is missing."""

    code: str = ""
    """Expression over names of an adapter's runtime; empty without an exact form."""
    reason: str = ""
    """Reason for the missing exact form."""
    fidelity: Fidelity = Fidelity.EXACT
    score: str = ""
    """Score that a scorer gives."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Additional arguments of the code."""


def no_form(reason: str) -> Form:
    """Return a form for parts without an equivalent in the engine."""
    return Form(reason=reason, fidelity=Fidelity.UNSUPPORTED)


def near_form(reason: str) -> Form:
    """Return a form for parts with a similar feature in the engine."""
    return Form(reason=reason, fidelity=Fidelity.APPROXIMATE)


UNKNOWN = no_form("no native equivalent")
AUTHORS_CODE = no_form(
    "the author's code, which gets AI GO's objects and runs in aigo-bridge's worker process"
)
RAG = no_form("its claims are extracted and checked by several calls of a judge, as aigo-bridge makes them")

SCORERS: Mapping[str, Form] = {
    "string_equals": Form("string_equals", score="is_correct"),
    "string_equals_mcqa": Form("string_equals_mcqa", score="is_correct"),
    "bleu": Form("bleu", score="bleu_score", settings=SETTINGS),
    "python": AUTHORS_CODE,
    "python_all_samples": AUTHORS_CODE,
    "rag_checker": RAG,
}
"""Type of scorer → form on every engine. Adapters add engine-specific forms."""

_NO_FORMULA = no_form("only aigo-bridge has its formula")
METRICS: Mapping[str, Form] = {
    **{kind: Form(kind) for kind in ("mean", "min", "max", "std_dev", "frequency")},
    **dict.fromkeys(("weighted_average", "precision", "recall", "f1_score"), _NO_FORMULA),
    **dict.fromkeys(("binary-classification", "multiclass-classification"), _NO_FORMULA),
    "python": AUTHORS_CODE,
}
"""Type of metric → form, a formula of the runtime."""

PASSES = frozenset({"pass@k", "pass^k"})
METHODS = frozenset({"trim", "lower", "upper"})
"""Filters of the answer that the runtime supports."""


Expect = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Function from a row to a scorer's expected values: `ground_truth`, and for some `value` and `choices`."""


# Parts with their fidelity


def part(name: str, problem: str | None) -> Gap:
    """Return a part that is exact unless there is a problem."""
    return Gap(name, problem or "", Fidelity.UNSUPPORTED if problem else Fidelity.EXACT)


def unsupported(name: str, problem: str) -> Gap:
    """Return a part without a native form."""
    return Gap(name, problem, Fidelity.UNSUPPORTED)


def samples_part(problems: Sequence[str]) -> Gap:
    """Return the samples as a part. Samples with a problem would also fail in a run."""
    if not problems:
        return part("samples", None)
    more = len(problems) - _SHOWN
    listed = "; ".join(problems[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    reason = f"{len(problems)} would fail in a run: {listed}"
    return Gap("samples", reason, Fidelity.UNSUPPORTED, "correct the rows or the templates")


_SHOWN = 5


def scorer_parts(plan: TaskPlan, scorer: Any, where: str) -> Iterator[Gap]:
    """Yield a scorer that compares an answer with an expected one, and its metrics."""
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
    yield from metric_parts(scorer, where, score_names(plan, scorer))


def metric_parts(scorer: Any, where: str, scores: Iterable[str]) -> Iterator[Gap]:
    """Yield the metrics of a scorer with the given scores."""
    names: list[str] = []
    for number, metric in enumerate(metrics_of(scorer)):
        name = f"{where}.metrics[{number}] ({metric.type})"
        form = METRICS.get(metric.type, UNKNOWN)
        if not form.code:
            yield unsupported(name, form.reason)
        elif metric.field not in scores:
            yield unsupported(name, f"it reads {metric.field!r}, the scorer gives {', '.join(scores)}")
        else:
            value = metric.value_name
            twice = value is not None and value in names
            names += [value] if value is not None else []
            yield part(name, f"two metrics are called {value!r}" if twice else None)


def score_names(plan: TaskPlan, scorer: Any) -> list[str]:
    """Return the scores that the metrics of a scorer can read: its own, and those aggregated over trials."""
    name = SCORERS[scorer.type].score
    trials = plan.benchmark.trials
    if plan.num_trials == 1 or trials is None:
        return [name]
    aggregators = [entry for entry in trials.score_aggregators or () if entry.score_name == name]
    return [name, *(aggregated_name(entry) for entry in aggregators)]


def metrics_of(scorer: Any) -> tuple[Any, ...]:
    """Return the metrics of a scorer with a native form, including default metrics."""
    return tuple(default_metrics(scorer.type, []) if scorer.metrics is None else scorer.metrics)


def trials_part(plan: TaskPlan) -> Gap | None:
    """Return the trials as a part; `None` if the task does not declare them."""
    return None if plan.benchmark.trials is None else part("trials", _trials_problem(plan))


def actions_part(plan: TaskPlan) -> Gap | None:
    """Return the rules that exclude samples as a part; `None` without rules."""
    if not plan.benchmark.actions:
        return None
    late = [rule.key for rule in plan.benchmark.actions if not reads_sample_only(rule.filter.expression)]
    return part("actions", f"rule {late[0]!r} uses answers or scores" if late else None)


def _trials_problem(plan: TaskPlan) -> str | None:
    trials = plan.benchmark.trials
    if trials is None or plan.num_trials == 1:
        return None
    names = {form.score for form in SCORERS.values() if form.score}
    for entry in trials.score_aggregators or ():
        if entry.aggregator.function in PASSES and entry.score_name == "bleu_score":
            return f"{entry.aggregator.function} of {entry.score_name!r}, which is neither passed nor failed"
        name = aggregated_name(entry)
        if name in names:
            return f"several aggregated scores are called {name!r}"
        names.add(name)
    return None


# Compared values


def reads_sample_only(text: str) -> bool:
    """Return whether a template can be rendered before a model has answered."""
    try:
        template = SampleTemplate(text)
    except TemplateError:
        return False
    return all(path[0] == "sample" for path in template.reads | template.optional_reads)


def has_own_value(scorer: Any) -> bool:
    """Return whether a scorer compares a value from the sample instead of the model's answer."""
    text = getattr(scorer, "value", None)
    return text is not None and reads_sample_only(text)


def expected(scorer: Any) -> Expect:
    """Return a function for the expected values of a scorer with a native form. It raises `SampleError` or
    `TemplateError` for a row without these values.
    """
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


def _choices(choices: Any) -> Callable[[Mapping[str, Any]], list[str]]:
    if not isinstance(choices, str):
        return lambda _: [str(choice) for choice in choices]
    template = SampleTemplate(choices)

    def letters(row: Mapping[str, Any]) -> list[str]:
        texts = as_list(template.evaluate(sample=row))
        if not all(isinstance(letter, str) for letter in texts):
            raise SampleError(f"choices: found {texts!r}, expected a list of texts", stage="score")
        return texts

    return letters


def is_excluded(plan: TaskPlan, sample: Sample) -> bool:
    """Return whether an action rule excludes a sample from the metrics, independent of its scores."""
    result = excluded(plan.benchmark.actions, sample.data, None, {})
    if result.errors:
        raise SampleError(result.errors[0].message, stage="action")
    return result.excluded


_ANSWERS = frozenset({"solver_output.output", "solver_output.output.choices.0.message.content"})
"""Expressions for the text of the answer, or for objects that become this text before a filter is applied."""


def answer_methods(template: str | None) -> tuple[str, ...] | None:
    """Return the filters of the answer in order, from `METHODS`; `None` for any other template. A missing
    template means the unchanged answer.

    `{{ solver_output.output.choices[0].message.content | trim | lower }}` has `trim` and `lower`.
    """
    if template is None:
        return ()
    try:
        body = jinja2.Environment(autoescape=False).parse(template).body  # noqa: S701  # prompts are not HTML
    except jinja2.TemplateSyntaxError:
        return None
    if len(body) != 1 or not isinstance(body[0], nodes.Output) or len(body[0].nodes) != 1:
        return None
    return _methods(body[0].nodes[0])


def _methods(node: nodes.Node) -> tuple[str, ...] | None:
    methods: list[str] = []
    while isinstance(node, nodes.Filter):
        if node.name not in METHODS or node.args or node.kwargs or node.node is None:
            return None
        methods.insert(0, node.name)
        node = node.node
    return tuple(methods) if _path(node) in _ANSWERS else None


def _path(node: nodes.Node) -> str | None:
    """Convert `output.choices[0].message` to `output.choices.0.message`; `None` for other expressions."""
    steps: list[str] = []
    while not isinstance(node, nodes.Name):
        if isinstance(node, nodes.Getattr):
            steps.append(node.attr)
        elif isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
            steps.append(str(node.arg.value))
        else:
            return None
        node = node.node
    return ".".join([node.name, *reversed(steps)])


# Data for the code


def about_task(plan: TaskPlan, forms: Sequence[Form], *, prefix: bool = False) -> dict[str, Any]:
    """Return the data about scorers and trials for the code of a task. With `prefix`, names of metrics start
    with the scorer's key.
    """
    benchmark = plan.benchmark
    scorers = [
        {
            "key": key,
            "methods": list(answer_methods(getattr(scorer, "value", None)) or ()),
            "settings": dict(form.settings),
            "metrics": [_metric(metric, f"{key}." if prefix else "") for metric in metrics_of(scorer)],
        }
        for key, scorer, form in zip(scorer_keys(benchmark.scorers), benchmark.scorers, forms, strict=True)
    ]
    trials = benchmark.trials if plan.num_trials > 1 else None
    aggregators = [
        {
            "field": entry.score_name,
            "name": aggregated_name(entry),
            "function": entry.aggregator.function,
            **({"k": entry.aggregator.k} if hasattr(entry.aggregator, "k") else {}),
        }
        for entry in (() if trials is None else trials.score_aggregators or ())
    ]
    return {"trials": plan.num_trials, "scorers": scorers, "aggregators": aggregators}


def _metric(metric: Any, prefix: str) -> dict[str, str]:
    name = metric.value_name
    return {
        "type": metric.type,
        "field": metric.field,
        "name": prefix + (f"{metric.field}_" if name is None else name),
    }


def complete(manifest: ExportManifest, plan: TaskPlan, folder: Path) -> ExportManifest:
    """Return the manifest of a native export after its files were written."""
    dataset = plan.dataset
    return replace(
        manifest,
        dataset=None
        if dataset is None
        else PackedDataset(dataset.key, dataset.display_name, dataset.total, (), dataset.tags),
        limit=plan.num_samples,
        subsampling=plan.subsampling,
        files={path.name: checksum(path) for path in sorted(folder.iterdir())},
    )
