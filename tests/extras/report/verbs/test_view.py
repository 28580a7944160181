"""`aigo-bridge view` command: printed address, exit on ctrl-C and cleanup."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.commands import Run
from tests.support.forked import start
from tests.support.results import metric, question, result, write_result
from tests.support.viewing import reader_of

from aigo_report.viewing.library import PREFIX


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_view_serves_until_interrupted_and_leaves_no_files(tmp_path: Path, number: int, code: int) -> None:
    private = tmp_path / "tmp"
    private.mkdir()
    (tmp_path / "out").mkdir()
    write_result(
        tmp_path / "out" / "quiz.tasklog.json", result([question(0, "a", "a")], [metric({"accuracy": 1.0})])
    )
    before = (tmp_path / "out" / "quiz.tasklog.json").stat()
    with start(["aigo-bridge", "view"], cwd=tmp_path, env={**os.environ, "TMPDIR": str(private)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().split() == ["folder", "out"]
        name, address = process.stdout.readline().split()
        assert name == "view"
        reader = reader_of(address)
        entry = reader.entries()["quiz.tasklog.json"]["id"]
        assert (
            reader.get(f"data/entry/{entry}").json["results"][0]["metrics"][0]["values"][0]["text"] == "1.0"
        )
        assert [
            path.name.startswith(PREFIX)
            for path in private.iterdir()
            if path.is_dir() and path.suffix == ".own"
        ] == [True]

        process.send_signal(number)
        assert process.wait(60) == code
        errors = process.stderr.read()
        assert "reading 1 result\n" in errors
        assert "Traceback" not in errors
    assert [path for path in private.iterdir() if path.suffix == ".own"] == []
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["quiz.tasklog.json"]
    assert (tmp_path / "out" / "quiz.tasklog.json").stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads the CPU time of another process from /proc")
def test_view_prints_the_address_within_a_second_for_500_results(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for number in range(500):
        write_result(tmp_path / "out" / f"{number}.tasklog.json", result([question(0, "a", "a")]))
    command = [str(Path(sys.executable).with_name("aigo-bridge")), "view", "out"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        assert [process.stdout.readline().split()[0] for _ in range(2)] == ["folder", "view"]
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        assert (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") < 1
        assert [process.stderr.readline() for _ in range(2)] == ["ctrl-C ends it\n", "reading 500 results\n"]
        process.send_signal(signal.SIGINT)
        process.wait(60)


def test_used_port_and_missing_folder_are_reported(aigo: Run, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = aigo("view", tmp_path, "--port", port)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(f"error: port {port} cannot be used: Address already in use")
        assert "[AB904]" in done.err
    done = aigo("view", "gone")
    assert (done.code, done.err) == (2, "error: gone: the folder does not exist [AB803]\n")
