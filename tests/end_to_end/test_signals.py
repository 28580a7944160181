"""SIGTERM and SIGHUP end a command like ctrl-C; a second signal ends it at once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.endpoint import Endpoint, completion
from tests.support.forked import finished, start
from tests.support.running import finished_samples, wait_until

Load = Callable[[Path], dict[str, Any]]
SAMPLES = 30
TASK = """
key: t
display_name: T
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - {type: string_equals, ground_truth: "yes"}
"""
RUN_FILE = """
evaluation:
  key: e
  display_name: E
  task_specifications:
    - {key: s, task_key: t, model_key: m}
tasks:
  - $ref: task.yaml
"""
MODEL = ("--model", "openai-api/local/m")


@pytest.fixture
def folder(endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Task with thirty questions and a slow server."""
    monkeypatch.setenv("LOCAL_BASE_URL", endpoint.url)
    monkeypatch.setenv("LOCAL_API_KEY", "none")
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"q": f"q{n}"}) + "\n" for n in range(SAMPLES)))
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "run.yaml").write_text(RUN_FILE)
    return tmp_path


def started(folder: Path, endpoint: Endpoint, *words: str, asked: int = 6) -> subprocess.Popen[str]:
    """Run in progress: the server answers the first questions and delays the others."""

    def slow(_: Any) -> Any:
        if len(endpoint.requests) > asked:
            time.sleep(1)
        return 200, completion("yes")

    endpoint.answer = slow
    process = start(
        ["aigo-bridge", "run", *words, "--max-connections", "2", "--out", "out"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    wait_until(process, lambda: len(endpoint.requests) > asked)
    return process


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        (signal.SIGTERM, 143, ("task.yaml", *MODEL)),
        (signal.SIGHUP, 129, ("run.yaml", "--model-map", "m=openai-api/local/m")),
        (signal.SIGTERM, 143, ("task.yaml", *MODEL, "--engine", "lighteval")),
    ],
    ids=["task", "run file", "lighteval"],
)
def test_run_ended_by_a_signal_has_evidence(
    folder: Path,
    endpoint: Endpoint,
    result_of: Load,
    number: int,
    code: int,
    words: tuple[str, ...],
) -> None:
    process = started(folder, endpoint, *words)
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)

    assert process.returncode == code, out
    assert "Traceback" not in out
    found = sorted((folder / "out").rglob("*.tasklog.json"))
    assert len(found) == 1, out
    log = result_of(found[0])
    assert log["status"] == "failure"
    assert log["errors"][0]["error_type"] == "IncompleteRun"


def test_a_second_signal_ends_a_run_immediately(folder: Path, endpoint: Endpoint) -> None:
    process = started(folder, endpoint, "task.yaml", *MODEL)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)

    assert process.returncode in (130, 143)  # whichever of two signals at a time the system gives first
    assert "Traceback" not in out
    assert "Exception" not in out
    assert out.strip().endswith("continue with `run --resume`")
    assert out.count("stopped at once") == 1
    assert not list((folder / "out").glob("*.json"))
    (log,) = (folder / "out").glob("*.eval")
    assert finished_samples(log) >= 1


def ended(process: subprocess.Popen[str], number: int) -> str:
    """Send a signal, check the exit code and return the output, unless the command has ended."""
    if process.poll() is None:
        process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert "Traceback" not in out
    # Before it had begun the signal ends it as any program; a shell has the same code for it.
    assert process.returncode in (0, 128 + number, -number), out
    return out


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_signal_in_any_phase_has_its_exit_code_and_leaves_evidence(
    folder: Path, endpoint: Endpoint, engine: str
) -> None:
    """From the first import to the last line, in twelve steps."""
    endpoint.answer = lambda _: (200, completion("yes"))
    words = ["aigo-bridge", "run", "task.yaml", *MODEL, "--engine", engine, "--out"]

    def begin(out: str) -> subprocess.Popen[str]:
        return start(
            [*words, out],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    begin("first").communicate(timeout=60)
    begun = time.monotonic()
    begin("second").communicate(timeout=60)
    seconds = time.monotonic() - begun
    for step in range(12):
        process = begin(f"out{step}")
        time.sleep(seconds * (step + 0.5) / 12)
        ended(process, signal.SIGTERM)
        out = folder / f"out{step}"
        logs = [*out.glob("*.eval"), *out.glob("results/**/*.json")]
        assert bool(logs) == bool(list(out.glob("*.tasklog.json")))


AFTER_THE_LOG = """
import os, signal, sys
from aigo_bridge.cli import main
from aigo_bridge.execution.checkpoint import Checkpoint
remove = Checkpoint.remove
def interrupted(self):
    remove(self)
    os.kill(os.getpid(), signal.SIGTERM)
Checkpoint.remove = interrupted
main()
"""


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_signal_after_the_log_is_written_leaves_evidence(
    folder: Path, endpoint: Endpoint, engine: str, result_of: Load
) -> None:
    """Checkpoints are deleted between writing the log and reading it."""
    endpoint.answer = lambda _: (200, completion("yes"))
    words = ["run", "task.yaml", *MODEL, "--engine", engine, "--out", "out"]
    done = finished(["-c", AFTER_THE_LOG, *words], cwd=folder)
    assert done.returncode == 143, done.stderr
    assert "Traceback" not in done.stderr
    (result,) = (folder / "out").glob("*.tasklog.json")
    assert result_of(result)["status"] == "success"


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.3, 1.5])
def test_signal_during_imports_has_its_exit_code(folder: Path, delay: float) -> None:
    """Libraries such as pydantic may catch the interruption as their own error."""
    with subprocess.Popen(
        [str(Path(sys.executable).with_name("aigo-bridge")), "run", "task.yaml", *MODEL],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        time.sleep(delay)
        ended(process, signal.SIGTERM)


# The mechanism alone

WORK = {
    "computing": """
ready()
while True: pass
""",
    "waiting": """
ready()
while True: time.sleep(60)
""",
    "in an import that makes another error of it": """
try:
    ready()
    time.sleep(60)
except BaseException as error:
    raise ImportError(f"schema: {error!r}")
""",
    "in an event loop": """
async def wait():
    try:
        ready()
        await asyncio.sleep(60)
    finally:
        print("put in order", flush=True)
asyncio.run(wait())
""",
    "deaf": """
tell = ready
def wait():
    global tell
    try:
        tell()
        tell = list
        time.sleep(60)
    except BaseException: print("heard", flush=True)
while True:
    try:
        while True: wait()
    except BaseException: pass  # the next one, while the first was told
""",
}
FRAME = """
import asyncio, signal, sys, time
import typer
from aigo_bridge.cli.error_handling import reported
from aigo_bridge.cli.error_handling import stopped_by_signals
for number in map(int, sys.argv[1:]): signal.signal(number, signal.SIG_IGN)
def ready(): print("ready", flush=True)
try:
    with stopped_by_signals(), reported(): exec(WORK)
except typer.Exit as end:
    raise SystemExit(int(end.exit_code))
"""


@contextmanager
def ready(folder: Path, work: str, *ignored: int) -> Iterator[subprocess.Popen[str]]:
    """Started process that ends with the test, even if the test fails."""
    file = folder / "work.py"
    file.write_text(f"WORK = {WORK[work]!r}\n{FRAME}")
    with subprocess.Popen(
        [sys.executable, str(file), *(str(int(number)) for number in ignored)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(
    "work", ["computing", "waiting", "in an import that makes another error of it", "in an event loop"]
)
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_every_signal_stops_a_command(tmp_path: Path, work: str, number: int, code: int) -> None:
    with ready(tmp_path, work) as process:
        process.send_signal(number)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == code
    assert out.count("interrupted; complete files were written; no partial files are left") == 1
    assert "Traceback" not in out
    assert ("put in order" in out) == (work == "in an event loop")


def test_a_second_signal_ends_a_busy_command(tmp_path: Path) -> None:
    with ready(tmp_path, "deaf") as process:
        assert process.stdout is not None
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "heard\n"
        process.send_signal(signal.SIGHUP)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "stopped at once" in out
    assert "Traceback" not in out


@pytest.mark.parametrize("ignored", [signal.SIGHUP, signal.SIGINT])
def test_signals_ignored_at_the_start_stay_ignored(tmp_path: Path, ignored: int) -> None:
    """`nohup` and `&` in scripts ignore a signal; another signal still stops the command."""
    with ready(tmp_path, "in an event loop", ignored) as process:
        process.send_signal(ignored)
        process.send_signal(ignored)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 143
    assert "put in order" in out
    assert "stopped at once" not in out
