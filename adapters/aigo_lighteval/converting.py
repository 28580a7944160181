"""A task of lighteval as an AI GO task: every prompt as lighteval renders it for a chat, every answer measured by the same rule.

Prompts are rendered once, by the task's own prompt function on its rows, and become rows; so they are the same messages. Exact matches are
written out as a Python scorer; every other metric that looks at one answer is called where lighteval is installed. What is measured otherwise
is refused, with the list of what stands in the way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lighteval.metrics.metrics_sample import ExactMatches
from lighteval.metrics.utils.metric_utils import MetricGrouping
from lighteval.models.abstract_model import LightevalModel, ModelConfig
from lighteval.tasks.prompt_manager import PromptManager
from lighteval.tasks.requests import Doc, SamplingMethod

from aigo_bridge.benchmarks import ConvertedBenchmark
from aigo_bridge.engine import Fidelity, Gap
from aigo_bridge.errors import UnsupportedPlanError
from aigo_bridge.importing.key_names import key_of
from aigo_lighteval.metric_origins import origin_of, why_unknown
from aigo_lighteval.native_faults import refusals
from aigo_lighteval.native_models import Told, options_of
from aigo_lighteval.native_registry import Selected
from aigo_lighteval.native_rows import SplitRows
from aigo_lighteval.native_running import make_pipeline, plain

_RUN_IT = "run it with `aigo-bridge run lighteval:…`"

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
    values = {{name: np.asarray(value).tolist() for name, value in found.items()}}
    scores = {{FIELDS[name]: value for name, value in values.items() if name in FIELDS}}
    return {{"scores": scores, "metadata": {{"lighteval": values}}}}
"""
)


def convert(
    selected: Selected,
    splits: Mapping[str, SplitRows] | None,
    *,
    key: str | None = None,
    num_samples: int | None = None,
) -> ConvertedBenchmark:
    """The AI GO task, its rows, and what is different.

    Args:
        selected: the task.
        splits: its rows; `None`: lighteval loads them.
        key: key of the AI GO task; `None` makes one from the task's name.
        num_samples: that many rows, in lighteval's order; `None`: all.

    Raises:
        UnsupportedPlanError: it would not be the same; all reasons are listed.
        UsageError: there are no rows, or they do not fit.
    """
    config = selected.config
    gaps = _gaps(selected)
    if refused := [gap for gap in gaps if gap.fidelity is Fidelity.UNSUPPORTED]:
        lines = [f"task {config.name!r} cannot be converted: {len(refused)} gap(s)"]
        lines += [f"  - {gap.part}: {gap.reason}" + (f" ({gap.hint})" if gap.hint else "") for gap in refused]
        raise UnsupportedPlanError("\n".join(lines))
    # The folder is named and never written: nothing is asked.
    pipeline = make_pipeline(selected, _Unasked(), Told(), splits, num_samples, Path("unused"))
    docs = sorted(pipeline.documents_dict[selected.name], key=lambda doc: int(doc.id))
    shots = f"-{selected.shots}-shot" if selected.shots else ""
    name = key or key_of(config.name + shots)
    native = [number for number, metric in enumerate(config.metrics) if not _is_exact(metric)]
    prompts = PromptManager(use_chat_template=True, tokenizer=None, system_prompt=None)
    rows = tuple(_row(doc, prompts, document=bool(native)) for doc in docs)
    template = {"messages": "@", **options_of(docs[0])}
    document = {
        "key": name,
        "display_name": config.name,
        "description": f"The lighteval task {selected.name!r}: its prompts as lighteval renders them, its own metrics",
        "definition": {
            "type": "benchmark_task",
            "dataset": {"key": f"{name}-samples"},
            "solver": {
                "type": "single_turn_solver",
                "input_builder": {
                    "type": "generic",
                    "template": json.dumps(template, ensure_ascii=False).replace(
                        '"@"', "{{ sample.messages | tojson }}", 1
                    ),
                },
            },
            "scorers": [_scorer(selected, number) for number in range(len(config.metrics))],
        },
    }
    return ConvertedBenchmark(document, rows, tuple(gaps))


class _Unasked(LightevalModel):  # type: ignore[misc]  # lighteval has no types
    """Stands where a pipeline wants a model; documents are all that is wanted."""

    tokenizer = None
    add_special_tokens = False
    max_length = 2**31

    def __init__(self) -> None:
        self.config = ModelConfig(model_name="none")
        self._cache = self

    def _init_registry(self, registry: object) -> None:
        """Asked for by the pipeline."""

    def greedy_until(self, docs: list[Doc]) -> list[Any]:
        """Never asked."""
        raise NotImplementedError

    loglikelihood = loglikelihood_rolling = greedy_until


# What stands in the way


def _gaps(selected: Selected) -> list[Gap]:
    config = selected.config
    gaps = [_no("task", reason) for reason in refusals(config)]
    if config.generation_grammar is not None:
        gaps.append(_no("generation_grammar", "an AI GO task has no grammar for answers"))
    for number, metric in enumerate(config.metrics):
        part = f"metrics[{number}] ({metric.metric_name})"
        if metric.category is not SamplingMethod.GENERATIVE:
            gaps.append(
                _no(part, f"is measured by {metric.category.value.lower()}, not by an answer", _RUN_IT)
            )
            continue
        if metric.batched_compute:
            gaps.append(_no(part, "is computed for all answers at once", _RUN_IT))
            continue
        means = _means(metric)
        others = [name for name in _functions(metric) if name not in means]
        if not means:
            gaps.append(_no(part, "is no mean over samples, but one number of all answers", _RUN_IT))
            continue
        if others:
            reason = f"{', '.join(others)}: left out as they are no mean over samples"
            gaps.append(Gap(part, reason, Fidelity.APPROXIMATE, "their values stand in the scores' metadata"))
        function = metric.sample_level_fn
        asked = function.num_samples() if hasattr(function, "num_samples") else 1
        if asked > 1:
            gaps.append(_no(part, f"looks at {asked} answers of each sample together", _RUN_IT))
        if _is_exact(metric):
            continue
        if origin_of(metric, config.name, number) is None:
            gaps.append(_no(part, why_unknown(metric), _RUN_IT))
        if type(function).__name__.startswith("JudgeLLM"):
            gaps.append(_no(part, "asks a judge, whose failures and costs nobody would see"))
    return gaps


def _no(part: str, reason: str, hint: str | None = None) -> Gap:
    return Gap(part, reason, Fidelity.UNSUPPORTED, hint)


def _is_exact(metric: Any) -> bool:
    """Whether a metric is an exact match that can be written out."""
    function = metric.sample_level_fn
    return (
        type(function) is ExactMatches
        and function.aggregation_function is max
        and not function.normalize_gold
        and not function.normalize_pred
    )


def _functions(metric: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = metric.get_corpus_aggregations()
    return found


def _means(metric: Any) -> list[str]:
    return [
        name for name, function in _functions(metric).items() if getattr(function, "__name__", "") == "mean"
    ]


# Rows and scorers


def _row(doc: Doc, prompts: PromptManager, *, document: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "sample_id": doc.id,
        "messages": prompts.prepare_prompt_api(doc),
        "golds": plain(doc.get_golds()),
    }
    if document:
        fields = ("query", "choices", "gold_index", "instruction", "specific", "original_query")
        # A text, because rows of a data set have one type per column.
        row["document"] = json.dumps({name: plain(getattr(doc, name)) for name in fields}, ensure_ascii=False)
    return row


def _scorer(selected: Selected, number: int) -> dict[str, Any]:
    config = selected.config
    metric = config.metrics[number]
    fields = {name: key_of(name) for name in _means(metric)}
    if _is_exact(metric):
        function = metric.sample_level_fn
        snippet = _EXACT.format(
            strip=function.strip_strings,
            kind=function.type_exact_match,
            field=fields[metric.metric_name],
        )
    else:
        origin = origin_of(metric, config.name, number)
        assert origin is not None, "a metric without origin is refused"
        snippet = _NATIVE.format(
            imports=origin.imports,
            metric=origin.expression,
            task=config.full_name,
            fields=json.dumps(fields),
        )
    name = metric.metric_name[0] if isinstance(metric, MetricGrouping) else metric.metric_name
    return {
        "type": "python",
        "key": key_of(name),
        "compute_scores_snippet": snippet,
        "metrics": [
            {"type": "mean", "key": field, "field": field, "name": native} for native, field in fields.items()
        ],
    }
