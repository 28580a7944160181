"""Several processes import several logs: files and reports are the same, and a failing process leaves nothing
behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from aigo_bridge.errors import UsageError
from aigo_bridge.importing.log_import import ImportReport
from aigo_bridge.process import pool
from aigo_inspect.importing import importing
from aigo_inspect.importing.importing import import_logs

HEADER = {"status": "success", "eval": {"task": "t", "dataset": {}, "config": {}}}
WORDS = " ".join(f"word{n * n % 7919}" for n in range(400))


def sample(number: int, epoch: int, length: int) -> dict[str, Any]:
    return {
        "id": f"s{number}",
        "epoch": epoch,
        "input": f"{number} {WORDS} AKIAABCDEFGHIJKLMNO{number % 10}",
        "target": "t",
        "messages": [{"role": "user", "content": WORDS * length}],
        "scores": {f"scorer {number}": {"value": 1.0}},
        "events": [{"event": "state", "timestamp": "2026-01-01T00:00:00+00:00", "changes": []}],
    }


def log_of(path: Path, samples: int = 30, epochs: int = 2, bad: tuple[int, ...] = ()) -> Path:
    """Write a log with samples of very different sizes; those in `bad` are unreadable."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(HEADER))
        for number in range(samples):
            for epoch in range(1, epochs + 1):
                text = json.dumps(sample(number, epoch, 1 + 8 * (number % 7 == 3)))
                archive.writestr(
                    f"samples/s{number}_epoch_{epoch}.json", text[:-9] if number in bad else text
                )
    return path


@pytest.fixture
def small_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use several processes even for the smallest logs."""
    monkeypatch.setattr(importing, "_WORTH_PROCESSES", 1)


def logs_of(folder: Path, count: int = 5) -> list[Path]:
    folder.mkdir(exist_ok=True)
    return [log_of(folder / f"{n}.eval", samples=3 + n, bad=(1,) if n == 2 else ()) for n in range(count)]


def imported(logs: list[Path], out: Path, **settings: Any) -> tuple[dict[str, bytes], list[ImportReport]]:
    """Return the files and all reports in order."""
    told: list[ImportReport] = []
    reports = import_logs(logs, out, on_result=told.append, **settings)
    assert told == reports
    return {path.name: path.read_bytes() for path in out.iterdir()}, reports


@pytest.mark.usefixtures("small_logs")
@pytest.mark.parametrize("output_format", ["json", "json.gz", "json.zst"])
@pytest.mark.parametrize("jobs", [2, 3, 9])
def test_output_and_reports_do_not_depend_on_the_number_of_processes(
    tmp_path: Path, output_format: str, jobs: int
) -> None:
    logs = [*logs_of(tmp_path / "logs"), tmp_path / "logs" / "broken.eval"]
    logs[-1].write_bytes(b"nothing")
    (one, alone), (several, together) = (
        imported(logs, tmp_path / "out", jobs=each, output_format=output_format) for each in (1, jobs)
    )
    assert several == one
    assert together == alone
    assert [report.samples for report in alone] == [3, 4, 4, 6, 7, 0]
    assert [report.exit_code for report in alone] == [0, 0, 3, 0, 0, 3]


@pytest.mark.usefixtures("small_logs")
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_output_does_not_depend_on_the_process_start_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    from multiprocessing import get_context

    logs = logs_of(tmp_path / "logs", 3)
    one = imported(logs, tmp_path / "out", jobs=1)
    monkeypatch.setattr(pool, "_context", lambda: get_context(method))
    assert imported(logs, tmp_path / "out", jobs=2) == one


def test_small_logs_start_no_second_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "each_in_processes", None)
    imported(logs_of(tmp_path / "logs"), tmp_path / "out", jobs=8)


def test_a_single_log_starts_no_second_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "each_in_processes", None)
    monkeypatch.setattr(importing, "_WORTH_PROCESSES", 1)
    imported(logs_of(tmp_path / "logs", 1), tmp_path / "out", jobs=8)


@pytest.mark.usefixtures("small_logs")
def test_a_missing_package_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from multiprocessing import get_context

    # Only a forked process also lacks the package. If other tests left threads, processes would be spawned and find it.
    monkeypatch.setattr(pool, "_context", lambda: get_context("fork"))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match="needs pyarrow"):
        import_logs(logs_of(tmp_path / "logs"), tmp_path / "out", jobs=2, output_format="parquet")


# Failures of processes

SCRIPT = """
import os, signal, sys, threading, time
from pathlib import Path
from multiprocessing import get_context
from aigo_bridge.process import pool
from aigo_inspect.importing import importing

importing._WORTH_PROCESSES = 1
# A process that takes the place of a dead one starts anew while the dead one's threads still end: it has nothing of what follows.
pool._context = lambda: get_context("fork")
importer, whole = os.getpid(), importing.write_json
assert threading.active_count() == 1

def write_json(reader, output, *rest):
    if "1.eval" in reader.location:
        Path(f"child-{os.getpid()}").touch()
        from aigo_bridge.process.temporary import draft_of
        with draft_of(output):
            other()
    return whole(reader, output, *rest)

importing.write_json = write_json

def import_with(jobs):
    for report in importing.import_logs(["logs/0.eval", "logs/1.eval", "logs/2.eval"], "out", jobs=jobs):
        print(report.exit_code, report.reason, flush=True)
"""


def start(folder: Path, *lines: str) -> subprocess.Popen[str]:
    """Start an import with several processes; the process with the second log runs the given lines."""
    for number in range(3):
        (folder / "logs").mkdir(exist_ok=True)
        log_of(folder / "logs" / f"{number}.eval", samples=2)
    (folder / "out").mkdir()
    (folder / "tmp").mkdir()
    return subprocess.Popen(
        [sys.executable, "-c", "\n".join([SCRIPT, *lines])],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def child_of(folder: Path) -> int:
    """Return the other process as soon as it is at work."""
    deadline = time.monotonic() + 20
    while not (found := list(folder.glob("child-*"))):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return int(found[0].name.removeprefix("child-"))


def is_gone(process: int) -> bool:
    """Return whether a process ends within some seconds."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def left(folder: Path) -> list[str]:
    return sorted(path.name for name in ("out", "tmp") for path in (folder / name).iterdir())


WRITTEN = [f"{number}.{kind}.json" for number in (0, 2) for kind in ("loss", "tasklog")]


def test_a_killed_process_loses_only_its_log_and_is_reported(tmp_path: Path) -> None:
    """The system kills a process that uses too much memory without a message."""
    done = start(tmp_path, "other = lambda: os.kill(os.getpid(), signal.SIGKILL)", "import_with(3)")
    out, err = done.communicate(timeout=60)
    assert out == "0 \n3 memory ran out with 3 processes (fewer processes use less: --jobs)\n0 \n", err
    assert err == ""
    assert [name for name in left(tmp_path) if not name.endswith(".draft")] == WRITTEN
    assert all(is_gone(int(path.name[6:])) for path in tmp_path.glob("child-*"))


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ("raise MemoryError", "3 memory ran out with 2 processes (fewer processes use less: --jobs)"),
        ("raise ZeroDivisionError('a mistake')", "3 aigo-bridge failed to map the log"),
        (
            "raise OSError(28, 'No space left on device')",
            "3 the evidence cannot be written: out/1.tasklog.json: No space left on device",
        ),
    ],
)
def test_an_error_in_a_process_is_reported_for_its_log(tmp_path: Path, other: str, told: str) -> None:
    done = start(tmp_path, f"def other(): {other}", "import_with(2)")
    out, err = done.communicate(timeout=60)
    first, second, third = out.splitlines()
    assert (first, third, err) == ("0 ", "0 ", "")
    assert second.startswith(told)
    assert left(tmp_path) == WRITTEN


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_stops_all_processes_and_leaves_no_files(tmp_path: Path, stop: signal.Signals) -> None:
    lines = ["def interrupt(*_): raise KeyboardInterrupt", "signal.signal(signal.SIGTERM, interrupt)"]
    importer = start(tmp_path, *lines, "other = lambda: time.sleep(60)", "import_with(2)")
    child = child_of(tmp_path)
    os.killpg(importer.pid, stop)
    _, err = importer.communicate(timeout=30)
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert err.count("Traceback") == 1
    assert is_gone(child)
    assert not [name for name in left(tmp_path) if name.endswith(".draft") or name.startswith("1.")]


def test_worker_processes_end_when_the_import_is_killed(tmp_path: Path) -> None:
    importer = start(tmp_path, "other = lambda: time.sleep(60)", "import_with(2)")
    child = child_of(tmp_path)
    importer.kill()
    importer.communicate(timeout=20)
    assert is_gone(child)


def test_a_daemon_process_imports_without_workers(tmp_path: Path) -> None:
    lines = [
        "other = lambda: None",
        "from multiprocessing import get_context",
        "process = get_context('fork').Process(target=import_with, args=(2,), daemon=True)",
        "process.start()",
        "process.join()",
    ]
    done = start(tmp_path, *lines)
    out, err = done.communicate(timeout=30)
    assert (out, err) == ("0 \n0 \n0 \n", "")
