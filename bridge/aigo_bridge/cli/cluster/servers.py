"""The servers of a local model, as `run` is told of them: given by address, or started on the cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.models.balancing import Servers, balanced

if TYPE_CHECKING:
    from aigo_bridge.cli.run_options import RunOptions
    from aigo_scale.cluster.replicas import ReplicaOrder

PROVIDERS = ("openai-api", "openai", "vllm", "sglang", "ollama")
"""Providers of models that take an address by `<NAME>_BASE_URL`, on all engines."""

NO_KEY = "not-needed"
"""Key of servers that ask for none: clients want one."""


@dataclass(frozen=True)
class ModelServers:
    """The servers of a run's model, behind one address."""

    servers: Servers
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of the environment: that address, and what a client needs besides."""
    order: ReplicaOrder | None = None
    """What is to be started."""


@contextmanager
def model_servers(options: RunOptions) -> Iterator[ModelServers | None]:
    """In this block the environment names one address for the servers of the model; `None`: it has
    none of ours.

    Raises:
        UsageError: what was asked for makes no sense; all problems at once.
    """
    urls = [url.strip() for text in options.model_url or () for url in text.split(",")]
    refuse_servers(options, urls)
    if not urls and options.model_replicas is None:
        yield None
        return
    service, name = _service_of(options.model or "")
    host = _host(options)
    order = None if options.model_replicas is None else _order(options, name)
    servers = Servers(urls)
    with balanced(servers, host, is_direct=order is not None) as address:
        variables = {f"{service}_BASE_URL": address}
        if not os.environ.get(f"{service}_API_KEY"):
            variables[f"{service}_API_KEY"] = NO_KEY
        for past in ("NO_PROXY", "no_proxy"):
            variables[past] = ",".join(filter(None, [os.environ.get(past), host]))
        earlier = {variable: os.environ.get(variable) for variable in variables}
        os.environ.update(variables)
        try:
            yield ModelServers(servers, variables, order)
        finally:
            for variable, value in earlier.items():
                if value is None:
                    os.environ.pop(variable, None)
                else:
                    os.environ[variable] = value


def refuse_servers(options: RunOptions, urls: list[str]) -> None:
    """Refuse what makes no sense of servers.

    Raises:
        UsageError: every problem.
    """
    problems = []
    if options.model_replicas is not None and urls:
        problems.append("--model-url, --model-replicas: use only one of them")
    unused = {"--gpus-per-replica": options.gpus_per_replica, "--replica-command": options.replica_command}
    if options.model_replicas is None:
        problems += [
            f"{name}: only with --model-replicas" for name, value in unused.items() if value is not None
        ]
    problems += [
        (f"--model-url: found {_shown(url)!r}, expected a server URL, e.g. http://gpu-1:8000/v1")
        for url in urls
        if not _is_address(url)
    ]
    if urls or options.model_replicas is not None:
        option = "--model-url" if urls else "--model-replicas"
        model = options.model
        if model is None or _service_of(model) == ("", "") or "," in model:
            problems.append(
                f"{option}: found --model {model or '(none)'}, expected openai-api/SERVICE/MODEL "
                "or vllm/MODEL, where MODEL is the model name on the server"
            )
    if problems:
        raise UsageError("\n".join(problems), code=Code.OPTIONS_APART)


def _shown(url: str) -> str:
    """An address without what may be a password."""
    return url.rpartition("@")[2]


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False


def _service_of(model: str) -> tuple[str, str]:
    """Beginning of the variables that say where a model is, and what its servers call it; `""`: none do."""
    provider, _, name = model.partition("/")
    if provider not in PROVIDERS:
        return "", ""
    service = provider
    if provider == "openai-api":
        service, _, name = name.partition("/")
    return (service.upper().replace("-", "_"), name) if service and name else ("", "")


def _host(options: RunOptions) -> str:
    """The address of this machine that those reach who ask the model."""
    if options.on is None or options.ray_address is None:
        return "127.0.0.1"
    from aigo_bridge.process.extras import package

    address: str = package("ray", "--on ray (extra 'ray')", "ray").util.get_node_ip_address()
    return address


def _order(options: RunOptions, name: str) -> ReplicaOrder:
    from aigo_scale.cluster.replicas import ReplicaOrder

    assert options.model_replicas is not None
    order = ReplicaOrder(
        name,
        options.model_replicas,
        1 if options.gpus_per_replica is None else options.gpus_per_replica,
        options.replica_command,
        None if options.ray_address is not None else "127.0.0.1",
    )
    order.words("HOST", 0)  # what is wrong with the command is told before anything begins
    return order
