"""Calls of Inspect providers by processes that share a model: a retry pause applies to all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from inspect_ai.model import ChatMessageUser, GenerateConfig, get_model
from tests.support.endpoint import Endpoint, Raw, completion

from aigo_bridge.models.gate import gated
from aigo_inspect.models.calls import keep_answers


class Told:
    """Gate that lets all calls pass and records pauses."""

    def __init__(self) -> None:
        self.pauses: list[tuple[str, float]] = []
        self.places: list[str] = []

    async def enter(self, model: str, most: int | None) -> object:
        self.places.append(model)
        return None

    def leave(self, model: str, place: object) -> None:
        pass

    def pause(self, model: str, seconds: float) -> None:
        self.pauses.append((model, seconds))

    async def reserve(self, name: str, per_minute: int) -> float:
        return 0.0


@pytest.fixture
def told() -> Iterator[Told]:
    gate = Told()
    with gated(gate):
        yield gate


def test_a_retry_pause_of_one_client_applies_to_all(
    endpoint: Endpoint, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The OpenAI client waits and retries without notice."""
    monkeypatch.setenv("LOCAL_BASE_URL", endpoint.url)
    monkeypatch.setenv("LOCAL_API_KEY", "none")
    busy = iter([Raw((b"{}",), status=429, headers={"Retry-After": "0.05"})])
    endpoint.answer = lambda _: next(busy, None) or (200, completion("yes"))
    model = get_model("openai-api/local/m", memoize=False)
    keep_answers(model.api)

    async def ask() -> Any:
        return await model.generate([ChatMessageUser(content="?")], config=GenerateConfig(max_retries=0))

    output = anyio.run(ask)

    assert output.completion == "yes"
    assert len(endpoint.requests) == 2
    assert told.places == ["local/m"]
    assert told.pauses == [("local/m", 0.05)]
