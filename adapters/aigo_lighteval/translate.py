"""A plan as lighteval's documents and task: what they can say of it, and what they cannot.

The documents are for lighteval's own eyes: its views, its metrics, its backends. What our runs compute comes from the row, which every
document carries as one text under `specific["aigo"]` (Arrow could not save rows of mixed types).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lighteval.metrics.utils.metric_utils import Metric
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc, SamplingMethod

from aigo_bridge.engine import Fidelity, Gap
from aigo_bridge.errors import SampleError
from aigo_bridge.garbage import fewer_collections
from aigo_bridge.plan import Sample, TaskPlan
from aigo_bridge.scoring.likelihoods import by_likelihood
from aigo_lighteval.golds import golds_of, has_several, storable
from aigo_lighteval.images import image_problem, pil_image
from aigo_lighteval.turns import Ask, Asked, Turn, asker, opening

CARRIER = "aigo"
"""Key of `Doc.specific` under which the row stands, and name of our metric and of our field of the responses."""

SPLIT = "test"

COLLECTIONS = (10_000, 300, 100)
"""Thresholds of garbage collection while a task is translated or run, which only adds objects: the youngest are looked at while they
still are in the processor's cache. With Python's own the collector takes half of the CPU time at 10,000 samples."""
LONGEST_NAME = 80
"""Characters of a task's key in its name here: files are named after it, with more behind it."""


def task_name(plan: TaskPlan) -> str:
    """The task's name in lighteval, where `|`, `@`, `,` and `:` have meanings, and the prefix keeps clear of built-in tasks."""
    return "aigo-" + re.sub(r"[^A-Za-z0-9_-]+", "-", plan.task.key)[:LONGEST_NAME]


def to_docs(plan: TaskPlan) -> list[Doc]:
    """The samples of a plan as documents, in the plan's order, with everything that a task sets in them.

    A row whose question cannot be rendered has an empty one: it is an error of its run, not of the translation. Where a plan asks in
    several turns, documents hold the first; where the author's code asks, they hold the row. `question_gaps` says so.
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


def doc_maker(plan: TaskPlan) -> Callable[[Sample], Doc]:
    """Makes the document of a sample, as a task's prompt function does; templates are compiled once."""
    ask = asker(plan) or opening(plan)
    shows_row = ask is None and plan.entity == "model"
    golds = golds_of(plan)
    # Arrow cannot save numbers in some rows and lists in others.
    as_lists = has_several(plan, golds)
    trials = plan.num_trials

    def make(sample: Sample) -> Doc:
        choices, right = golds(sample.data)
        asked = _asked(ask, sample)
        doc = (
            Doc(_row_query(sample) if shows_row else "", choices, 0)
            if asked is None
            else _doc(asked, choices)
        )
        if as_lists:
            doc.gold_index = right
        elif right:
            doc.gold_index = right[0]
        doc.specific = {CARRIER: row_text(sample)}
        doc.num_samples = trials
        return doc

    return make


def to_task_config(plan: TaskPlan, metrics: Sequence[Metric] = ()) -> LightevalTaskConfig:
    """The task of a plan; its rows are the numbers of the samples, and its prompt function gives their documents.

    lighteval replaces the examples of documents by its own choice, of which there is none here; those of `to_docs` are what the plan asks.

    Args:
        plan: the plan.
        metrics: how lighteval scores it; none for translation alone.
    """
    make = doc_maker(plan)
    samples = plan.samples
    ask = asker(plan)
    first = _asked(ask, samples[0]) if samples else None
    size, stop = generation({} if first is None else first.options)

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
        # Examples are part of the question already; naming a split keeps lighteval from warning about them.
        few_shots_split=SPLIT,
        generation_size=size,
        stop_sequence=stop,
        num_samples=[plan.num_trials],
        num_fewshots=0,
    )


def rows_of(plan: TaskPlan) -> list[dict[str, Any]]:
    """The rows that lighteval is given: numbers of samples, so that no library guesses types of columns."""
    return [{"sample": number} for number in range(len(plan.samples))]


def sampling_method() -> SamplingMethod:
    """How documents are asked that say nothing else."""
    return SamplingMethod.GENERATIVE


def sampling_methods(plan: TaskPlan) -> list[SamplingMethod]:
    """How the documents of a plan are asked: for an answer, for likelihoods of the choices, or for both."""
    if plan.entity == "system":
        return [SamplingMethod.GENERATIVE]
    scorers = plan.benchmark.scorers
    compared = len(by_likelihood(scorers))
    generates = [SamplingMethod.GENERATIVE] if compared < len(scorers) or not scorers else []
    return generates + ([SamplingMethod.LOGPROBS] if compared else [])


def generation(options: Mapping[str, Any]) -> tuple[int | None, list[str] | None]:
    """Length and stop sequences of generation options, as documents and tasks have them."""
    size, stop = options.get("max_tokens"), options.get("stop")
    return size if isinstance(size, int) else None, [stop] if isinstance(stop, str) else stop


# What documents cannot say


def doc_gaps(plan: TaskPlan) -> list[Gap]:
    """What documents cannot say: where lighteval's own models would do something else than the task.

    Runs of this adapter have none of these gaps: they take the row and the plan, not the document.
    """
    if plan.entity == "system":
        return [_gap("definition", "a system task has no rows")]
    solver = plan.benchmark.solver
    gaps = question_gaps(plan)
    if solver is not None and solver.postprocessor is not None:
        gaps.append(_gap("solver.postprocessor", "a document cannot become several"))
    for number, scorer in enumerate(plan.benchmark.scorers):
        gaps.append(
            Gap(
                f"scorers[{number}] ({scorer.type})",
                "lighteval's metrics are computed in other ways",
                Fidelity.UNSUPPORTED,
                "score with our metric, as runs of this engine do",
            )
        )
    if plan.benchmark.actions:
        gaps.append(_gap("actions", "lighteval keeps no sample out of its metrics"))
    return gaps


def question_gaps(plan: TaskPlan) -> list[Gap]:
    """What documents cannot say of a plan's questions; its scorers are not looked at."""
    solver = None if plan.entity == "system" else plan.benchmark.solver
    if solver is None:
        return [_gap("solver", "the task calls no model, and lighteval always does")]
    ask = asker(plan)
    if ask is None:
        held = (
            "what is asked first"
            if opening(plan) is not None
            else "the row, of which the author's code makes questions"
        )
        reason = f"a document is one question with one answer; it holds {held}"
        return [_gap(f"solver ({solver.type})", reason)]
    found: dict[str, Gap] = {}
    part = "solver.message_builders" if solver.type == "multi_turn_solver" else "solver.input_builder"
    first: tuple[Any, ...] | None = None
    for sample in plan.samples:
        asked = _asked(ask, sample)
        if asked is None:
            found.setdefault("row", _gap(part, "cannot be rendered for every row"))
            continue
        for reason, fidelity in _problems(asked):
            found.setdefault(reason, _gap(part, reason, fidelity))
        shared = _shared(asked)
        first = first or shared
        if shared[0] != first[0]:
            reason = "its system message depends on the row; lighteval has one per model"
            found.setdefault(reason, _gap(part, reason))
        if shared[1:] != first[1:]:
            reason = "max_tokens or stop depends on the row; lighteval has one per task"
            found.setdefault(reason, _gap(part, reason))
    return list(found.values())


def _problems(asked: Asked) -> Iterator[tuple[str, Fidelity]]:
    """Why one question is no document, with how far from it."""
    roles = [turn.role for turn in asked.turns]
    spoken = roles[1:] if roles[:1] == ["system"] else roles
    if not spoken or spoken != ["user" if place % 2 == 0 else "assistant" for place in range(len(spoken))]:
        yield "its messages are not examples and a question", Fidelity.UNSUPPORTED
    elif spoken[-1] != "user":
        yield "its last message is not the user's", Fidelity.UNSUPPORTED
    if roles[:1] == ["system"] and not asked.turns[-1].images:
        yield (
            "lighteval writes an instruction in front of the question, not as a system message",
            Fidelity.APPROXIMATE,
        )
    if asked.is_one_text:
        yield (
            "its examples stand in one message with the question; lighteval writes them as messages for models with a chat template",
            Fidelity.APPROXIMATE,
        )
    if asks_logits(asked.options):
        yield (
            "logprobs are what `use_logits` asks for, and lighteval's models keep them to themselves",
            Fidelity.APPROXIMATE,
        )
    other = (
        sorted(set(asked.options) - {"max_tokens", "stop", "logprobs"})
        + ["response_format"] * asked.is_structured
    )
    if other:
        yield f"documents have no word for {', '.join(other)}", Fidelity.UNSUPPORTED
    images = [turn.images for turn in asked.turns]
    if any(images[:-1]) or (any(images) and len(spoken) > 1):
        yield "images can be shown with the question alone, and then without examples", Fidelity.UNSUPPORTED
    for turn in asked.turns:
        problem = turn.problem or next(filter(None, map(image_problem, turn.images)), None)
        if problem is not None:
            yield f"its messages have {problem}", Fidelity.UNSUPPORTED
        if turn.choices is not None and turn.text not in turn.choices:
            yield "the choices of an example do not hold its answer", Fidelity.UNSUPPORTED


def _shared(asked: Asked) -> tuple[Any, ...]:
    """What has to be the same for all rows."""
    system = [turn.text for turn in asked.turns if turn.role == "system"]
    size, stop = generation(asked.options)
    return system, size, stop


def _gap(part: str, reason: str, fidelity: Fidelity = Fidelity.UNSUPPORTED) -> Gap:
    return Gap(part, reason, fidelity, "run it with a model of this engine, e.g. openai/NAME")


# The row

_ENCODE = json.JSONEncoder(default=str).encode


def row_text(sample: Sample) -> str:
    """A sample as the text that documents carry; in ASCII, so that Arrow takes even half surrogate pairs."""
    return _ENCODE({"id": sample.id, "data": dict(sample.data)})


def sample_of(text: str) -> Sample:
    """Back from `row_text`."""
    row = json.loads(text)
    return Sample(row["id"], row["data"])


# The question


def _asked(ask: Ask | None, sample: Sample) -> Asked | None:
    """What would be asked; a row that cannot be rendered is an error of its run, not of the translation."""
    if ask is None:
        return None
    try:
        return ask(sample.data)
    except SampleError:
        return None


def _doc(asked: Asked, choices: list[str]) -> Doc:
    size, stop = generation(asked.options) if asked.options else (None, None)
    doc = Doc("", choices, 0, generation_size=size, stop_sequences=stop, **extra_fields(asked))
    turns = asked.turns
    if len(turns) > 1 or (turns and turns[0].role == "system"):
        instruction = [storable(turn.text) for turn in turns if turn.role == "system"]
        doc.instruction = "\n\n".join(instruction) or None
        turns = [turn for turn in turns if turn.role != "system"]
        doc.fewshot_samples = _shots(turns[:-1])
    if turns:
        # A conversation that does not end with the user's turn is a gap; what it asks is shown all the same.
        last = next((turn for turn in reversed(turns) if turn.role == "user"), turns[-1])
        doc.query = storable(last.text)
        if last.images:
            doc.images = [pil_image(url) for url in last.images if image_problem(url) is None]
    return doc


def extra_fields(asked: Asked) -> dict[str, Any]:
    """Fields of a document beside question and answers, as far as the task says them."""
    texts = {
        "unconditioned_query": asked.unconditioned,
        "original_query": asked.original,
        "fewshot_sorting_class": asked.sorting_class,
    }
    fields: dict[str, Any] = {name: storable(text) for name, text in texts.items() if text is not None}
    return {**fields, "use_logits": True} if asks_logits(asked.options) else fields


def asks_logits(options: Mapping[str, Any]) -> bool:
    """Whether generation options ask for the probabilities behind the answer's tokens, too."""
    return options.get("logprobs") is True


def _row_query(sample: Sample) -> str:
    return _ENCODE(dict(sample.data))


def _shots(turns: Sequence[Turn]) -> list[Doc]:
    """Examples: earlier questions with their answers, where the conversation is nothing else."""
    pairs = list(zip(turns[::2], turns[1::2], strict=False))
    if len(turns) % 2 or any((asked.role, said.role) != ("user", "assistant") for asked, said in pairs):
        return []
    return [_shot(storable(asked.text), said) for asked, said in pairs]


def _shot(query: str, said: Turn) -> Doc:
    choices, answer = list(map(storable, said.choices or ())), storable(said.text)
    if answer not in choices:
        return Doc(query, [answer], 0)
    return Doc(query, choices, choices.index(answer))
