"""Servers of a model, real ones: started, waited for, started again, and given up with their last lines."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.support import model_server

from aigo_bridge.errors import UsageError
from aigo_scale.cluster.replicas import Replica, ReplicaOrder, ReplicaState

SERVER = f"{sys.executable} {model_server.__file__} {{host}} {{port}} {{model}} ."


@contextmanager
def ended(replica: Replica) -> Iterator[None]:
    """A replica whose server ends with the block, as it does with the actor's process."""
    try:
        yield
    finally:
        url = replica.state().url
        replica.stop()
        wait_for(replica, lambda state: state.url is None)
        if url is not None:
            with pytest.raises(httpx.ConnectError):
                httpx.get(f"{url}/models")


def wait_for(replica: Replica, holds: Callable[[ReplicaState], bool]) -> ReplicaState:
    deadline = time.monotonic() + 60
    while not holds(replica.state()):
        assert time.monotonic() < deadline, replica.state()
        time.sleep(0.05)
    return replica.state()


def server_process(folder: Path, url: str) -> int:
    """The process of a server that has answered a call."""
    before = set(folder.glob("*.calls"))
    call = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
    httpx.post(f"{url}/chat/completions", json=call).raise_for_status()
    (file,) = set(folder.glob("*.calls")) - before
    return int(file.stem)


def test_a_server_that_ends_is_started_again_and_given_up_when_it_does_so_at_once(tmp_path: Path) -> None:
    replica = Replica(ReplicaOrder("m", 1, 0, SERVER, "127.0.0.1"), str(tmp_path))
    with ended(replica):
        replica.begin({})
        first = wait_for(replica, lambda state: state.url is not None)
        assert first.url is not None
        os.kill(server_process(tmp_path, first.url), signal.SIGKILL)
        second = wait_for(replica, lambda state: state.url not in (None, first.url))
        assert second.url is not None
        assert (first.starts, second.starts, second.problem) == (1, 2, None)
        (tmp_path / "refusing").touch()
        os.kill(server_process(tmp_path, second.url), signal.SIGKILL)
        last = wait_for(replica, lambda state: state.problem is not None)
        assert last.url is None
        assert last.problem is not None
        assert last.problem.startswith("it ended with code 3; its last lines:\n  loading m\n")


def test_one_that_does_not_even_begin_is_not_tried_again(tmp_path: Path) -> None:
    replica = Replica(ReplicaOrder("m", 1, 0, "no-such-program {port}", "127.0.0.1"), str(tmp_path))
    replica.begin({})
    state = wait_for(replica, lambda state: state.problem is not None)
    assert state == ReplicaState(
        None, "it ended with code 127; its last lines:\n  no-such-program: No such file or directory", 1
    )


def test_the_command_is_vllm_unless_another_is_said() -> None:
    assert ReplicaOrder("org/m", 1, 1).words("h", 8) == [
        "vllm",
        "serve",
        "org/m",
        "--host",
        "h",
        "--port",
        "8",
    ]
    assert ReplicaOrder("m", 2, 4).words("h", 8)[-2:] == ["--tensor-parallel-size", "4"]
    own = ReplicaOrder("a b; rm -rf", 1, 2, "serve '{model}' --at={host}:{port} -g {gpus}")
    assert own.words("h", 8) == ["serve", "a b; rm -rf", "--at=h:8", "-g", "2"]


@pytest.mark.parametrize(
    ("command", "told"), [("serve {model}", "with {port} in it"), ("serve '{port}", "No closing quotation")]
)
def test_a_command_without_a_port_is_refused(command: str, told: str) -> None:
    with pytest.raises(UsageError, match=r"--replica-command") as error:
        ReplicaOrder("m", 1, 0, command).words("h", 8)
    assert told in str(error.value)
