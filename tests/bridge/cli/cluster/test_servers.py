"""What is said of a model's servers, and what makes no sense."""

from __future__ import annotations

import os

import httpx
import pytest
from tests.support.endpoint import Endpoint, completion

from aigo_bridge.cli.cluster.servers import model_servers
from aigo_bridge.cli.run_options import RunOptions
from aigo_bridge.errors import UsageError


@pytest.mark.parametrize(
    ("options", "problems"),
    [
        (
            {"model": "scripted/a", "model_url": ["ftp://h/v1,gpu-1:8000", "http://u:secret-word@:9"]},
            [
                "--model-url: found 'ftp://h/v1'",
                "--model-url: found 'gpu-1:8000'",
                "--model-url: found ':9'",
                "--model-url: found --model scripted/a, expected openai-api/SERVICE/MODEL",
            ],
        ),
        ({"model_replicas": 2}, ["--model-replicas: found --model (none)"]),
        ({"model": "openai-api/local", "model_replicas": 2}, ["found --model openai-api/local"]),
        (
            {"model": "vllm/m", "model_replicas": 2, "model_url": ["http://h/v1"]},
            ["--model-url, --model-replicas: use only one of them"],
        ),
        (
            {"gpus_per_replica": 0, "replica_command": "x {port}"},
            [
                "--gpus-per-replica: only with --model-replicas",
                "--replica-command: only with --model-replicas",
            ],
        ),
        ({"model": "vllm/m", "model_replicas": 1, "replica_command": "serve"}, ["with {port} in it"]),
    ],
)
def test_what_makes_no_sense_is_told_at_once(options: dict[str, object], problems: list[str]) -> None:
    with (
        pytest.raises(UsageError) as error,
        model_servers(RunOptions(task="t", **options)),  # type: ignore[arg-type]  # a table of options
    ):
        raise AssertionError
    text = str(error.value)
    assert [problem for problem in problems if problem not in text] == []
    assert "secret-word" not in text
    assert len(text.splitlines()) == len(problems)


@pytest.mark.parametrize(
    ("model", "service"),
    [("openai-api/my-gpu/org/m", "MY_GPU"), ("vllm/org/m", "VLLM"), ("openai/m", "OPENAI")],
)
def test_the_environment_names_one_address_for_as_long_as_the_run_lasts(
    model: str, service: str, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.answer = lambda _: (200, completion("from the server"))
    monkeypatch.delenv(f"{service}_API_KEY", raising=False)
    monkeypatch.setenv(f"{service}_BASE_URL", "http://elsewhere/v1")
    monkeypatch.setenv("NO_PROXY", "inside")
    before = dict(os.environ)
    with model_servers(RunOptions(task="t", model=model, model_url=[endpoint.url])) as servers:
        assert servers is not None
        assert set(servers.variables) == {f"{service}_BASE_URL", f"{service}_API_KEY", "NO_PROXY", "no_proxy"}
        assert os.environ["NO_PROXY"] == "inside,127.0.0.1"
        address = os.environ[f"{service}_BASE_URL"]
        assert "from the server" in httpx.post(f"{address}/chat/completions", json={}).text
    assert dict(os.environ) == before
    with model_servers(RunOptions(task="t", model=model)) as none:
        assert none is None


def test_a_key_of_the_user_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "of the user")
    with model_servers(RunOptions(task="t", model="vllm/m", model_replicas=3)) as servers:
        assert servers is not None
        assert servers.order is not None
        assert (servers.order.model, servers.order.count, servers.order.gpus) == ("m", 3, 1)
        assert "VLLM_API_KEY" not in servers.variables
