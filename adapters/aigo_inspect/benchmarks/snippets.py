"""Code templates for converted tasks: Python scorers and metrics that call Inspect's."""

from __future__ import annotations

from aigo_inspect.benchmarks.references import MAKING

WRITTEN_OUT = """\
# Scores an answer with Inspect's own scorer; needs the package inspect-ai.
import asyncio
import json

from inspect_ai._util.registry import registry_create
from inspect_ai.model import ChatMessageUser, ModelName, ModelOutput
from inspect_ai.scorer import Target, value_to_float
from inspect_ai.solver import TaskState

SCORER, SCORER_PARAMS = {scorer!r}, json.loads({scorer_params!r})
SOLVER, SOLVER_PARAMS = {solver!r}, json.loads({solver_params!r})


async def _score(sample, answer):
    output = ModelOutput.from_content("model", answer)
    state = TaskState(
        model=ModelName("none/none"),
        sample_id=sample["sample_id"],
        epoch=1,
        input=sample["input"],
        messages=[ChatMessageUser(content=sample["input"])],
        target=Target(sample["targets"]),
        choices=sample["choices"] or None,
        output=output,
    )

    async def generate(state, *args, **kwargs):
        state.output = output
        return state

    if SOLVER is not None:  # it reads the chosen letters from the answer
        state = await registry_create("solver", SOLVER, **SOLVER_PARAMS)(state, generate)
    return await registry_create("scorer", SCORER, **SCORER_PARAMS)(state, Target(sample["targets"]))


def compute_scores(sample, solver_output):
    answer = solver_output.output.choices[0].message.content or ""
    score = asyncio.run(_score(sample, answer))
    metadata = {{
        "value": score.value,
        "answer": score.answer,
        "metadata": score.metadata,
        "sample_id": sample["sample_id"],
        "sample_metadata": json.loads(sample.get("metadata") or "{{}}"),
    }}
    return {{"scores": {{"score": value_to_float()(score.value)}}, "metadata": metadata}}
"""

_MAKING = MAKING.replace("{", "{{").replace("}", "}}")  # escaped for use in templates

_OPENING = (
    """\
# Scores an answer with the benchmark's own scorer; needs the {packages}.
import asyncio
import importlib
import json

from inspect_ai._util.registry import registry_create
from inspect_ai.model import ChatMessageAssistant, ModelName, ModelOutput
from inspect_ai.model import ChatMessageSystem, ChatMessageUser
from inspect_ai.scorer import Target, value_to_float
from inspect_ai.solver import TaskState

SCORER = json.loads({scorer!r})
ROLES = {{"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}}
"""
    + _MAKING
)

_WITH_ANSWER = """

async def _score(sample, answer):
    stored = json.loads(sample["state"])
    output = ModelOutput.from_content("model", answer)
    state = TaskState(
        model=ModelName("none/none"),
        sample_id=sample["sample_id"],
        epoch=1,
        input=stored["input"] if isinstance(stored["input"], str) else _messages(stored["input"]),
        messages=[*_messages(stored["messages"]), output.message],
        target=Target(sample["targets"]),
        choices=sample["choices"] or None,
        output=output,
        metadata=json.loads(sample.get("metadata") or "{{}}"),
    )
    return await made(SCORER)(state, Target(sample["targets"]))
"""

_WITH_SOLVERS = """
SOLVERS = json.loads({solvers!r})


async def _score(sample, answer):
    # The solvers run again, around the answer: what they read from it, change or store is the scorer's.
    from inspect_ai.model import get_model
    from inspect_ai.model._model import active_model_context_var
    from inspect_ai.util._store import init_subtask_store

    stored = json.loads(sample["state"])
    output = ModelOutput.from_content("model", answer)
    text = isinstance(stored["input"], str)
    state = TaskState(
        model=ModelName("none/none"),
        sample_id=sample["sample_id"],
        epoch=1,
        input=stored["input"] if text else _messages(stored["input"]),
        messages=[ChatMessageUser(content=stored["input"])] if text else _messages(stored["input"]),
        target=Target(sample["targets"]),
        choices=sample["choices"] or None,
        output=ModelOutput(),
        metadata=json.loads(sample.get("metadata") or "{{}}"),
    )
    num_calls = 0

    async def generate(state, *args, **kwargs):
        nonlocal num_calls
        num_calls += 1
        if num_calls > 1:
            raise ValueError("the benchmark's solver asks the model again after this answer")
        if [[message.role, message.text] for message in state.messages] != stored["messages"]:
            raise ValueError("the benchmark's solver writes another prompt than the one that was asked")
        state.output = output
        state.messages.append(output.message)
        return state

    active_model_context_var.set(get_model("none/none"))
    init_subtask_store(state.store)
    for solver in SOLVERS:
        state = await made(solver)(state, generate)
        if state.completed:
            break
    return await made(SCORER)(state, Target(sample["targets"]))
"""

_CLOSING = """

def _messages(turns):
    return [ROLES[role](content=text) for role, text in turns]


def compute_scores(sample, solver_output):
    answer = solver_output.output.choices[0].message.content or ""
    score = asyncio.run(_score(sample, answer))
    if score is None:
        raise ValueError("the scorer gave no score")
    values = score.value if isinstance(score.value, dict) else {{"score": score.value}}
    metadata = {{
        "value": score.value,
        "answer": score.answer,
        "metadata": score.metadata,
        "sample_id": sample["sample_id"],
        "sample_metadata": json.loads(sample.get("metadata") or "{{}}"),
    }}
    to_float = value_to_float()
    return {{"scores": {{name: to_float(value) for name, value in values.items()}}, "metadata": metadata}}
"""

ANSWERED = _OPENING + _WITH_ANSWER + _CLOSING
"""Template of a scorer that calls the benchmark's scorer with the answer."""

SOLVED = _OPENING + _WITH_SOLVERS + _CLOSING
"""Template of a scorer that runs the benchmark's solvers with the answer before it calls the benchmark's
scorer."""

METRICS = (
    """\
# Metrics by Inspect's own functions; needs the packages inspect-ai and those of the benchmark.
import importlib
import json

from inspect_ai._eval.task.results import ScorerInfo, eval_results
from inspect_ai._util.registry import registry_create
from inspect_ai.scorer import SampleScore, Score{imports}

NAME, METRICS = {name!r}, json.loads({metrics!r})
SCORES_ONLY = {scores_only!r}
"""
    + _MAKING
    + """

def metrics_of(described):
    if isinstance(described, list):
        return [metrics_of(metric) for metric in described]
    if "type" in described:
        return made(described)
    return {{key: metrics_of(metrics) for key, metrics in described["by_key"].items()}}


def mean_of_trials(number, values):
    # Of several trials there is the mean only, which is what Inspect's own metrics are computed from.
    if not SCORES_ONLY:
        raise ValueError("these metrics need more of each trial than its score; run with one trial")
    value = values["score"] if list(values) == ["score"] else values
    return {{"value": value, "answer": None, "metadata": None, "sample_id": number, "sample_metadata": {{}}}}


def compute_metrics(scores):
    rows = []
    for number, score in enumerate(scores):
        kept = score.metadata
        if "value" not in kept:
            kept = mean_of_trials(number, dict(score.values))
        scored = Score(value=kept["value"], answer=kept["answer"], metadata=kept["metadata"])
        sample = SampleScore(
            score=scored, sample_id=kept["sample_id"], sample_metadata=kept["sample_metadata"], scorer=NAME
        )
        rows.append({{NAME: sample}})
    info = ScorerInfo(name=NAME, metrics=metrics_of(METRICS))
    results, _ = eval_results(len(rows), rows, {reducers}, [info], None)
    values = {{}}
    for part in results.scores:
        for name, metric in part.metrics.items():
            {named}
    return values
"""
)
