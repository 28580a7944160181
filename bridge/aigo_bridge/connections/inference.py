"""Models that the author's own code calls: `run_inference(body, environment)` in worker processes."""

from __future__ import annotations

import ast
import threading
from collections.abc import Mapping
from typing import Any, Literal

from aigo_bridge.connections.endpoint import Response
from aigo_bridge.connections.failures import CallError
from aigo_bridge.errors import SnippetError
from aigo_bridge.snippets import Snippet, SnippetHost, SnippetLimits

FUNCTION = "run_inference"

MOST_WORKERS = 8
"""Calls at a time where the model names no limit; each has a worker process of its own."""


def sample_argument(source: str) -> Literal["third", "named"] | None:
    """How `run_inference` is written to be given the row: as its third argument, as `sample=`, or not at all."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == FUNCTION:
            arguments = node.args
            named = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
            if len(named) > 2:
                return "third"
            if any(argument.arg == "sample" for argument in arguments.kwonlyargs):
                return "named"
    return None


class Inference:
    """Calls the author's function. It waits for a network most of its time, so each call at a time has its own worker."""

    def __init__(
        self,
        source: str,
        label: str,
        environment: Mapping[str, Any],
        *,
        place: tuple[str, int] | None = None,
        seconds: float | None = None,
    ):
        self._snippet = Snippet(source, FUNCTION, label).at(place)
        self._environment = dict(environment)
        self._limits = SnippetLimits() if seconds is None else SnippetLimits(seconds=seconds)
        self._sample_argument = sample_argument(source)
        self._lock = threading.Lock()
        self._free: list[SnippetHost] = []

    @property
    def depends_on_sample(self) -> bool:
        """Whether the answer depends on more than what the model is asked."""
        return self._sample_argument is not None

    async def send(self, body: str, sample: Mapping[str, Any] | None) -> Response:
        """Call the function; what it returns is the response's text."""
        with self._lock:
            host = self._free.pop() if self._free else SnippetHost(self._limits)
        row = dict(sample or {})
        args = (row,) if self._sample_argument == "third" else ()
        named = {"sample": row} if self._sample_argument == "named" else {}
        try:
            text = await host.call(self._snippet, body, self._environment, *args, **named)
        except SnippetError as error:
            self._put_back(host)
            raise CallError(str(error), "invalid") from error
        # A worker whose call was given up is still busy with it; it is not used again.
        self._put_back(host)
        if not isinstance(text, str):
            raise CallError(
                self._snippet.told(f"{FUNCTION} returned a {type(text).__name__}, expected text"),
                "invalid",
                hint="return json.dumps(…)",
            )
        return Response(text, 200)

    def _put_back(self, host: SnippetHost) -> None:
        with self._lock:
            self._free.append(host)

    async def aclose(self) -> None:
        """End the workers."""
        with self._lock:
            hosts, self._free = self._free, []
        for host in hosts:
            host.close()
