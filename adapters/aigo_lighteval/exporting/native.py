"""Export of a task as plain lighteval code: exactness of its parts, rendered documents, and the file.

A part is exact if lighteval sends the same questions and computes the same scores and metrics from the same
answers. Failures differ: a failed call ends lighteval's run, and with some backends it is an empty answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aigo_bridge.engine.protocol import Fidelity, Gap
from aigo_bridge.errors import SampleError, TemplateError
from aigo_bridge.exporting.folders import MARK
from aigo_bridge.exporting.manifest import ExportManifest
from aigo_bridge.exporting.native import (
    AUTHORS_CODE,
    UNKNOWN,
    Form,
    about_task,
    actions_part,
    complete,
    expected,
    is_excluded,
    metric_parts,
    near_form,
    no_form,
    part,
    samples_part,
    scorer_parts,
    trials_part,
    unsupported,
)
from aigo_bridge.exporting.native import (
    SCORERS as COMMON_SCORERS,
)
from aigo_bridge.exporting.packing import write_rows
from aigo_bridge.exporting.python_code import module_docstring, one_line, rendered, with_runtime
from aigo_bridge.jsonl_spec import METRIC_NAMES
from aigo_bridge.jsonl_spec.conversion import is_of_records, scorer_snippet
from aigo_bridge.plan.plan import Sample, TaskPlan
from aigo_bridge.scoring.likelihoods import Choices
from aigo_bridge.scoring.registry import scorer_keys
from aigo_lighteval.documents.translate import (
    CARRIER,
    Golds,
    extra_fields,
    golds_of,
    has_several,
    row_text,
    sampling_methods,
    task_name,
)
from aigo_lighteval.documents.turns import (
    EXAMPLES,
    ROWS,
    SPLIT,
    RowPrompt,
    SharedFields,
    asker,
    mark,
    question_text,
    shared_question,
    storable,
    version,
)

_FILES = ("samples.jsonl", "examples.jsonl")
_RECORD_SCORES = "record_scores.py"

_JUDGE = near_form(
    "lighteval's judge uses another prompt, parses replies differently, and ends the run if a call fails"
)
_BY_TOKENS = near_form("lighteval's backends include padding in the token count of a text")
_BY_CHOICE = no_form("lighteval divides by the length of the compared text, which includes the delimiter")
_UNCONDITIONED = no_form("lighteval 0.13 does not send the unconditioned query to a model")
_RECORDS = Form(f'record_score(FILES / "{_RECORD_SCORES}")')

SCORERS: Mapping[str, Form] = {
    **COMMON_SCORERS,
    "model_as_a_judge_classifier": _JUDGE,
    "model_as_a_judge_scorer": _JUDGE,
    "labeler_via_model": no_form("no lighteval metric returns a judge's label"),
    "function_call_coverage": no_form("it compares the calls of a trace, which lighteval does not have"),
    "code_exec": no_form("it runs code that a model wrote, and lighteval does not have a sandbox"),
}
"""Native forms by scorer type. For likelihoods and task records see `_form`."""

Record = dict[str, Any]
"""Fields of a document."""


@dataclass
class Native:
    """Rendered task."""

    shared: SharedFields = field(default_factory=SharedFields)
    samples: list[Record] = field(default_factory=list)
    examples: list[Record] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Reasons why samples cannot be exported. They would also fail in a run."""


def native_form(plan: TaskPlan) -> tuple[Sequence[Gap], Native]:
    """Return every part of a task with its fidelity and, if all are exact so far, the rendered samples. The
    samples are also a part.
    """
    parts = list(_parts(plan))
    if any(part.fidelity is not Fidelity.EXACT for part in parts):
        return parts, Native()
    native = _rendered(plan)
    return [*parts, samples_part(native.problems)], native


def write_native(
    plan: TaskPlan, native: Native, folder: Path, manifest: ExportManifest
) -> tuple[ExportManifest, str]:
    """Write the documents into a new folder. Return the completed manifest and the task's code."""
    folder.mkdir(parents=True)
    for name, records in zip(_FILES, (native.samples, native.examples), strict=True):
        if records or name == _FILES[0]:
            write_rows(records, folder / name)
    if any(map(is_of_records, plan.benchmark.scorers)):
        (folder / _RECORD_SCORES).write_text(scorer_snippet(), encoding="utf-8", newline="\n")
    manifest = complete(manifest, plan, folder)
    return manifest, _code(plan, manifest, native.shared)


def _code(plan: TaskPlan, manifest: ExportManifest, shared: SharedFields) -> str:
    forms = [_form(scorer) for scorer in plan.benchmark.scorers]
    (method,) = sampling_methods(plan)
    text = (
        f"Written by {MARK} from the AI GO task {one_line(manifest.key)} (plan {manifest.digest[:12]})."
        " Prompts and"
        f" expected answers are rendered, in {manifest.module}/{_FILES[0]}."
    )
    about = {
        "name": task_name(plan),
        "export": mark(manifest),
        "version": version(manifest.digest),
        "asks": method.name,
        "examples": len(shared.examples),
        "size": shared.size,
        "stop": list(shared.stop),
        **about_task(plan, forms, prefix=True),
    }
    source = rendered(
        Path(__file__).with_name("native.py.jinja"),
        head=module_docstring(f"{one_line(manifest.display_name)}.", manifest.commands, text),
        module=manifest.module,
        about=about,
        rows=ROWS,
        split=SPLIT,
        examples=EXAMPLES,
        read="likelihoods" if method.name == "LOGPROBS" else "answers",
        scorers=[form.code for form in forms],
    )
    return with_runtime(source, "aigo_lighteval.exporting.runtime")


# Parts


def _parts(plan: TaskPlan) -> Iterator[Gap]:
    """Yield every part of a task with its fidelity in plain lighteval code."""
    if plan.entity == "system":
        yield unsupported("definition (system_task)", "it does not have rows, and lighteval needs them")
        return
    solver, scorers = plan.benchmark.solver, plan.benchmark.scorers
    _, problems = shared_question(plan)
    yield part("solver" if solver is None else f"solver ({solver.type})", "; ".join(problems) or None)
    if solver is not None and solver.postprocessor is not None:
        yield unsupported("solver.postprocessor", AUTHORS_CODE.reason)
    for number, scorer in enumerate(scorers):
        yield from _scorer_parts(plan, scorer, f"scorers[{number}]")
    if not scorers:
        yield unsupported("scorers", "the task lacks scorers, and lighteval only calls a model for a metric")
    elif len(sampling_methods(plan)) > 1:
        yield unsupported("scorers", "lighteval cannot store answers and likelihoods of the same task")
    trials = trials_part(plan)
    if trials is not None and plan.num_trials > 1 and any(map(is_of_records, scorers)):
        trials = unsupported("trials", "the scores of task records over trials do not have a native form")
    yield from filter(None, (trials, actions_part(plan)))


def _form(scorer: Any) -> Form:
    """Return the native form of a scorer. It depends on the type, the normalization of likelihoods and the
    code's origin.
    """
    if is_of_records(scorer):
        return _RECORDS
    divided = getattr(scorer, "length_normalisation", "none")
    if divided in ("pmi", "tokens"):
        return _UNCONDITIONED if divided == "pmi" else _BY_TOKENS
    if divided in ("choice_characters", "choice_bytes"):
        return _BY_CHOICE
    form = SCORERS.get(scorer.type, UNKNOWN)
    if getattr(scorer, "method", None) != "loglikelihood":
        return form
    return replace(form, code="most_likely", settings={"by_length": divided == "characters"})


def _scorer_parts(plan: TaskPlan, scorer: Any, where: str) -> Iterator[Gap]:
    name, form = f"{where} ({scorer.type})", _form(scorer)
    if form is _RECORDS:
        yield part(name, None)
        yield from metric_parts(scorer, where, METRIC_NAMES)
    elif form.code:
        yield from scorer_parts(plan, scorer, where)
    else:
        yield Gap(name, form.reason, form.fidelity)


# Documents


Expect = Callable[[Sample], dict[str, Any]]
"""Function from a sample to the values that a scorer compares with."""


def _rendered(plan: TaskPlan) -> Native:
    ask, golds = asker(plan), golds_of(plan)
    assert ask is not None  # otherwise the solver is not exact
    as_lists = has_several(plan, golds)
    scorers = plan.benchmark.scorers
    expect = [(key, _expect(scorer)) for key, scorer in zip(scorer_keys(scorers), scorers, strict=True)]
    shared, _ = shared_question(plan)
    native = Native(shared, examples=[_example(query.text, answer.text) for query, answer in shared.examples])
    for sample in plan.samples:
        try:
            question = ask(sample.data)
            compared: dict[str, Any] = {key: find(sample) for key, find in expect}
            excluded = bool(plan.benchmark.actions) and is_excluded(plan, sample)
        except (SampleError, TemplateError) as error:
            native.problems.append(f"sample {sample.id!r}: {error}")
            continue
        record: Record = exported_fields(sample, question, golds, as_lists=as_lists)
        record["specific"]["expected"] = json.dumps({"excluded": excluded, "scorers": compared})
        native.samples.append(record)
    return native


def _example(query: str, answer: str) -> Record:
    return {"query": storable(query), "choices": [storable(answer)], "gold_index": 0}


def _expect(scorer: Any) -> Expect:
    if is_of_records(scorer):
        return _record
    if getattr(scorer, "method", None) != "loglikelihood":
        find = expected(scorer)
        return lambda sample: find(sample.data)
    letters, weighed = expected(scorer), Choices(scorer)

    def expect(sample: Sample) -> dict[str, Any]:
        compared = letters(sample.data)
        choices, _ = weighed.of(sample.data, "score")
        if compared["ground_truth"] not in choices:
            raise SampleError(
                f"ground_truth_choice: found {compared['ground_truth']!r}, expected one of {choices!r}",
                stage="score",
            )
        return {"right": choices.index(compared["ground_truth"])}

    return expect


def _record(sample: Sample) -> dict[str, Any]:
    row: Mapping[str, Any] = sample.data
    names = ("metric_name", "post_process", "targets")
    missing = [name for name in names if name not in row]
    if missing:
        raise SampleError(f"the row is not a task record: {', '.join(missing)} is missing", stage="score")
    return {name: row[name] for name in names}


def exported_fields(
    sample: Sample, question: RowPrompt | None, golds: Golds, *, as_lists: bool
) -> dict[str, Any]:
    """Return the fields of a document of an exported task. lighteval adds the few-shot examples.

    Args:
        sample: the row.
        question: the question; `None` if it cannot be rendered or has several turns.
        golds: function that returns the correct answers.
        as_lists: whether the correct answers are lists (see `has_several`).
    """
    choices, right = golds(sample.data)
    fields: dict[str, Any] = {
        "query": "" if question is None else storable(question_text(question)),
        "choices": choices,
        "gold_index": right if as_lists else next(iter(right), 0),
        "specific": {CARRIER: row_text(sample)},
    }
    return fields if question is None else fields | extra_fields(question)
