"""Requests of built-in lighteval tasks to a server equal those of the lighteval clients, over real HTTP."""

from __future__ import annotations

import importlib.util
import json
import types
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.lighteval.benchmarks.conftest import Splits, native, rows_of, run
from tests.support.endpoint import Endpoint, completion

from aigo_bridge.errors import UsageError

DataDir = Callable[[Splits], Path]

DEFAULTS: Mapping[str, Any] = {
    "n": 1,
    "stream": False,
    "response_format": {"type": "text"},
    "logprobs": False,
}
"""Default values of Chat Completions that clients send explicitly."""


def plain(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request without options that have no effect; a repeated length is removed."""
    request = {name: value for name, value in body.items() if DEFAULTS.get(name) != value}
    limit = request.pop("max_completion_tokens", None)
    return request if limit is None else {**request, "max_tokens": limit}


def in_order(bodies: list[Any]) -> list[dict[str, Any]]:
    return sorted(map(plain, bodies), key=lambda body: json.dumps(body["messages"]))


class Completions:
    """Replacement for the `completion` function of litellm, which is not installed: all values except `None`
    are sent (compared manually with litellm 1.106)."""

    drop_params = verbose = False

    def completion(self, **arguments: Any) -> Any:
        url = f"{arguments.pop('base_url')}/chat/completions"
        unsent = ("api_key", "caching", "timeout")
        body = {name: value for name, value in arguments.items() if value is not None and name not in unsent}
        body["model"] = body["model"].partition("/")[2]
        header = {"Content-Type": "application/json"}
        request = urllib.request.Request(url, json.dumps(body).encode(), header)
        with urllib.request.urlopen(request) as response:
            answer = json.loads(response.read())
        choices = [
            types.SimpleNamespace(message=types.SimpleNamespace(content=choice["message"]["content"]))
            for choice in answer["choices"]
        ]
        return types.SimpleNamespace(choices=choices)


def litellm_model(url: str, generation: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the litellm client of lighteval, from its source file."""
    spec = importlib.util.find_spec("lighteval.models.endpoints.litellm_model")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    installed = importlib.util.find_spec("litellm") is not None
    with monkeypatch.context() as patch:
        if not installed:
            patch.setattr("lighteval.utils.imports.requires", lambda *_: lambda thing: thing)
        spec.loader.exec_module(module)
    names: dict[str, Any] = {"SampleCache": lambda _: types.SimpleNamespace(_init_registry=lambda _: None)}
    if not installed:
        names |= {"litellm": Completions(), "supports_reasoning": lambda _: False, "encode": None}
    for name, value in names.items():
        setattr(module, name, value)
    parameters = generation_parameters(generation)
    config = module.LiteLLMModelConfig(
        model_name="openai/local",
        base_url=url,
        api_key="none",
        max_model_length=4096,
        generation_parameters=parameters,
    )
    model = module.LiteLLMClient(config)
    model._cache = types.SimpleNamespace(_init_registry=lambda _: None)
    # The undecorated method, without the cache.
    model.greedy_until = types.MethodType(type(model).greedy_until.__wrapped__, model)
    if installed:
        module.litellm.cache = None
    return model


def generation_parameters(values: Mapping[str, Any]) -> Any:
    from lighteval.models.model_input import GenerationParameters

    return GenerationParameters(**values)


def providers_model(url: str, generation: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the Hugging Face provider client of lighteval, with a local server as the provider."""
    from lighteval.models.endpoints import inference_providers_model as module

    tokenizers = types.SimpleNamespace(from_pretrained=lambda _: None)
    monkeypatch.setattr(module, "AutoTokenizer", tokenizers)
    monkeypatch.setattr(module, "SampleCache", lambda _: None)
    monkeypatch.setenv("HF_TOKEN", "none")
    config = module.InferenceProvidersModelConfig(
        model_name=url, provider="hf-inference", generation_parameters=generation_parameters(generation)
    )
    model = module.InferenceProvidersClient(config)
    model._cache = types.SimpleNamespace(_init_registry=lambda _: None)
    model.greedy_until = types.MethodType(type(model).greedy_until.__wrapped__, model)
    return model


def native_requests(task: str, splits: Splits, model: Any, server: Endpoint) -> list[dict[str, Any]]:
    server.requests.clear()
    native(task, splits, model)
    return in_order(list(server.requests))


def own_requests(
    task: str, data: Path, out: Path, model: str, server: Endpoint
) -> tuple[list[dict[str, Any]], Any]:
    server.requests.clear()
    (outcome,) = run(task, out, model, data)
    assert outcome.num_failed == 0, outcome.first_errors
    assert outcome.result is not None
    return in_order(list(server.requests)), json.loads(outcome.result.read_text("utf-8"))


@pytest.fixture
def server(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    endpoint.answer = lambda _: (200, completion("The answer is 18"))
    monkeypatch.setenv("LOCAL_BASE_URL", endpoint.url)
    monkeypatch.setenv("LOCAL_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    return endpoint


EVERYTHING: Mapping[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "seed": 3,
    "frequency_penalty": -0.25 + 0.5,
    "repetition_penalty": 1.1,
    "max_new_tokens": 7,
    "stop_tokens": ["x", "y"],
}


@pytest.mark.parametrize(
    ("settings", "generation"),
    [
        ("", {}),
        (",temperature=0.7,top_p=0.9,seed=1", {"temperature": 0.7, "top_p": 0.9, "seed": 1}),
        (",max_new_tokens=7", {"max_new_tokens": 7}),
        (",max_tokens=7", {"max_new_tokens": 7}),
        (",generation_parameters=" + json.dumps(EVERYTHING), EVERYTHING),
        (
            ",".join(["", *(f"{name}={json.dumps(value)}" for name, value in EVERYTHING.items())]),
            EVERYTHING,
        ),
    ],
)
@pytest.mark.parametrize("task", ["gsm8k", "mmlu:abstract_algebra"])
def test_requests_match_the_lighteval_client(
    task: str,
    settings: str,
    generation: Mapping[str, Any],
    tmp_path: Path,
    data_dir: DataDir,
    server: Endpoint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    splits = rows_of(task)
    expected = native_requests(task, splits, litellm_model(server.url, generation, monkeypatch), server)
    model = f"openai-api/local/local{settings}"

    requests, log = own_requests(task, data_dir(splits), tmp_path / "out", model, server)

    assert requests == expected
    assert all(request["temperature"] == generation.get("temperature", 0) for request in requests)
    sent = [
        json.loads(trial["solver"]["output"]["direct_ios"][0]["direct_input"]["body"])
        for sample in log["evidence"]["samples"]
        for trial in sample["trials"]
    ]
    assert in_order(sent) == requests
    recorded = log["specification"]["config"]["lighteval"]["config_general"]["model_config"]
    assert {
        name: value for name, value in recorded["generation_parameters"].items() if value is not None
    } == {"temperature": 0, **generation}
    assert log["specification"]["evaluated_entity"]["display_name"] == model


def test_requests_match_the_lighteval_provider_client(
    tmp_path: Path, data_dir: DataDir, server: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    generation = {"top_p": 0.9, "presence_penalty": 0.5, "seed": 2}
    splits = rows_of("gsm8k")
    expected = native_requests("gsm8k", splits, providers_model(server.url, generation, monkeypatch), server)
    settings = ",".join(f"{name}={value}" for name, value in generation.items())

    requests, _ = own_requests(
        "gsm8k", data_dir(splits), tmp_path / "out", f"openai-api/local/x,{settings}", server
    )

    # This client does not send the length and stop sequences of a document, and identifies servers by URL.
    unsent = ("max_tokens", "stop", "model")
    assert [{name: value for name, value in body.items() if name not in unsent} for body in requests] == [
        {name: value for name, value in body.items() if name != "model"} for body in expected
    ]
    assert all(request["temperature"] == 0 for request in requests)


def test_no_temperature_is_sent_unless_supported(tmp_path: Path, data_dir: DataDir, server: Endpoint) -> None:
    data = data_dir(rows_of("gsm8k"))
    left, log = own_requests("gsm8k", data, tmp_path / "a", "openai/gpt-x,temperature=none", server)
    assert all("temperature" not in request for request in left)
    recorded = log["specification"]["config"]["lighteval"]["config_general"]["model_config"]
    assert recorded["generation_parameters"]["temperature"] is None
    own_requests("gsm8k", data, tmp_path / "b", "openai/o3-mini", server)
    for body in server.requests:
        assert "temperature" not in body
        assert "max_tokens" not in body
        assert body["max_completion_tokens"] == 256


def test_several_answers_at_temperature_0_are_refused_as_in_lighteval(
    tmp_path: Path, data_dir: DataDir, server: Endpoint
) -> None:
    data = data_dir(rows_of("math_500"))
    with pytest.raises(UsageError, match=r"needs 2 answers .* openai/gpt-x,temperature=0\.7"):
        run("math_500@k=1@n=2", tmp_path / "out", "openai/gpt-x", data)
    assert not server.requests
    (outcome,) = run("math_500@k=1@n=2", tmp_path / "out", "openai/gpt-x,temperature=1", data)
    assert outcome.status == "success"
    assert len(server.requests) == 2 * outcome.num_samples
