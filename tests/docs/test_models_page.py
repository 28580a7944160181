"""Model strings call the OpenAI API that `docs/reference/models.md` and the README name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import REPOSITORY, Run
from tests.support.endpoint import Endpoint, completion

from aigo_bridge.models.connections.entity import provider_key


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


CALLED = {
    "openai-api/local/gpt-5": "/chat/completions",
    "openai-api/local/my-model": "/chat/completions",
    "openai/gpt-4.1-nano": "/chat/completions",
    "openai/gpt-5-mini": "/responses",
    "openai/o4-mini": "/responses",
    "openai/own-model": "/responses",
    "ollama/their-model": "/chat/completions",
}
"""Model string → path of the API."""


def test_model_string_calls_the_documented_api(
    aigo: Run, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    endpoint.answer = answer
    for name in ("LOCAL", "OPENAI", "OLLAMA"):
        monkeypatch.setenv(f"{name}_BASE_URL", endpoint.url)
        monkeypatch.setenv(f"{name}_API_KEY", "none")
    specifications = [
        {"key": f"s{number}", "task_key": "capitals", "model_key": provider_key(model)}
        for number, model in enumerate(CALLED)
    ]
    run = {
        "models": [{"$provider": model} for model in CALLED],
        "tasks": [{"$ref": "capitals/task.yaml"}],
        "evaluation": {
            "key": "e",
            "display_name": "E",
            "description": "",
            "task_specifications": specifications,
        },
    }
    shutil.copytree(REPOSITORY / "examples" / "capitals", tmp_path / "capitals")
    (tmp_path / "run.yaml").write_text(json.dumps(run))

    done = aigo("run", "run.yaml", "--num-samples", 1)

    assert done.code == 0, done.err
    paths = set(zip((body["model"] for body in endpoint.requests), endpoint.paths, strict=True))
    assert paths == {(model.rpartition("/")[2], f"/v1{path}") for model, path in CALLED.items()}
