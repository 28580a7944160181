"""Servers of a local model as actors of Ray: started, waited for, started again, and ended with the run."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from aigo_bridge.codes import Code
from aigo_bridge.errors import EngineError, UsageError
from aigo_bridge.models.balancing import Servers
from aigo_bridge.redaction.secrets import learn_environment, redact

COMMAND = "vllm serve {model} --host {host} --port {port}"
"""What starts a server where nobody says otherwise."""

START_SECONDS = 3600.0
"""That a server may take until it answers: weights are loaded, and perhaps fetched."""

LOOK_SECONDS = 0.5
"""Between two looks at a server."""

MOST_ENDS = 3
"""Times in a row that a server ends before it has answered for `STEADY_SECONDS`; then it is given up."""

STEADY_SECONDS = 60.0

LAST_LINES = 20
"""Of what a server prints, that are told when it fails."""

LONGEST_LINE = 500


@dataclass(frozen=True)
class ReplicaOrder:
    """Which servers are wanted."""

    model: str
    """As the server knows it."""
    count: int
    gpus: int
    """Of each; 0: it needs none."""
    command: str | None = None
    """With `{model}`, `{host}`, `{port}` and `{gpus}` in it; `None`: vLLM."""
    host: str | None = None
    """Where servers listen; `None`: at the address of their node."""

    def words(self, host: str, port: int) -> list[str]:
        """The command of one server.

        Raises:
            UsageError: the command cannot be read, or has no place for the port.
        """
        text = self.command or (COMMAND + (" --tensor-parallel-size {gpus}" if self.gpus > 1 else ""))
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise UsageError(f"--replica-command: {text!r}: {error}", code=Code.WRONG_OPTION) from error
        if "{port}" not in text or not words:
            raise UsageError(
                f"--replica-command: found {text!r}, expected a command with {{port}} in it, such as"
                f" {COMMAND!r}",
                code=Code.WRONG_OPTION,
            )
        values = {"{model}": self.model, "{host}": host, "{port}": str(port), "{gpus}": str(self.gpus)}
        return [_filled(word, values) for word in words]


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word


@dataclass(frozen=True)
class ReplicaState:
    """How a server is."""

    url: str | None = None
    """Where it answers; `None`: it does not."""
    problem: str | None = None
    """Why it is given up."""
    starts: int = 0


class Replica:
    """One server, in a process of its own; started again when it ends.

    Args:
        order: what is wanted.
        cwd: folder that it stands in.
    """

    def __init__(self, order: ReplicaOrder, cwd: str) -> None:
        self._order, self._cwd = order, cwd
        self._state = ReplicaState()
        self._lines: deque[str] = deque(maxlen=LAST_LINES)
        self._process: subprocess.Popen[str] | None = None
        self._is_stopped = threading.Event()

    def begin(self, environment: Mapping[str, str]) -> None:
        """Start it.

        Args:
            environment: variables of the driver that hold secrets, such as `HF_TOKEN`: arguments of a call,
                which Ray writes nowhere.
        """
        os.environ.update(environment)
        learn_environment()
        threading.Thread(target=self._tend, daemon=True).start()

    def state(self) -> ReplicaState:
        """How it is now."""
        return self._state

    def stop(self) -> None:
        """End it; it also ends with the actor's process."""
        self._is_stopped.set()
        process = self._process
        if process is not None and process.stdin is not None:
            process.stdin.close()

    def _tend(self) -> None:
        ends, starts = 0, 0
        while ends < MOST_ENDS and not self._is_stopped.is_set():
            starts += 1
            self._state = ReplicaState(starts=starts)
            try:
                seconds, code = self._run(starts)
            except Exception as error:  # noqa: BLE001  # told, as whatever else a server cannot do
                self._state = ReplicaState(problem=redact(f"it cannot be started: {error}"), starts=starts)
                return
            if seconds is None and starts == 1:
                break  # what does not even begin is a mistake of the command, and told at once
            ends = 1 if seconds is not None and seconds >= STEADY_SECONDS else ends + 1
        if self._is_stopped.is_set():
            self._state = ReplicaState(starts=starts)
            return
        ended = "it did not answer in time" if code is None else f"it ended with code {code}"
        lines = "\n".join(f"  {line}" for line in self._lines) or "  (nothing)"
        self._state = ReplicaState(problem=redact(f"{ended}; its last lines:\n{lines}"), starts=starts)

    def _run(self, starts: int) -> tuple[float | None, int | None]:
        """Seconds that it has answered, `None`: never; and its exit code, `None`: it began too late."""
        host = self._order.host or _address()
        port = _free_port(host)
        self._lines.clear()
        process = subprocess.Popen(
            [sys.executable, "-m", "aigo_scale.cluster.tending", *self._order.words(host, port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self._cwd,
            env={**os.environ, "VLLM_NO_USAGE_STATS": "1", "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
            text=True,
            errors="replace",
        )
        self._process = process
        reader = threading.Thread(target=self._read, args=(process,), daemon=True)
        reader.start()
        try:
            shown = f"[{host}]" if ":" in host else host
            url = f"http://{shown}:{port}/v1"
            if not _is_answering(process, url):
                return None, process.poll()
            began = time.monotonic()
            self._state = ReplicaState(url=url, starts=starts)
            code = process.wait()
            return time.monotonic() - began, code
        finally:
            if process.stdin is not None:
                process.stdin.close()
            process.wait()
            reader.join(1)
            if process.stdout is not None and not reader.is_alive():
                process.stdout.close()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._lines.append(line.rstrip()[:LONGEST_LINE])


def _address() -> str:
    import ray

    address: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]  # Ray has no types for it
    return address


def _free_port(host: str) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as place:
        place.bind((host, 0))
        port: int = place.getsockname()[1]
    return port


def _is_answering(process: subprocess.Popen[str], url: str) -> bool:
    """Wait until a server answers; `False`: it has ended, or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    with httpx.Client(timeout=5, trust_env=False) as client:
        while process.poll() is None and time.monotonic() < deadline:
            with suppress(httpx.HTTPError):
                if client.get(f"{url}/models").status_code == httpx.codes.OK:
                    return True
            time.sleep(LOOK_SECONDS)
    return False


@dataclass
class Replicas:
    """The servers of a run, as the driver sees them.

    Args:
        ray: the package, connected.
        order: what is wanted.
        servers: told where they answer.
        environment: variables that hold secrets.
        on_note: told of servers that are lost.
    """

    ray: Any
    order: ReplicaOrder
    servers: Servers
    environment: Mapping[str, str]
    on_note: Callable[[str], None] = lambda _: None
    _actors: list[Any] = field(default_factory=list)
    _promises: list[Any] = field(default_factory=list)
    _states: list[ReplicaState] = field(default_factory=list)

    def start(self) -> None:
        """Start all, and wait until each answers.

        Raises:
            UsageError: the cluster has not the GPUs.
            EngineError: one cannot be started; its last lines are told.
        """
        self._refuse_few_gpus()
        for number in range(self.order.count):
            self._actors.append(self._actor())
            self._promises.append(self._actors[number].state.remote())
            self._states.append(ReplicaState())
        while not all(state.url for state in self._states):
            self.look(timeout=LOOK_SECONDS)
            for number, state in enumerate(self._states, start=1):
                if state.problem is not None:
                    raise _failed(self.order, number, state)
            time.sleep(0.1)

    def look(self, timeout: float = 0.0) -> None:
        """See how all are, and start those anew whose node or process is lost.

        Raises:
            EngineError: none is left.
        """
        before = [state.url for state in self._states]
        ready, _ = self.ray.wait(self._promises, num_returns=len(self._promises), timeout=timeout)
        for number, promise in enumerate(self._promises):
            if promise in ready:
                self._states[number] = self._state(number, promise)
                self._promises[number] = self._actors[number].state.remote()
        if before != [state.url for state in self._states]:
            self.servers.replace(state.url for state in self._states if state.url is not None)
        hopeless = [
            (number, state) for number, state in enumerate(self._states, start=1) if state.problem is not None
        ]
        if len(hopeless) == len(self._states):
            raise _failed(self.order, *hopeless[0])

    def stop(self) -> None:
        """End all."""
        for actor in self._actors:
            with suppress(Exception):
                self.ray.kill(actor)

    def _state(self, number: int, promise: Any) -> ReplicaState:
        from ray.exceptions import RayError

        earlier = self._states[number]
        try:
            state: ReplicaState = self.ray.get(promise)
        except RayError:
            self.on_note(
                f"server {number + 1} of the model is lost with its process or node; another is started"
            )
            with suppress(Exception):
                self.ray.kill(self._actors[number])
            self._actors[number] = self._actor()
            return ReplicaState()
        if state.starts > max(1, earlier.starts):
            self.on_note(f"server {number + 1} of the model has ended; it is started again")
        if state.problem is not None and earlier.problem is None and earlier.url is not None:
            self.on_note(f"server {number + 1} of the model is given up: {state.problem}")
        return state

    def _actor(self) -> Any:
        kind = self.ray.remote(num_cpus=0, num_gpus=self.order.gpus, max_restarts=0, max_concurrency=4)
        actor = kind(Replica).remote(self.order, str(Path.cwd()))
        actor.begin.remote(dict(self.environment))
        return actor

    def _refuse_few_gpus(self) -> None:
        if not self.order.gpus:
            return
        nodes = [node["Resources"].get("GPU", 0) for node in self.ray.nodes() if node["Alive"]]
        if sum(int(gpus // self.order.gpus) for gpus in nodes) < self.order.count:
            raise UsageError(
                f"--model-replicas {self.order.count} --gpus-per-replica {self.order.gpus}: found nodes with"
                f" {', '.join(f'{gpus:g}' for gpus in nodes)} GPUs, which is not enough; fewer replicas, or"
                " --gpus-per-replica 0 for servers that need none",
                code=Code.WRONG_OPTION,
            )


def _failed(order: ReplicaOrder, number: int, state: ReplicaState) -> EngineError:
    return EngineError(
        f"server {number} of the model {order.model!r} does not run: {state.problem}", code=Code.FAILED_ENGINE
    )
