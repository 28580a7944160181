"""A plan as lighteval's documents and task: what they can say of it, and what they cannot.

The documents are for lighteval's own eyes: its views, its metrics, its backends. What our runs compute comes from the row, which every
document carries as one text under `specific["aigo"]` (Arrow could not save rows of mixed types).
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lighteval.metrics.utils.metric_utils import Metric
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc, SamplingMethod

from aigo_bridge.engine import Fidelity, Gap
from aigo_bridge.errors import SampleError, TemplateError
from aigo_bridge.models import ModelRequest
from aigo_bridge.plan import Sample, TaskPlan
from aigo_bridge.solving.inputs import compile_input
from aigo_bridge.spec import scorers as scorer_spec
from aigo_bridge.spec import solvers as solver_spec
from aigo_bridge.templates import SampleTemplate

CARRIER = "aigo"
"""Key of `Doc.specific` under which the row stands, and name of our metric and of our field of the responses."""

SPLIT = "test"

LONGEST_NAME = 80
"""Characters of a task's key in its name here: files are named after it, with more behind it."""

BuildRequest = Callable[[Mapping[str, Any]], ModelRequest]
Golds = Callable[[Mapping[str, Any]], tuple[list[str], int]]


def task_name(plan: TaskPlan) -> str:
    """The task's name in lighteval, where `|`, `@`, `,` and `:` have meanings, and the prefix keeps clear of built-in tasks."""
    return "aigo-" + re.sub(r"[^A-Za-z0-9_-]+", "-", plan.task.key)[:LONGEST_NAME]


def to_docs(plan: TaskPlan) -> list[Doc]:
    """The samples of a plan as documents, in the plan's order."""
    make = doc_maker(plan)
    return [make(sample) for sample in plan.samples]


def doc_maker(plan: TaskPlan) -> Callable[[Sample], Doc]:
    """Makes the document of a sample; templates are compiled once."""
    request = _request_builder(plan)
    golds = _golds(plan)
    trials = plan.num_trials

    def make(sample: Sample) -> Doc:
        choices, gold = golds(sample.data)
        specific = {CARRIER: row_text(sample)}
        shown = None if request is None else _request(request, sample)
        if shown is None:
            return Doc(query="", choices=choices, gold_index=gold, specific=specific, num_samples=trials)
        doc = _of_request(shown, choices, gold)
        doc.specific = specific
        doc.num_samples = trials
        return doc

    return make


def to_task_config(plan: TaskPlan, metrics: Sequence[Metric] = ()) -> LightevalTaskConfig:
    """The task of a plan; its rows are the numbers of the samples, and its prompt function gives their documents.

    Args:
        plan: the plan.
        metrics: how lighteval scores it; none for translation alone.
    """
    make = doc_maker(plan)
    samples = plan.samples
    sizes = {_options(plan, sample).get("max_tokens") for sample in samples[:1]}
    stops = [_options(plan, sample).get("stop") for sample in samples[:1]]
    stop = stops[0] if stops else None

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
        generation_size=next((size for size in sizes if isinstance(size, int)), None),
        stop_sequence=[stop] if isinstance(stop, str) else stop,
        num_samples=[plan.num_trials],
        num_fewshots=0,
    )


def rows_of(plan: TaskPlan) -> list[dict[str, Any]]:
    """The rows that lighteval is given: numbers of samples, so that no library guesses types of columns."""
    return [{"sample": number} for number in range(len(plan.samples))]


def doc_gaps(plan: TaskPlan) -> list[Gap]:
    """What documents cannot say: where lighteval's own models would do something else than the task.

    Runs of this adapter have none of these gaps: they take the row and the plan, not the document.
    """
    if plan.entity == "system":
        return [_gap("definition", "a system task has no rows")]
    gaps: list[Gap] = []
    solver = plan.benchmark.solver
    match solver:
        case None:
            gaps.append(_gap("solver", "the task calls no model, and lighteval always does"))
        case solver_spec.SingleTurnSolver():
            gaps += _request_gaps(plan)
        case _:
            gaps.append(_gap(f"solver ({solver.type})", "a document is one question with one answer"))
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


def sampling_method() -> SamplingMethod:
    """How our documents are asked."""
    return SamplingMethod.GENERATIVE


# The row


def row_text(sample: Sample) -> str:
    """A sample as the text that documents carry; in ASCII, so that Arrow takes even half surrogate pairs."""
    return json.dumps({"id": sample.id, "data": dict(sample.data)}, default=str)


def sample_of(text: str) -> Sample:
    """Back from `row_text`."""
    row = json.loads(text)
    return Sample(row["id"], row["data"])


def storable(text: str) -> str:
    """A text that can be encoded: half surrogate pairs become question marks."""
    return text.encode("utf-8", "replace").decode()


# The request


def _request_builder(plan: TaskPlan) -> BuildRequest | None:
    if plan.entity != "model" or not isinstance(plan.benchmark.solver, solver_spec.SingleTurnSolver):
        return None
    return compile_input(plan.benchmark.solver.input_builder)


def _request(build: BuildRequest, sample: Sample) -> ModelRequest | None:
    """What would be asked; a row that cannot be rendered is an error of its run, not of the translation."""
    try:
        return build(sample.data)
    except SampleError:
        return None


def _options(plan: TaskPlan, sample: Sample) -> Mapping[str, Any]:
    build = _request_builder(plan)
    request = None if build is None else _request(build, sample)
    return {} if request is None else request.options


def _of_request(request: ModelRequest, choices: list[str], gold: int) -> Doc:
    turns: list[tuple[str, str]] = [
        (message.role, storable(message.content if isinstance(message.content, str) else ""))
        for message in request.input.messages
    ]
    instruction = "\n\n".join(text for role, text in turns if role == "system") or None
    spoken = [turn for turn in turns if turn[0] != "system"]
    asked = spoken.pop()[1] if spoken and spoken[-1][0] == "user" else ""
    stop = request.options.get("stop")
    size = request.options.get("max_tokens")
    return Doc(
        query=asked,
        choices=choices,
        gold_index=gold,
        instruction=instruction,
        fewshot_samples=_shots(spoken),
        generation_size=size if isinstance(size, int) else None,
        stop_sequences=[stop] if isinstance(stop, str) else stop,
    )


def _shots(turns: list[tuple[str, str]]) -> list[Doc]:
    """Examples: earlier questions with their answers, where the conversation is nothing else."""
    pairs = list(zip(turns[::2], turns[1::2], strict=False))
    alternating = len(turns) % 2 == 0 and all(
        asked[0] == "user" and answered[0] == "assistant" for asked, answered in pairs
    )
    if not alternating:
        return []
    return [Doc(query=asked[1], choices=[answered[1]], gold_index=0) for asked, answered in pairs]


def _request_gaps(plan: TaskPlan) -> list[Gap]:
    build = _request_builder(plan)
    assert build is not None
    gaps: dict[str, Gap] = {}
    systems: set[str | None] = set()
    settings: set[str] = set()
    for sample in plan.samples:
        request = _request(build, sample)
        if request is None:
            gaps["template"] = _gap("solver.input_builder", "cannot be rendered for every row")
            continue
        doc = _of_request(request, [], 0)
        roles = [message.role for message in request.input.messages]
        spoken = [role for role in roles if role != "system"]
        systems.add(doc.instruction)
        settings.add(repr((doc.generation_size, doc.stop_sequences)))
        if len(spoken) != 2 * len(doc.fewshot_samples) + 1 or spoken[-1] != "user" or "system" in roles[1:]:
            gaps["turns"] = _gap("solver.input_builder", "its messages are not examples and a question")
        other = set(request.options) - {"max_tokens", "stop"}
        if other or request.input.response_format is not None:
            named = ", ".join(
                sorted([*other, *(["response_format"] if request.input.response_format else [])])
            )
            gaps["options"] = _gap("solver.input_builder", f"documents have no word for {named}")
    if len(systems) > 1:
        gaps["system"] = _gap(
            "solver.input_builder", "its system message depends on the row; lighteval has one per model"
        )
    if len(settings) > 1:
        gaps["settings"] = _gap(
            "solver.input_builder", "max_tokens or stop depends on the row; lighteval has one per task"
        )
    return list(gaps.values())


def _gap(part: str, reason: str) -> Gap:
    return Gap(part, reason, Fidelity.UNSUPPORTED, "run it with a model of this engine, e.g. openai/NAME")


# Right answers


def _golds(plan: TaskPlan) -> Golds:
    """Choices and the right one, from the first scorer that has a right answer."""
    for scorer in () if plan.entity == "system" else plan.benchmark.scorers:
        match scorer:
            case scorer_spec.StringEqualsMCQAScorer():
                return _letters(scorer)
            case scorer_spec.StringEqualsScorer() | scorer_spec.BleuScorer():
                return _ground_truth(scorer.ground_truth)
    return lambda row: ([], 0)


def _ground_truth(template: str) -> Golds:
    compiled = SampleTemplate(template)

    def golds(row: Mapping[str, Any]) -> tuple[list[str], int]:
        text = _rendered(compiled, row)
        return ([] if text is None else [text]), 0

    return golds


def _letters(scorer: scorer_spec.StringEqualsMCQAScorer) -> Golds:
    right = SampleTemplate(scorer.ground_truth_choice)
    listed = scorer.choices if isinstance(scorer.choices, tuple) else None
    template = None if isinstance(scorer.choices, tuple) else SampleTemplate(scorer.choices)

    def golds(row: Mapping[str, Any]) -> tuple[list[str], int]:
        choices = (
            list(listed) if listed is not None else _list(_rendered(template, row) if template else None)
        )
        gold = _rendered(right, row)
        return choices, choices.index(gold) if gold in choices else 0

    return golds


def _rendered(template: SampleTemplate, row: Mapping[str, Any]) -> str | None:
    try:
        return storable(template.render(sample=row))
    except TemplateError:
        return None


def _list(text: str | None) -> list[str]:
    """A list as JSON, or as Python prints one."""
    for parse in (json.loads, ast.literal_eval):
        try:
            found = parse(text or "")
        except (ValueError, SyntaxError):
            continue
        if isinstance(found, list | tuple):
            return [storable(str(choice)) for choice in found]
    return []
