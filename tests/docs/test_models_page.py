"""Model strings call the OpenAI API that `docs/reference/models.md` and the README name."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.commands import REPOSITORY, Run
from tests.support.endpoint import Endpoint, completion


def answer(body: Any) -> tuple[int, dict[str, Any]]:
    """Answer with either API: a chat request has messages, a response request an input."""
    if "messages" in body:
        return 200, completion("Oslo")
    text = {"type": "output_text", "text": "Oslo", "annotations": []}
    message = {"type": "message", "id": "m", "status": "completed", "role": "assistant", "content": [text]}
    usage = {"input_tokens": 5, "output_tokens": 1, "total_tokens": 6}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    head = {"id": "r", "object": "response", "created_at": 1, "model": body["model"], "status": "completed"}
    tools = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return 200, {**head, **tools, "output": [message], "usage": {**usage, **details}}


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("openai-api/local/gpt-5", "/chat/completions"),
        ("openai-api/local/my-model", "/chat/completions"),
        ("openai/gpt-4.1-nano", "/chat/completions"),
        ("openai/gpt-5-mini", "/responses"),
        ("openai/o4-mini", "/responses"),
        ("openai/my-model", "/responses"),
        ("ollama/my-model", "/chat/completions"),
    ],
)
def test_model_string_calls_the_documented_api(
    aigo: Run, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, model: str, path: str
) -> None:
    endpoint.answer = answer
    for name in ("LOCAL", "OPENAI", "OLLAMA"):
        monkeypatch.setenv(f"{name}_BASE_URL", endpoint.url)
        monkeypatch.setenv(f"{name}_API_KEY", "none")

    done = aigo("run", REPOSITORY / "examples" / "capitals", "--model", model, "--num-samples", 1)

    assert done.code == 0, done.err
    assert set(endpoint.paths) == {f"/v1{path}"}
