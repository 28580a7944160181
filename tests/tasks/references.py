"""Scores and requests of inspect-evals and lighteval for the same rows and answers."""

from __future__ import annotations

import asyncio
import importlib
import re
import signal
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import TASKS
from tests.tasks.published import NoAnswerError, Score

import aigo_bridge

SETTINGS = ("temperature", "top_p", "max_tokens", "stop_seqs", "seed")
"""Generation settings that are compared."""


@dataclass(frozen=True)
class Request:
    """Request to a model."""

    messages: tuple[tuple[str, str], ...]
    """Role and text of each."""
    settings: tuple[tuple[str, Any], ...]
    """Those of `SETTINGS` that were set."""


def within(timeout_seconds: float) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Limit processor time like lighteval's `timeout`, independent of the machine load; exceeding it raises `NoAnswerError`
    instead of scoring 0.
    """

    def limited(function: Callable[..., Any]) -> Callable[..., Any]:
        def stop(*_: object) -> None:
            raise NoAnswerError

        def call(*args: Any, **kwargs: Any) -> Any:
            previous = signal.signal(signal.SIGPROF, stop)
            signal.setitimer(signal.ITIMER_PROF, timeout_seconds, 0.5)
            try:
                return function(*args, **kwargs)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
                signal.signal(signal.SIGPROF, previous)

        return call

    return limited


def choice_score(
    num_choices: Callable[[dict[str, Any]], int], target: Callable[[dict[str, Any]], str]
) -> Score:
    """Return the score of Inspect's `multiple_choice` and `choice`: True if accuracy counts it as 1."""
    from inspect_ai.model import ChatMessageUser, ModelName, ModelOutput
    from inspect_ai.scorer import Target, choice, value_to_float
    from inspect_ai.solver import TaskState, multiple_choice

    solve, score, as_float = multiple_choice(), choice(), value_to_float()

    async def scored(row: dict[str, Any], answer: str) -> bool:
        state = TaskState(
            model=ModelName("mockllm/model"),
            sample_id=1,
            epoch=1,
            input="?",
            messages=[ChatMessageUser(content="?")],
            target=Target(target(row)),
            choices=[f"choice {number}" for number in range(num_choices(row))],
        )

        async def generate(state: TaskState, **settings: Any) -> TaskState:
            state.output = ModelOutput.from_content("mockllm/model", answer)
            return state

        state = await solve(state, generate)  # type: ignore[arg-type]  # the protocol's keywords do not matter
        result = await score(state, state.target)
        assert result is not None
        return as_float(result.value) == 1.0

    return lambda row, answer: asyncio.run(scored(row, answer))


def scorer_score(score: Any, target: Callable[[dict[str, Any]], str]) -> Score:
    """Return the value of an Inspect scorer as accuracy counts it."""
    from inspect_ai.model import ModelName, ModelOutput
    from inspect_ai.scorer import Target, value_to_float
    from inspect_ai.solver import TaskState

    async def scored(row: dict[str, Any], answer: str) -> float:
        state = TaskState(
            model=ModelName("mockllm/model"),
            sample_id=1,
            epoch=1,
            input="?",
            messages=[],
            target=Target(target(row)),
        )
        state.output = ModelOutput.from_content("mockllm/model", answer)
        result = await score(state, state.target)
        return value_to_float()(result.value)

    return lambda row, answer: asyncio.run(scored(row, answer))


def exact_match(gold: Callable[[dict[str, Any]], list[str]]) -> Score:
    """Return whether lighteval's `exact_match` is 1."""
    from lighteval.metrics.metrics import Metrics
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.requests import Doc

    compute = Metrics.exact_match.value.sample_level_fn.compute

    def score(row: dict[str, Any], answer: str) -> bool:
        golds = gold(row)
        doc = Doc(query="?", choices=golds, gold_index=list(range(len(golds))))
        return bool(compute(doc=doc, model_response=ModelResponse(text=[answer])) == 1)

    return score


def lighteval_request(module: str, name: str, row: dict[str, Any]) -> Request:
    """Return lighteval's zero-shot request for a row; its servers are called at temperature 0."""
    from lighteval.tasks.prompt_manager import PromptManager

    config = getattr(importlib.import_module(f"lighteval.tasks.tasks.{module}"), name)
    messages = PromptManager(use_chat_template=True).prepare_prompt_api(config.prompt_function(row, name))
    settings: list[tuple[str, Any]] = [("temperature", 0)]
    if config.generation_size > 0:
        settings.append(("max_tokens", config.generation_size))
    settings.append(("stop_seqs", list(config.stop_sequence)))
    return Request(tuple((message["role"], message["content"]) for message in messages), tuple(settings))


def published_task(
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    name: str,
    rows: Sequence[dict[str, Any]],
    loader: str = "hf_dataset",
    **arguments: Any,
) -> Any:
    """Return an inspect-evals task with given rows in their order, without its dataset loader."""
    from inspect_ai.dataset import MemoryDataset

    with warnings.catch_warnings():
        # Its metadata is written for an older pydantic.
        warnings.simplefilter("ignore")
        source = importlib.import_module(f"inspect_evals.{module}")

    def load(*_: Any, **given: Any) -> MemoryDataset:
        convert = given.get("sample_fields") or given["record_to_sample"]
        samples = [convert(row) for row in rows]
        return MemoryDataset(
            [sample.model_copy(update={"id": number}) for number, sample in enumerate(samples)]
        )

    monkeypatch.setattr(source, loader, load)
    return getattr(source, name)(**arguments)


def shipped_task(name: str, rows: Sequence[dict[str, Any]], **config: Any) -> Any:
    """Return a shipped task with given rows as an Inspect task."""
    plan = aigo_bridge.plan_task(
        TASKS / name,
        datasets={f"{name}-sample": list(rows)},
        config=config,
    )
    return aigo_bridge.translate(plan)


def numbered(rows: Sequence[dict[str, Any]], column: str) -> list[dict[str, Any]]:
    """Return the rows, each with its number in a text of the prompt."""
    return [{**row, column: f"{row[column]} §{number}§"} for number, row in enumerate(rows)]


def exchanges(task: Any, answers: Sequence[str], logs: Path) -> list[tuple[tuple[Request, ...], float]]:
    """Return the requests and score of each sample; the number in a request selects the answer."""
    import inspect_ai
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import value_to_float

    requests: dict[int, list[Request]] = {number: [] for number in range(len(answers))}

    def reply(messages: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        settings = {name: getattr(config, name) for name in SETTINGS}
        number = int(re.findall(r"§(\d+)§", messages[-1].text)[-1])
        requests[number].append(
            Request(
                tuple((message.role, message.text) for message in messages),
                tuple((name, value) for name, value in settings.items() if value is not None),
            )
        )
        output = ModelOutput.from_content("mockllm/model", answers[number])
        # Otherwise the mock counts tokens, with a table that it downloads.
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    (log,) = inspect_ai.eval(
        task,
        model=get_model("mockllm/model", custom_outputs=reply, memoize=False),
        log_dir=str(logs),
        display="none",
    )
    assert log.status == "success", log.error and log.error.message
    as_float = value_to_float()
    scores = [next(iter((sample.scores or {}).values())).value for sample in log.samples or []]
    return [
        (
            tuple(requests[number]),
            as_float(next(iter(score.values())) if isinstance(score, dict) else score),
        )
        for number, score in enumerate(scores)
    ]
