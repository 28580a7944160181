"""Conversion of a plan to lighteval's documents and task, and the gaps in them.

lighteval uses the documents for its views, metrics and backends. Runs of aigo-bridge use the original row,
which every document carries as JSON text in `specific["aigo"]`. Arrow cannot save rows of mixed types.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from typing import Any

from lighteval.metrics.utils.metric_utils import Metric
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc, SamplingMethod

from aigo_bridge.datasets.spill_files import LazySequence
from aigo_bridge.engine.protocol import Fidelity, Gap
from aigo_bridge.errors import MissingEngineError, SampleError, TemplateError
from aigo_bridge.jsonl_spec.conversion import is_of_records
from aigo_bridge.plan.plan import Sample, TaskPlan
from aigo_bridge.process import fewer_collections
from aigo_bridge.scoring.likelihoods import by_likelihood
from aigo_bridge.templates import SampleTemplate, as_list
from aigo_lighteval.documents.turns import (
    SPLIT,
    Ask,
    ChatTurn,
    Row,
    RowPrompt,
    asker,
    is_chat,
    opening,
    storable,
)

CARRIER = "aigo"
"""Key of the row in `Doc.specific`, and name of aigo-bridge's metric and response field."""

COLLECTIONS = (10_000, 300, 100)
"""Garbage collection thresholds while a task is converted or run, which only adds objects. The youngest
objects are checked while they are in the processor's cache. With Python's default, the collector takes half
of the CPU time at 10,000 samples."""
_LARGEST_IMAGE = 50_000_000
"""Maximum size of an encoded image in bytes."""
LONGEST_NAME = 80
"""Maximum characters of a task key in lighteval's task name. File names contain it and more."""


def task_name(plan: TaskPlan) -> str:
    """Return the task's name in lighteval. The characters `|`, `@`, `,` and `:` are replaced. The prefix
    avoids built-in names.
    """
    return "aigo-" + re.sub(r"[^A-Za-z0-9_-]+", "-", plan.task.key)[:LONGEST_NAME]


def to_docs(plan: TaskPlan) -> list[Doc]:
    """Return the samples of a plan as documents, in the plan's order, with all fields that a task sets.

    A row whose question cannot be rendered has an empty one. It fails in the run, not in the conversion. For
    several turns, a document contains the first one. If task code asks the model, it contains the row.
    `question_gaps` reports both.
    """
    make = doc_maker(plan)
    name = f"{task_name(plan)}|0"
    methods = sampling_methods(plan)
    docs: list[Doc] = []
    with fewer_collections(*COLLECTIONS):
        for number, sample in enumerate(plan.samples):
            doc = make(sample)
            doc.id, doc.task_name, doc.sampling_methods = str(number), name, list(methods)
            docs.append(doc)
    return docs


class Documents:
    """Converter of plans to documents (see `NativeTasks`)."""

    def gaps(self, plan: TaskPlan) -> list[Gap]:
        """Return the gaps of a plan's questions (see `question_gaps`)."""
        return question_gaps(plan)

    def translate(self, plan: TaskPlan, model_map: Mapping[str, str]) -> list[Doc]:
        """Return the documents of a plan (see `to_docs`). Documents call no other models."""
        return to_docs(plan)


def doc_maker(plan: TaskPlan, *, with_rows: bool = True) -> Callable[[Sample], Doc]:
    """Return a function from a sample to its document, like a task's prompt function. Templates are compiled
    once.

    Args:
        plan: the plan.
        with_rows: whether documents contain their rows.
    """
    ask = asker(plan) or opening(plan)
    shows_row = ask is None and plan.entity == "model"
    golds = golds_of(plan)
    # Arrow cannot save numbers in some rows and lists in others.
    as_lists = has_several(plan, golds)
    trials = plan.num_trials

    def make(sample: Sample) -> Doc:
        choices, right = golds(sample.data)
        question = asked(ask, sample)
        doc = (
            Doc(_ENCODE(dict(sample.data)) if shows_row else "", choices, 0)
            if question is None
            else _doc(question, choices)
        )
        if as_lists:
            doc.gold_index = right
        elif right:
            doc.gold_index = right[0]
        if with_rows:
            doc.specific = {CARRIER: row_text(sample)}
        doc.num_samples = trials
        return doc

    return make


def to_task_config(
    plan: TaskPlan, metrics: Sequence[Metric] = (), *, with_rows: bool = True
) -> LightevalTaskConfig:
    """Return the lighteval task of a plan. Its rows are sample numbers, and its prompt function returns their
    documents.

    lighteval replaces the examples of documents with its own choice, which is empty here. The documents of
    `to_docs` have the plan's examples.

    Args:
        plan: the plan.
        metrics: lighteval metrics; empty for conversion only.
        with_rows: whether documents contain their rows. A run adds rows when it saves the documents.
    """
    make = doc_maker(plan, with_rows=with_rows)
    samples = plan.samples
    ask = asker(plan)
    question = asked(ask, samples[0]) if samples else None
    size, stop = generation({} if question is None else question.options)

    def prompt(row: dict[str, Any], task: str | None = None) -> Doc:
        return make(samples[row["sample"]])

    return LightevalTaskConfig(
        name=task_name(plan),
        prompt_function=prompt,
        hf_repo="aigo-bridge",
        hf_subset="default",
        metrics=list(metrics),
        hf_avail_splits=[SPLIT],
        evaluation_splits=[SPLIT],
        # The question already contains the examples. Naming a split avoids a warning of lighteval.
        few_shots_split=SPLIT,
        generation_size=size,
        stop_sequence=stop,
        num_samples=[plan.num_trials],
        num_fewshots=0,
    )


def rows_of(plan: TaskPlan) -> Sequence[dict[str, Any]]:
    """Return lighteval's rows. They contain only sample numbers, so that libraries cannot guess column
    types. lighteval adds fields to each row, so a row exists only while its document is made.
    """

    def read(start: int, stop: int) -> Iterator[dict[str, Any]]:
        return ({"sample": number} for number in range(start, stop))

    return LazySequence(len(plan.samples), read)


def sampling_methods(plan: TaskPlan) -> list[SamplingMethod]:
    """Return the request types of the plan's documents: answers, likelihoods of choices, or both."""
    if plan.entity == "system":
        return [SamplingMethod.GENERATIVE]
    scorers = plan.benchmark.scorers
    compared = len(by_likelihood(scorers))
    generates = [SamplingMethod.GENERATIVE] if compared < len(scorers) or not scorers else []
    return generates + ([SamplingMethod.LOGPROBS] if compared else [])


def generation(options: Mapping[str, Any]) -> tuple[int | None, list[str] | None]:
    """Return the length and stop sequences in generation options, as used by documents and tasks."""
    size, stop = options.get("max_tokens"), options.get("stop")
    return size if isinstance(size, int) else None, [stop] if isinstance(stop, str) else stop


# Gaps of documents


def question_gaps(plan: TaskPlan) -> list[Gap]:
    """Return the properties of a plan's questions that documents cannot express. Scorers are not checked."""
    solver = None if plan.entity == "system" else plan.benchmark.solver
    if solver is None:
        return [_gap("solver", "the task does not call a model, and lighteval always does")]
    ask = asker(plan)
    if ask is None:
        held = (
            "only the first question"
            if opening(plan) is not None
            else "only the row, from which the task code creates the questions"
        )
        reason = f"a document is one question with one answer; it contains {held}"
        return [_gap(f"solver ({solver.type})", reason)]
    gaps: dict[str, Gap] = {}
    part = "solver.message_builders" if solver.type == "multi_turn_solver" else "solver.input_builder"
    common: tuple[Any, ...] | None = None
    for sample in plan.samples:
        question = asked(ask, sample)
        if question is None:
            gaps.setdefault("row", _gap(part, "cannot be rendered for every row"))
            continue
        for reason, fidelity in _problems(question):
            gaps.setdefault(reason, _gap(part, reason, fidelity))
        shared = _shared(question)
        common = common or shared
        if shared[0] != common[0]:
            reason = "its system message depends on the row; lighteval has one for each model"
            gaps.setdefault(reason, _gap(part, reason))
        if shared[1:] != common[1:]:
            reason = "max_tokens or stop depends on the row; lighteval has one for each task"
            gaps.setdefault(reason, _gap(part, reason))
    return list(gaps.values())


def _problems(question: RowPrompt) -> Iterator[tuple[str, Fidelity]]:
    """Yield the reasons why a question does not fit into a document, with their fidelity."""
    roles = [turn.role for turn in question.turns]
    if not is_chat(roles):
        yield "its messages are not examples and a question", Fidelity.UNSUPPORTED
    elif roles[-1] != "user":
        yield "its last message is not from the user", Fidelity.UNSUPPORTED
    if roles[:1] == ["system"] and not question.turns[-1].images:
        yield (
            "lighteval writes an instruction before the question instead of a system message",
            Fidelity.APPROXIMATE,
        )
    if question.is_one_text:
        yield (
            (
                "its examples are in the same message as the question; lighteval writes them as"
                " separate messages for"
                " models with a chat template"
            ),
            Fidelity.APPROXIMATE,
        )
    if question.options.get("logprobs") is True:
        yield (
            "`logprobs` would need `use_logits`, and lighteval's models do not return them",
            Fidelity.APPROXIMATE,
        )
    unknown = (
        sorted(set(question.options) - {"max_tokens", "stop", "logprobs"})
        + ["response_format"] * question.is_structured
    )
    if unknown:
        yield f"documents do not support {', '.join(unknown)}", Fidelity.UNSUPPORTED
    images = [turn.images for turn in question.turns]
    if any(images[:-1]) or (any(images) and len(roles) - (roles[0] == "system") > 1):
        yield "images are only supported in the question, without examples", Fidelity.UNSUPPORTED
    for turn in question.turns:
        problem = turn.problem or next(filter(None, map(image_problem, turn.images)), None)
        if problem is not None:
            yield f"its messages have {problem}", Fidelity.UNSUPPORTED
        if turn.choices is not None and turn.text not in turn.choices:
            yield "the choices of an example do not include its answer", Fidelity.UNSUPPORTED


def _shared(question: RowPrompt) -> tuple[Any, ...]:
    """Return the properties that must be the same for all rows."""
    system = [turn.text for turn in question.turns if turn.role == "system"]
    size, stop = generation(question.options)
    return system, size, stop


def _gap(part: str, reason: str, fidelity: Fidelity = Fidelity.UNSUPPORTED) -> Gap:
    return Gap(part, reason, fidelity, "run it with a model of this engine, e.g. openai/NAME")


# The row

_ENCODE = json.JSONEncoder(default=str).encode


def row_text(sample: Sample) -> str:
    """Return a sample as JSON text for documents. It is ASCII because Arrow rejects lone surrogates."""
    return _ENCODE({"id": sample.id, "data": dict(sample.data)})


# The question


def asked(ask: Ask | None, sample: Sample) -> RowPrompt | None:
    """Return the question; `None` for a row that cannot be rendered. Such a row fails in the run, not in the
    conversion.
    """
    if ask is None:
        return None
    try:
        return ask(sample.data)
    except SampleError:
        return None


def _doc(question: RowPrompt, choices: list[str]) -> Doc:
    size, stop = generation(question.options) if question.options else (None, None)
    doc = Doc("", choices, 0, generation_size=size, stop_sequences=stop, **extra_fields(question))
    turns = question.turns
    if len(turns) > 1 or (turns and turns[0].role == "system"):
        instruction = [storable(turn.text) for turn in turns if turn.role == "system"]
        doc.instruction = "\n\n".join(instruction) or None
        turns = [turn for turn in turns if turn.role != "system"]
        doc.fewshot_samples = _shots(turns[:-1])
    if turns:
        # A conversation that does not end with a user turn is a gap, but its question is still shown.
        shown = next((turn for turn in reversed(turns) if turn.role == "user"), turns[-1])
        doc.query = storable(shown.text)
        if shown.images:
            doc.images = [pil_image(url) for url in shown.images if image_problem(url) is None]
    return doc


def extra_fields(question: RowPrompt) -> dict[str, Any]:
    """Return the additional fields of a document that the task sets."""
    texts = {
        "unconditioned_query": question.unconditioned,
        "original_query": question.original,
        "fewshot_sorting_class": question.sorting_class,
    }
    fields: dict[str, Any] = {name: storable(text) for name, text in texts.items() if text is not None}
    return {**fields, "use_logits": True} if question.options.get("logprobs") is True else fields


def _shots(turns: Sequence[ChatTurn]) -> list[Doc]:
    """Return earlier questions with their answers, if the conversation consists of such pairs."""
    pairs = list(zip(turns[::2], turns[1::2], strict=False))
    if len(turns) % 2 or any((query.role, answer.role) != ("user", "assistant") for query, answer in pairs):
        return []
    return [_shot(storable(query.text), answer) for query, answer in pairs]


def _shot(query: str, example: ChatTurn) -> Doc:
    choices, text = list(map(storable, example.choices or ())), storable(example.text)
    if text not in choices:
        return Doc(query, [text], 0)
    return Doc(query, choices, choices.index(text))


# Images. Only images inside the row are read. No image is downloaded or opened from a file.


def image_problem(url: str) -> str | None:
    """Return why an image cannot be stored in a document; `None` if it can."""
    if not url.startswith("data:"):
        return "images that are not stored in the row, as documents require"
    try:
        pil_image(url)
    except SampleError as error:
        return error.message
    return None


@lru_cache(maxsize=2)
def pil_image(url: str) -> Any:
    """Return the Pillow image of a `data:` URL.

    Raises:
        SampleError: the URL does not contain an image.
        MissingEngineError: Pillow is not installed.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise MissingEngineError(
            "documents with images need Pillow, which is not installed; run: pip install pillow"
        ) from error
    kind, _, encoded = url.partition(",")
    if not kind.endswith(";base64") or len(encoded) > _LARGEST_IMAGE:
        raise _no_image("images that are not in base64, or too large")
    try:
        with warnings.catch_warnings():
            # Refuse an image that would fill the memory, instead of a warning.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(BytesIO(base64.b64decode(encoded, validate=True)))
            image.load()
    except (binascii.Error, UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise _no_image("images that cannot be decoded") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise _no_image("images that are too large") from error
    return image


def _no_image(problem: str) -> SampleError:
    return SampleError(problem, stage="solver", kind="UnsupportedContent")


# Correct answers for lighteval's metrics and viewers: choices, and the correct ones among them

Golds = Callable[[Row], tuple[list[str], list[int]]]
"""Function from a row to its choices and the indexes of the correct ones; both empty if unknown."""


def golds_of(plan: TaskPlan) -> Golds:
    """Return the correct answers of the first scorer that has them in the row."""
    for scorer in () if plan.entity == "system" else plan.benchmark.scorers:
        truth = scorer.truth_template
        if truth is not None:
            choices, texts = scorer.answer_choices, scorer.answer_texts
            return _ground_truth(truth) if choices is None else _choice(truth, choices, texts)
        if is_of_records(scorer):
            return _targets
    return lambda row: ([], [])


def has_several(plan: TaskPlan, golds: Golds) -> bool:
    """Return whether a row of a plan has several correct answers. Only task records can have them."""
    return golds is _targets and any(len(golds(sample.data)[1]) > 1 for sample in plan.samples)


def _ground_truth(template: str) -> Golds:
    compiled = SampleTemplate(template)

    def golds(row: Row) -> tuple[list[str], list[int]]:
        text = _rendered(compiled, row)
        return ([], []) if text is None else ([text], [0])

    return golds


def _targets(row: Row) -> tuple[list[str], list[int]]:
    """Return the targets of a task record, which are all correct."""
    targets = row.get("targets")
    texts = [storable(str(target)) for target in targets] if isinstance(targets, list | tuple) else []
    return texts, list(range(len(texts)))


def _choice(truth: str, choices: str | Sequence[str], texts: str | Sequence[str] | None) -> Golds:
    """Return the choices and the correct one. For likelihoods, the choices are the texts that the model
    compares.
    """
    right = SampleTemplate(truth)
    listed = _listed(choices)
    weighed = listed if texts is None else _listed(texts)

    def golds(row: Row) -> tuple[list[str], list[int]]:
        choices, shown, gold = listed(row), weighed(row), _rendered(right, row)
        if len(shown) != len(choices):
            return [], []
        return shown, [choices.index(gold)] if gold in choices else []

    return golds


def _listed(choices: str | Sequence[str]) -> Callable[[Row], list[str]]:
    if not isinstance(choices, str):
        return lambda _: list(choices)
    template = SampleTemplate(choices)

    def texts(row: Row) -> list[str]:
        try:
            return [storable(str(text)) for text in as_list(template.evaluate(sample=row))]
        except TemplateError:
            return []

    return texts


def _rendered(template: SampleTemplate, row: Row) -> str | None:
    try:
        return storable(template.render(sample=row))
    except TemplateError:
        return None
