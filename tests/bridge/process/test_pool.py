"""Work done by several processes, in a folder of temporary files whose name is too long for a socket."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import operator
import threading
from aigo_bridge.process.pool import each_in_processes

if __name__ == "__main__":
    threading.Thread(target=threading.Event().wait, daemon=True).start()  # now a fork is not safe
    print(list(each_in_processes(operator.add, [(1, 2), (3, 4)], 2)))
"""


def test_a_long_name_of_the_temporary_folder_is_no_obstacle(tmp_path: Path) -> None:
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
