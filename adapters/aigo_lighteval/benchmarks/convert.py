"""Conversion of a lighteval task to an AI GO task with the same chat prompts and the same metrics.

The task's own prompt function renders every prompt once, and the rendered messages become rows. Metrics
become scorers (see `scorers`). Parts that cannot be converted exactly are refused, and the error lists all of
them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lighteval.models.abstract_model import ModelConfig
from lighteval.tasks.prompt_manager import PromptManager
from lighteval.tasks.requests import Doc, SamplingMethod
from lighteval.utils.utils import as_list

from aigo_bridge.codes import Code
from aigo_bridge.engine.benchmarks import ConvertedBenchmark
from aigo_bridge.engine.protocol import Fidelity, Gap
from aigo_bridge.errors import UnsupportedPlanError
from aigo_bridge.exporting.carried_code import problem_of
from aigo_bridge.text.json_text import key_of
from aigo_bridge.text.plurals import plural
from aigo_lighteval.benchmarks.faults import refusals
from aigo_lighteval.benchmarks.models import DocumentNotes
from aigo_lighteval.benchmarks.outcomes import plain
from aigo_lighteval.benchmarks.pipeline import SplitRows, make_pipeline
from aigo_lighteval.benchmarks.requests import options_of
from aigo_lighteval.benchmarks.scorers import (
    answers_of,
    is_exact,
    num_answers,
    origin_of,
    scorer_of,
    weighs_choices,
    why_unknown,
)
from aigo_lighteval.benchmarks.tasks import SelectedTask
from aigo_lighteval.running.pipeline import UncachedModel

_RUN_IT = "run it with `aigo-bridge run lighteval:…`"


def convert(
    selected: SelectedTask,
    splits: Mapping[str, SplitRows] | None,
    *,
    key: str | None = None,
    num_samples: int | None = None,
) -> ConvertedBenchmark:
    """Convert a task. Return the AI GO task, its rows, and the differences.

    Args:
        selected: the task.
        splits: rows of the task; `None`: lighteval loads them.
        key: key of the AI GO task; `None`: derived from the task's name.
        num_samples: number of rows, in lighteval's order; `None`: all.

    Raises:
        UnsupportedPlanError: the result would differ. The message lists all reasons.
        UsageError: rows are missing or do not fit the task.
    """
    config = selected.config
    gaps = _gaps(selected)
    _refuse(selected, gaps)
    # Read the metrics before the pipeline corrects them, because corrected metrics are not lighteval's own.
    most = max(map(num_answers, config.metrics), default=1)
    scorers = (
        [answers_of(selected, most)]
        if most > 1
        else [scorer_of(selected, number) for number in range(len(config.metrics))]
    )
    # The folder name is a placeholder because the pipeline sends no requests and writes no files.
    pipeline = make_pipeline(
        selected,
        UncachedModel(ModelConfig(model_name="none")),
        DocumentNotes(),
        splits,
        num_samples,
        Path("unused"),
    )
    docs = sorted(pipeline.documents_dict[selected.name], key=lambda doc: int(doc.id))
    shots = f"-{selected.shots}-shot" if selected.shots else ""
    name = key or key_of(config.name + shots)
    gaps += _document_gaps(selected, docs)
    _refuse(selected, gaps)
    native = [metric for metric in config.metrics if not is_exact(metric) and not weighs_choices(metric)]
    weighed = any(map(weighs_choices, config.metrics))
    generated = not all(map(weighs_choices, config.metrics))
    fixed = {} if most > 1 else {"temperature": 0}
    options = [{**options_of(doc), **fixed} if generated else {} for doc in docs]
    prompts = PromptManager(use_chat_template=True, tokenizer=None, system_prompt=None)
    rows = tuple(_row(doc, prompts, document=bool(native) or most > 1, weighed=weighed) for doc in docs)
    for scorer in scorers:
        problem = problem_of(scorer, rows[0], str(as_list(rows[0]["golds"])[0]))
        _refuse(selected, [_no(f"scorer {scorer['key']}", problem, _RUN_IT)] if problem is not None else [])
    template = json.dumps({"messages": "@", **options[0]}, ensure_ascii=False)
    template = template.replace('"@"', "{{ sample.messages | tojson }}", 1)
    if any(row_options != options[0] for row_options in options):
        pairs = zip(rows, options, strict=True)
        rows = tuple({**row, "body": {"messages": row["messages"], **values}} for row, values in pairs)
        template = "{{ sample.body | tojson }}"
    if most > 1:
        rows = tuple(
            {
                **row,
                "sample_id": f"{row['sample_id']}-{number}",
                "native_id": row["sample_id"],
                "answer_number": number,
            }
            for row in rows
            for number in range(1, most + 1)
        )
        reason = (
            f"each of the {plural(most, 'answer')} to a question becomes a separate row, without a"
            " temperature"
        )
        hint = "set a temperature on the model; a cache of answers would make all answers the same"
        gaps.append(Gap("metrics", reason, Fidelity.APPROXIMATE, hint))
    document = {
        "key": name,
        "display_name": config.name,
        "description": (
            f"The lighteval task {selected.name!r}, with prompts as lighteval renders them and its"
            " own metrics"
        ),
        "definition": {
            "type": "benchmark_task",
            "dataset": {"key": f"{name}-samples"},
            "solver": {
                "type": "single_turn_solver",
                "input_builder": {"type": "generic", "template": template},
            },
            "scorers": scorers,
        },
    }
    return ConvertedBenchmark(document, rows, tuple(gaps))


# Gaps


def _refuse(selected: SelectedTask, gaps: Sequence[Gap]) -> None:
    refused = [gap for gap in gaps if gap.fidelity is Fidelity.UNSUPPORTED]
    if not refused:
        return
    lines = [f"task {selected.config.name!r} cannot be converted: {plural(len(refused), 'gap')}"]
    lines += [f"  - {gap.part}: {gap.reason}" + (f" ({gap.hint})" if gap.hint else "") for gap in refused]
    raise UnsupportedPlanError("\n".join(lines), code=Code.NOT_EXPORTABLE)


def _document_gaps(selected: SelectedTask, docs: Sequence[Doc]) -> list[Gap]:
    """Return the properties of the documents that an AI GO task cannot express."""
    gaps: list[Gap] = []
    if not any(map(weighs_choices, selected.config.metrics)):
        return gaps
    gaps += [
        _no(
            "documents", f"{count} have {fault}, which an AI GO task cannot express with likelihoods", _RUN_IT
        )
        for count, fault in (
            (sum(len(as_list(doc.gold_index)) != 1 for doc in docs), "several correct choices or none"),
            (sum(len(doc.choices) < 2 for doc in docs), "fewer than two choices"),
            (sum("" in doc.choices for doc in docs), "an empty choice"),
        )
        if count
    ]
    if any(doc.instruction for doc in docs):
        reason = "without a chat template, lighteval adds a blank line after the instruction"
        gaps.append(Gap("prompt", reason, Fidelity.APPROXIMATE, "exact on models with a chat template"))
    return gaps


def _gaps(selected: SelectedTask) -> list[Gap]:
    config = selected.config
    gaps = [_no("task", reason) for reason in refusals(config)]
    if config.generation_grammar is not None:
        gaps.append(_no("generation_grammar", "an AI GO task cannot set a grammar for answers"))
    several = max(map(num_answers, config.metrics), default=1) > 1
    names = [str(metric.metric_name) for metric in config.metrics]
    gaps += [
        _no("metrics", f"several metrics are named {name!r}, and lighteval shows only the last one", _RUN_IT)
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    for number, metric in enumerate(config.metrics):
        part = f"metrics[{number}] ({metric.metric_name})"
        if weighs_choices(metric):
            if several:
                gaps.append(_no(part, "compares choices, while other metrics need several answers", _RUN_IT))
            continue
        if metric.category is not SamplingMethod.GENERATIVE:
            gaps.append(_no(part, f"measures {metric.category.value.lower()} instead of an answer", _RUN_IT))
            continue
        if metric.batched_compute:
            gaps.append(_no(part, "is computed for all answers at once", _RUN_IT))
            continue
        function = metric.sample_level_fn
        if is_exact(metric) and not several:
            continue
        if origin_of(metric, config.name, number) is None:
            gaps.append(_no(part, why_unknown(metric, config.name, number), _RUN_IT))
        if type(function).__name__.startswith("JudgeLLM"):
            gaps.append(_no(part, "calls a judge, whose failures and costs would not be reported", _RUN_IT))
    return gaps


def _no(part: str, reason: str, hint: str | None = None) -> Gap:
    return Gap(part, reason, Fidelity.UNSUPPORTED, hint)


# Rows


def _row(doc: Doc, prompts: PromptManager, *, document: bool, weighed: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "sample_id": doc.id,
        "messages": prompts.prepare_prompt_api(doc),
        "golds": plain(doc.get_golds()),
    }
    if weighed:
        numbers = [str(number) for number in range(1, len(doc.choices) + 1)]
        (right,) = as_list(doc.gold_index)
        row |= {"choice_numbers": numbers, "continuations": list(doc.choices), "right_choice": numbers[right]}
    if document:
        fields = ("query", "choices", "gold_index", "instruction", "specific", "original_query")
        # JSON text, because dataset rows have one type per column.
        row["document"] = json.dumps({name: plain(getattr(doc, name)) for name in fields}, ensure_ascii=False)
    return row
