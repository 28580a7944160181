"""Code for tasks that are exported as plain Inspect code. The export copies the parts that a task needs into
its file.

The module imports only the runtime modules of aigo-bridge that are also copied (see there for the rules).
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    get_model,
)
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    ScoreReducer,
    Target,
    Value,
    metric,
    score_reducer,
    scorer,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver

from aigo_bridge.exporting.runtime import (
    Compared,
    compared_text,
    metric_values,
    over_trials,
)


def samples(file: Path, name: str) -> MemoryDataset:
    """Read the samples from a JSON Lines file."""
    with file.open(encoding="utf-8") as lines:
        return MemoryDataset([Sample(**json.loads(line)) for line in lines], name=name)


async def answered(state: TaskState, generate: Generate) -> TaskState:
    """Call the model; without an answer the sample fails and is not scored."""
    if "config" in state.metadata:
        config = GenerateConfig.model_validate(state.metadata["config"])
        state.output = await get_model().generate(state.messages, config=config)
        state.messages.append(state.output.message)
    else:
        state = await generate(state, tool_calls="none")
    if state.output.error and not state.output.completion:
        raise RuntimeError(f"the model failed: {state.output.error}")
    return state


@solver
def recorded() -> Solver:
    """Return a solver that uses the answer in the sample instead of a model."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        answer = state.metadata["answer"]
        state.output = ModelOutput.from_content(str(state.model), answer)
        state.messages.append(state.output.message)
        return state

    return solve


@solver
def ask() -> Solver:
    """Return a solver that sends one question and stores the answer."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state = await answered(state, generate)
        state.store.set("solved", True)
        return state

    return solve


ROLES = {
    "system": ChatMessageSystem,
    "user": ChatMessageUser,
    "assistant": ChatMessageAssistant,
}


def chat(turn: list[dict[str, str]]) -> list[ChatMessage]:
    """Return the messages of one turn."""
    return [ROLES[message["role"]](content=message["content"]) for message in turn]


@solver
def written_conversation() -> Solver:
    """Return a solver that gets one answer for each turn of a fixed conversation."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state = await answered(state, generate)
        *turns, closing = state.metadata["turns"]
        for turn in turns:
            state.messages += chat(turn)
            state = await answered(state, generate)
        state.messages += chat(closing)
        state.store.set("solved", True)
        return state

    return solve


async def other_model(question: dict[str, Any], state: TaskState) -> str:
    """Append the answer of another model, without its prompt, and return it."""
    conversation = list(state.messages) if question["with_conversation"] else []
    model = get_model(role=question["role"], required=True)
    output = await model.generate(conversation + chat(question["messages"]))
    text = output.message.text
    if output.message.tool_calls and not text:
        raise RuntimeError(f"{question['role']} returned no text to append")
    state.messages += chat([{"role": question["says_as"], "content": text}])
    return text


async def play_step(
    step: dict[str, Any],
    state: TaskState,
    generate: Generate,
    answers: list[ModelOutput],
) -> dict[str, Any] | None:
    """Run a step; return its end condition if the added text meets it."""
    if "loop" in step:
        await play_loop(step, state, generate, answers)
        return None
    if "say" in step:
        text = step["say"]["content"]
        state.messages += chat([step["say"]])
    elif "ask" in step:
        text = await other_model(step["ask"], state)
    else:
        await answered(state, generate)
        answers.append(state.output)
        text = state.output.message.text
    stop: dict[str, Any] | None = step.get("stop")
    return stop if stop is not None and stop["includes"] in text else None


async def play_loop(
    loop: dict[str, Any],
    state: TaskState,
    generate: Generate,
    answers: list[ModelOutput],
) -> None:
    """Run a loop; fail at the last iteration if the loop needs an end condition."""
    for _ in range(loop["times"]):
        if await play(loop["loop"], state, generate, answers):
            return
    if loop["must_stop"]:
        raise RuntimeError("the loop reached its limit without meeting terminate_if")


async def play(
    steps: list[dict[str, Any]],
    state: TaskState,
    generate: Generate,
    answers: list[ModelOutput],
) -> bool:
    """Run steps until an end condition is met, and undo them unless it keeps them."""
    num_messages, num_answers = len(state.messages), len(answers)
    for step in steps:
        stop = await play_step(step, state, generate, answers)
        if stop is not None:
            if not stop["keep"]:
                del state.messages[num_messages:], answers[num_answers:]
            return True
    return False


@solver
def conversation(needs_answer: bool) -> Solver:
    """Return a solver that runs the steps of a sample until one ends them."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.messages = []
        answers: list[ModelOutput] = []
        for step in state.metadata["steps"]:
            # Only the step that ends the conversation is undone, not earlier steps.
            if await play([step], state, generate, answers):
                break
        if needs_answer and not answers:
            raise RuntimeError("the conversation ended without an answer to score")
        state.output = answers[-1] if answers else ModelOutput()
        state.store.set("solved", True)
        return state

    return solve


def metrics(about: dict[str, Any]) -> Metric:
    """Return the metrics of a scorer."""

    @metric(name=about["key"])
    def named() -> Metric:
        def compute(scores: list[SampleScore]) -> Value:
            included = [
                scored_sample.score.as_dict()
                for scored_sample in scores
                if not (scored_sample.sample_metadata or {}).get("excluded")
            ]
            return metric_values(included, about["metrics"])

        return compute

    computed: Metric = named()
    return computed


def scored(compare: Callable[..., Compared], about: dict[str, Any]) -> Scorer:
    """Return a scorer with its metrics."""

    @scorer(name=about["key"], metrics=[metrics(about)])
    def named() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            if about["asks_model"] and not state.store.get("solved"):
                # The sample exceeded a limit and is not part of any metric.
                return Score(value=math.nan, reason="the solver did not finish")
            expected = {"ground_truth": target.text}
            expected |= state.metadata.get("expected", {}).get(about["key"], {})
            answer = "" if "value" in expected else state.output.choices[0].message.text
            answer = compared_text(answer, expected, about["methods"])
            values, metadata = compare(answer, expected, **about["settings"])
            return Score(value=values, answer=answer, metadata=metadata)

        return score

    return named()


def trials(aggregators: list[dict[str, Any]]) -> ScoreReducer:
    """Return a reducer that combines the trials of a sample without failed ones."""

    @score_reducer(name="trials")
    def named() -> ScoreReducer:
        def reduce(scores: list[Score]) -> Score:
            valid = [each.as_dict() for each in scores if isinstance(each.value, dict)]
            return Score(value=over_trials(valid, aggregators)) if valid else scores[0]

        return reduce

    return named()
