"""Several processes write one file: the same bytes, the same counts, and nothing left behind when one of them comes to grief."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard

from aigo_bridge.importing import output
from aigo_bridge.importing.bounds import Bounds
from aigo_bridge.importing.output import HeldPart, PartWriter, Piece
from aigo_inspect import result_processes, result_writing
from aigo_inspect.importing import ImportSettings, import_file

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
    """A log whose samples have very different sizes; those in `bad` cannot be read."""
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
def many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part for every sample, and processes for the smallest logs."""
    monkeypatch.setattr(result_writing, "_RUN", 1)
    monkeypatch.setattr(result_writing, "_WORTH_A_PROCESS", 1)


def imported(log: Path, folder: Path, **settings: Any) -> tuple[bytes, tuple[Any, ...]]:
    """The file, and everything that is told of it."""
    folder.mkdir()
    result = import_file(log, folder / "r", ImportSettings(**settings))
    assert result.output is not None, result.reason
    assert sorted(path.name for path in folder.iterdir()) == ["r.loss.json", result.output.name]
    told = (
        *(result.samples, result.trials, result.failed, result.damage, result.loss.as_dict()),
        *(list(result.redacted.items()), result.exit_code, (folder / "r.loss.json").read_bytes()),
    )
    return result.output.read_bytes(), told


@pytest.mark.usefixtures("many_parts")
@pytest.mark.parametrize(
    ("output_format", "bad"),
    [
        ("json", ()),
        ("json", (0, 1, 14, 29)),
        ("json", tuple(range(30))),
        ("json.gz", (0, 1, 14, 29)),
        ("json.zst", (0, 14, 15, 29)),
        ("json.zst", tuple(range(30))),
    ],
)
def test_bytes_and_counts_do_not_depend_on_the_processes(
    tmp_path: Path, output_format: str, bad: tuple[int, ...]
) -> None:
    log = log_of(tmp_path / "a.eval", bad=bad)
    one = imported(log, tmp_path / "one", jobs=1, output_format=output_format)
    for jobs in (2, 3):
        assert imported(log, tmp_path / str(jobs), jobs=jobs, output_format=output_format) == one
    plain = one[0]
    if output_format == "json.gz":
        plain = gzip.decompress(plain)
    elif output_format == "json.zst":
        plain = zstandard.ZstdDecompressor().stream_reader(plain, read_across_frames=True).read()
    ids = [found["sample_id"] for found in orjson.loads(plain)["evidence"]["samples"]]
    assert ids == [f"s{n}" for n in range(30) if n not in bad]


@pytest.mark.usefixtures("many_parts")
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_it_does_not_matter_how_processes_are_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    from multiprocessing import get_context

    log = log_of(tmp_path / "a.eval", samples=8, bad=(2,))
    one = imported(log, tmp_path / "one", jobs=1)
    monkeypatch.setattr(result_processes, "_processes", lambda: get_context(method))
    assert imported(log, tmp_path / "two", jobs=2) == one


@pytest.mark.usefixtures("many_parts")
def test_parts_that_are_too_large_to_be_held_are_written_as_they_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(tmp_path / "a.eval")
    one = imported(log, tmp_path / "one", jobs=1)
    monkeypatch.setattr(result_processes, "_MOST_HELD", 5000)
    assert imported(log, tmp_path / "two", jobs=3) == one


@pytest.mark.usefixtures("many_parts")
def test_a_log_with_too_much_damage_ends_where_it_ends_for_one_process(tmp_path: Path) -> None:
    log = log_of(tmp_path / "a.eval", bad=tuple(range(3, 30, 3)))
    bounds = Bounds(damaged=5)
    one = imported(log, tmp_path / "one", jobs=1, bounds=bounds)
    assert imported(log, tmp_path / "two", jobs=2, bounds=bounds) == one
    damage = one[1][3]
    assert "more than 5 parts are unreadable: the rest was not read" in damage[-1].reason
    assert len(damage) == 7


def test_few_bytes_need_no_second_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_processes, "write_in_processes", None)
    imported(log_of(tmp_path / "a.eval"), tmp_path / "out", jobs=8)


# Parts


@pytest.mark.parametrize("most", [0, 2000, 1 << 30])
@pytest.mark.parametrize("output_format", ["json", "json.gz"])
def test_a_part_is_whole_wherever_it_is_put(tmp_path: Path, most: int, output_format: Any) -> None:
    text = bytearray(WORDS.encode() * 700)
    pieces: list[Piece] = [
        b"[",
        memoryview(text)[: 1 << 20],
        b"",
        b",",
        memoryview(text),
        *[b"x"] * 2000,
        b"]",
    ]
    waited: list[int] = []

    def wait() -> int:
        waited.append(7)
        return 7

    with (tmp_path / "file").open("xb", buffering=0) as file:
        file.write(b"before ")
        part = HeldPart(file, output_format, most, wait)
        part.write(pieces)
        part.finish(b" behind")
        part.put(7)
    found = (tmp_path / "file").read_bytes()
    with (tmp_path / "alone").open("xb", buffering=0) as file:
        writer = PartWriter(file, output_format)
        writer.write(pieces)
        writer.finish()
    alone = (tmp_path / "alone").read_bytes()
    assert found == b"before " + alone + b" behind"
    assert b"".join(pieces) == (gzip.decompress(alone) if output_format == "json.gz" else alone)
    assert part.length == len(found) - 7
    assert part.memory == 0
    assert bool(waited) == (most < 1 << 30)


def test_pieces_of_one_text_take_its_memory_once(tmp_path: Path) -> None:
    text = bytes(1 << 20)
    with (tmp_path / "file").open("xb", buffering=0) as file:
        part = HeldPart(file, "json", 1 << 30, lambda: 0)
        part.write([memoryview(text)[:end] for end in range(1, 1 << 20, 1 << 13)])
        assert part.length > 60 << 20
        assert part.memory < 2 << 20


def test_large_files_begin_to_be_stored_while_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    begin = output._sync_file_range()
    assert begin is not None

    def told(*arguments: int) -> int:
        assert begin(*arguments) == 0
        begun.append(os.fstat(arguments[0]).st_size)
        return 0

    monkeypatch.setattr(output, "_sync_file_range", lambda: told)
    with (tmp_path / "one").open("xb") as file:
        writer = PartWriter(file, "json")
        writer.write([bytes(1 << 20)] * 70)
        writer.finish()
    with (tmp_path / "other").open("xb", buffering=0) as other:
        part = HeldPart(other, "json", 1 << 30, lambda: 0)
        part.write([bytes(70 << 20)])
        part.put(5 << 20)
    assert begun == [32 << 20, 64 << 20] * 2


# What may happen to processes

SCRIPT = """
import os, signal, sys, threading, time
from pathlib import Path
from aigo_inspect import importing, result_processes, result_writing

result_writing._RUN = result_writing._WORTH_A_PROCESS = 1
importer, whole = os.getpid(), result_processes.write_run
assert threading.active_count() == 1

def write_run(*arguments):
    if os.getpid() != importer:
        Path(f"child-{os.getpid()}").touch()
        other()
    else:
        # The others have their part, as one that is done with everything in no time would not notice.
        while not list(Path().glob("child-*")):
            time.sleep(0.01)
    return whole(*arguments)

result_processes.write_run = write_run

def import_with(jobs):
    result = importing.import_file("a.eval", Path("out/r"), importing.ImportSettings(jobs=jobs))
    print(result.exit_code, result.reason)
"""


def start(folder: Path, *lines: str) -> subprocess.Popen[str]:
    """An import by two processes, of which the other one does what is said."""
    log_of(folder / "a.eval")
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
    """The other process, as soon as it works."""
    deadline = time.monotonic() + 20
    while not (found := list(folder.glob("child-*"))):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return int(found[0].name.removeprefix("child-"))


def is_gone(process: int) -> bool:
    """Whether a process has ended, within some seconds."""
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


def test_the_death_of_a_process_is_want_of_memory(tmp_path: Path) -> None:
    """The system ends a process that takes too much without a word; the others learn only that it is gone."""
    done = start(tmp_path, "other = lambda: os.kill(os.getpid(), signal.SIGKILL)", "import_with(3)")
    out, err = done.communicate(timeout=30)
    assert out == "3 memory ran out with 3 processes (fewer need less: --jobs)\n", err
    assert err == ""
    assert left(tmp_path) == []
    assert all(is_gone(int(path.name[6:])) for path in tmp_path.glob("child-*"))


def test_a_process_for_which_memory_does_not_suffice_says_so(tmp_path: Path) -> None:
    done = start(tmp_path, "def other(): raise MemoryError", "import_with(2)")
    out, err = done.communicate(timeout=30)
    assert (out, err) == ("3 memory ran out with 2 processes (fewer need less: --jobs)\n", "")
    assert left(tmp_path) == []


def test_a_mistake_of_ours_is_not_taken_for_one_of_the_log(tmp_path: Path) -> None:
    done = start(tmp_path, "def other(): raise ZeroDivisionError('a mistake')", "import_with(2)")
    out, err = done.communicate(timeout=30)
    assert out == ""
    assert "ZeroDivisionError: a mistake" in err
    assert "in other" in err
    assert left(tmp_path) == []


def test_a_full_disk_is_told_whoever_meets_it(tmp_path: Path) -> None:
    import errno

    lines = f"def other(): raise OSError({errno.ENOSPC}, 'No space left on device')"
    done = start(tmp_path, lines, "import_with(2)")
    out, err = done.communicate(timeout=30)
    assert out == "3 the evidence cannot be written: out/r.tasklog.json: No space left on device\n", err
    assert left(tmp_path) == []


def test_a_file_that_may_not_be_larger_is_told(tmp_path: Path) -> None:
    lines = [
        "other = lambda: None",
        "import resource",
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))",
    ]
    done = start(tmp_path, *lines, "import_with(2)")
    out, err = done.communicate(timeout=30)
    assert out == "3 the evidence cannot be written: out/r.tasklog.json: File too large\n", err
    assert left(tmp_path) == []


def test_an_interrupt_ends_all_processes_and_leaves_nothing(tmp_path: Path) -> None:
    importer = start(tmp_path, "other = lambda: time.sleep(60)", "import_with(2)")
    child = child_of(tmp_path)
    os.killpg(importer.pid, signal.SIGINT)
    _, err = importer.communicate(timeout=20)
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert err.count("Traceback") == 1
    assert is_gone(child)
    assert left(tmp_path) == []


def test_nobody_works_on_for_an_import_that_was_killed(tmp_path: Path) -> None:
    importer = start(tmp_path, "other = lambda: time.sleep(0.2)", "import_with(2)")
    child = child_of(tmp_path)
    importer.kill()
    importer.communicate(timeout=20)
    assert is_gone(child)


def test_a_process_that_may_not_start_others_works_alone(tmp_path: Path) -> None:
    lines = [
        "other = lambda: None",
        "importer = 0",
        "from multiprocessing import get_context",
        "process = get_context('fork').Process(target=import_with, args=(2,), daemon=True)",
        "process.start()",
        "process.join()",
    ]
    done = start(tmp_path, *lines)
    out, err = done.communicate(timeout=30)
    assert (out, err) == ("0 \n", "")
    assert list(tmp_path.glob("child-*")) == []
