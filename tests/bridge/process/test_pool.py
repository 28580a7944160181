"""Work in several processes with a temporary folder whose name is too long for a socket."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from aigo_bridge.process.pool import each_in_processes

SCRIPT = """
import operator
import threading
from aigo_bridge.process.pool import each_in_processes

if __name__ == "__main__":
    threading.Thread(target=threading.Event().wait, daemon=True).start()  # now a fork is not safe
    print(list(each_in_processes(operator.add, [(1, 2), (3, 4)], 2)))
"""


def test_a_long_temporary_folder_name_is_supported(tmp_path: Path) -> None:
    folder = tmp_path / ("temporary-" * 10)
    folder.mkdir()
    (tmp_path / "work.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "work.py"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("[3, 7]\n", "")


FORKED = """
import threading
from aigo_bridge.process import pool
from aigo_bridge.process.signals import COUNTING_THREAD

for name in (COUNTING_THREAD, "other"):
    threading.Thread(target=threading.Event().wait, name=name, daemon=True).start()
    print(pool._context().get_start_method())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks")
def test_only_the_thread_that_counts_signals_permits_a_fork() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, check=True)
    assert done.stdout == "fork\nforkserver\n"


def clear_away_although_told_again(place: Path) -> None:
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(20)
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.1)
        place.touch()


@pytest.mark.skipif(sys.platform == "win32", reason="on Windows a process is ended without a signal")
def test_a_process_stopped_twice_removes_its_temporary_files(tmp_path: Path) -> None:
    """A process group receives the signal twice: from the terminal and from the parent."""
    (result,) = each_in_processes(clear_away_although_told_again, [(tmp_path / "cleared",)], 1)
    assert isinstance(result, MemoryError)
    assert (tmp_path / "cleared").exists()
