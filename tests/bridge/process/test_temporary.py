"""Files left behind by `kill -9` are removed, and no others."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.forked import start

CODE = {
    "worker": """
from aigo_bridge.snippets.process import WorkerProcess
worker = WorkerProcess(2**30)
""",
    "folder": """
from aigo_bridge.process.temporary import make_folder
folder = make_folder("aigo-sandbox-")
open(folder + "/inside", "w").close()
""",
    "query": """
from aigo_report.tables.sql import answered
class NoTables:
    def show(self, connection, names):
        pass
asking = answered("select 1", NoTables())
asking.__enter__()
""",
    "draft": """
from aigo_bridge.results.log_files import open_for_replacing
from pathlib import Path
writing = open_for_replacing(Path("result.json"))
writing.__enter__().write(b"half")
""",
    "import": """
from aigo_bridge.results.log_files import open_for_replacing
from pathlib import Path
writing = open_for_replacing(Path("result.json"), clean=False)
writing.__enter__().write(b"half")
""",
    "export": """
from aigo_bridge.exporting.folders import new_content
from pathlib import Path
exporting = new_content(Path("exported"), force=False)
(exporting.__enter__() / "half.py").write_text("half")
""",
}


@contextmanager
def running(folder: Path, what: str) -> Iterator[subprocess.Popen[str]]:
    """Run a process that creates a temporary file or folder and waits."""
    process = start(
        ["-c", f"{CODE[what]}\nprint('made', flush=True)\nimport time\ntime.sleep(600)"],
        stdout=subprocess.PIPE,
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "made\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("what", CODE)
def test_files_of_a_killed_process_are_removed_by_the_next_one(tmp_path: Path, what: str) -> None:
    with running(tmp_path, what) as killed:
        left = names(tmp_path)
        assert len(left) == 1
        with running(tmp_path, what):
            # Files in use are kept.
            assert left < names(tmp_path)
            killed.kill()
            killed.wait()
            with running(tmp_path, what):
                assert not left & names(tmp_path)
                assert len(names(tmp_path)) == 2


def test_only_files_with_a_lock_are_removed(tmp_path: Path) -> None:
    """Folders of other programs and releases, and the targets of links, are kept."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    (tmp_path / "aigo-sandbox-old").mkdir()
    (tmp_path / "aigo-sandbox-link.own").symlink_to(tmp_path / "precious")
    (tmp_path / "aigo-sandbox-file.own").touch()
    os.mkfifo(tmp_path / "aigo-sandbox-fifo.own")
    (tmp_path / ".result.json.0123456789ab.tmp").touch()
    before = names(tmp_path)
    for what in ("folder", "draft"):
        with running(tmp_path, what):
            pass
    assert before <= names(tmp_path)
    assert (tmp_path / "precious" / "file").exists()


def test_draft_removed_before_it_is_locked_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aigo_bridge.process import temporary

    lock, swept = fcntl.flock, list[str]()

    def late(descriptor: int, how: int) -> None:
        if not swept:
            (draft,) = tmp_path.iterdir()
            swept.append(draft.name)
            draft.unlink()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with temporary.draft_of(tmp_path / "result.json") as draft:
        assert draft.exists()
        assert draft.name not in swept
    assert list(tmp_path.iterdir()) == []
