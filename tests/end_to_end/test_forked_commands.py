"""Forked test commands behave like other processes (`tests.support.forked`)."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import forked
from tests.support.commands import REPOSITORY
from tests.support.forked import Forked, Server, finished, start
from tests.support.running import wait_until
from tests.support.shells import exchange

from aigo_bridge.version import __version__

CAPITALS = REPOSITORY / "examples" / "capitals"
WAITING = '{"default": true, "reply": {"text": "yes", "delay": 600}}\n'


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("inspect", os.environ) as server:
        yield server


@pytest.fixture
def waiting(tmp_path: Path, server: Server) -> Iterator[subprocess.Popen[str]]:
    """Run that waits for a model in its own session."""
    (tmp_path / "slow.jsonl").write_text(WAITING)
    words = ["aigo-bridge", "run", CAPITALS, "--model", "scripted/slow.jsonl"]
    options: dict[str, Any] = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "start_new_session": True,
    }
    with start(words, server=server, cwd=tmp_path, **options) as process:
        try:
            wait_until(process, lambda: any((tmp_path / "out").glob("*.eval")))
            yield process
        finally:
            process.kill()


def test_forked_command_has_its_own_pid_session_and_folder(
    waiting: subprocess.Popen[str], tmp_path: Path
) -> None:
    assert isinstance(waiting, Forked)
    assert waiting.pid not in (os.getpid(), os.getppid())
    assert os.getsid(waiting.pid) == os.getpgid(waiting.pid) == waiting.pid
    assert Path(f"/proc/{waiting.pid}/cwd").resolve() == tmp_path
    assert waiting.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(0.1)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130), (signal.SIGTERM, 143)]
)
def test_signals_end_a_forked_command(
    waiting: subprocess.Popen[str], tmp_path: Path, number: int, code: int
) -> None:
    os.killpg(waiting.pid, number)
    out, _ = waiting.communicate(timeout=60)
    assert waiting.returncode == waiting.poll() == code
    assert "Traceback" not in out
    assert (tmp_path / "out" / "capitals.tasklog.json").exists() == (code > 0)
    with pytest.raises(ProcessLookupError):
        os.kill(waiting.pid, 0)


def test_forked_and_started_commands_have_equal_output_and_exit_codes(server: Server, tmp_path: Path) -> None:
    for words in (["--version"], ["validate", "nowhere"], ["run"], ["list", "--nonsense"]):
        ours = finished(["aigo-bridge", *words], server=server, cwd=tmp_path)
        line = [str(forked.BIN / "aigo-bridge"), *words]
        theirs = subprocess.run(line, capture_output=True, text=True, cwd=tmp_path)
        assert (ours.returncode, ours.stdout, ours.stderr) == (
            theirs.returncode,
            theirs.stdout,
            theirs.stderr,
        )


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (["aigo-bridge", "--version"], {"HF_HOME": "elsewhere"}),
        (["aigo-bridge", "--version"], {"COVERAGE_PROCESS_CONFIG": ""}),
        (["inspect", "list", "tasks"], {}),
        (["ruff", "--version"], {}),
    ],
)
def test_unsuitable_commands_are_not_forked(
    server: Server, tmp_path: Path, words: list[str], variables: dict[str, str]
) -> None:
    options: dict[str, Any] = {"server": server, "cwd": tmp_path, "stdout": subprocess.PIPE}
    with start(words, env={**os.environ, **variables}, **options) as process:
        assert not isinstance(process, Forked)
        process.communicate()
    assert process.returncode == 0


def test_forked_command_has_its_own_environment_and_input(server: Server, tmp_path: Path) -> None:
    words = [
        "inspect",
        "eval",
        "aigo_bridge/task",
        "-T",
        f"task={CAPITALS / 'task.yaml'}",
        "--display",
        "none",
    ]
    words += ["--model", f"scripted/{CAPITALS / 'answers.jsonl'}", "--log-dir", "logs"]
    env = {**os.environ, "AIGO_BRIDGE_EVIDENCE": "evidence", "OWN_API_KEY": "ä"}

    done = finished(words, server=server, cwd=tmp_path, env=env, stdin=subprocess.DEVNULL)

    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "evidence").glob("*.tasklog.json"))) == 1
    assert "OWN_API_KEY" not in os.environ


def test_forked_commands_behave_as_in_a_shell(tmp_path: Path) -> None:
    script = "aigo-bridge validate 'no such' 2> told || echo $? ${#VIRTUAL_ENV}; aigo-bridge --version | tr a-z A-Z"
    with exchange("VIRTUAL_ENV") as commands:
        path = f"{commands}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "VIRTUAL_ENV": "four"},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.stderr == ""
    assert done.stdout == f"2 4\nAIGO-BRIDGE {__version__.upper()}\n"
    assert "no such" in (tmp_path / "told").read_text()
