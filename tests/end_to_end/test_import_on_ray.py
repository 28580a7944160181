"""`import --on ray`: the log of a lost worker is imported by another worker; a log that kills every worker affects no other log."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.commands import Run
from tests.support.lakes import imported, make_log, rows

from aigo_scale.lake.tables import TABLES, open_lake
from aigo_scale.lake.verifying import problems_of

KEY = "sk-proj-4fT9kQ2mXw7LzR8vN3bY6cH1"
# The command itself, with workers that die at some logs: the first time at `once`, always at `deadly`.
PROGRAM = """
import json, os, signal, sys
from pathlib import Path

from aigo_scale.cluster import imports

hand_out_on = imports.hand_out_on

def dying(work):
    def run(*call):
        names = [Path(piece.location).stem for piece in call[1]]
        seen = Path("lost-of-once")
        if "deadly" in names or ("once" in names and not seen.exists()):
            if "once" in names:
                seen.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        with open(f"environment-{os.getpid()}", "w") as file:
            json.dump([os.environ.get(name) for name in ("OPENAI_API_KEY", "AWS_ENDPOINT_URL", "OTHER")], file)
        return work(*call)
    return run

def watched(ray, note):
    def hand_out(work, calls, workers):
        yield from hand_out_on(ray, note)(dying(work), calls, workers)
        session = Path(ray._private.worker._global_node.get_session_dir_path())
        written = [path for path in session.rglob("*") if path.is_file()]
        leaks = [str(path) for path in written if os.environ["OPENAI_API_KEY"].encode() in path.read_bytes()]
        Path("leaks.json").write_text(json.dumps([len(written) > 5, leaks]))
    return hand_out

imports.hand_out_on = watched

from aigo_bridge.cli import main

main()
"""


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.timeout(300)
def test_lost_workers_lose_only_their_own_logs(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "once", "deadly"):
        make_log(tmp_path / "logs" / f"{name}.eval", run=f"run-{name}")
    words = ["import", "logs", "--lake", "lake", "--on", "ray", "--workers", "2"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        cwd=tmp_path,
        env={**os.environ, "OPENAI_API_KEY": KEY, "AWS_ENDPOINT_URL": "http://127.0.0.1:1", "OTHER": "x"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "deadly.eval: unreadable; memory ran out" in done.stdout
    assert done.stderr.count("a worker was lost") == 3, done.stderr
    assert "lake: 4 imported, 0 there already, 1 not readable" in done.stderr
    lake = tmp_path / "lake"
    (tmp_path / "logs" / "deadly.eval").rename(tmp_path / "deadly.eval")
    assert imported(lake, tmp_path / "logs")[0].known == 4
    imported(tmp_path / "whole", tmp_path / "logs")
    for table in TABLES:
        found = [sorted(row["log"] for row in rows(place, table)) for place in (lake, tmp_path / "whole")]
        assert found[0] == found[1], table
    assert list(problems_of(open_lake(lake))) == []
    environments = [json.loads(path.read_text()) for path in tmp_path.glob("environment-*")]
    assert {tuple(one[:2]) for one in environments} == {(KEY, "http://127.0.0.1:1")}
    assert json.loads((tmp_path / "leaks.json").read_text()) == [True, []]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--lake", "lake", "--on", "dask"], "--on: found 'dask', expected ray"),
        (["--on", "ray", "--watch"], "--watch, --on: only for an import into a lake (--lake LAKE)"),
        (
            ["--on", "ray", "--format", "parquet", "--out", "archive"],
            "--on: only for an import into a lake (--lake archive; with --format parquet, --out is a lake",
        ),
        (["--lake", "lake", "--workers", "2"], "--workers: only with --on ray"),
        (["--lake", "lake", "--on", "ray", "--jobs", "2"], "--jobs: cannot be combined with --on ray"),
        (["--lake", "lake", "--on", "ray", "--ray-address", "ray://h:1"], "expected HOST:PORT or auto"),
    ],
)
def test_wrong_use_is_refused_and_writes_nothing(
    options: list[str], told: str, tmp_path: Path, aigo: Run
) -> None:
    make_log(tmp_path / "logs" / "a.eval", run="run-a")
    done = aigo("import", "logs", *options)
    assert done.code == 2
    assert told in " ".join(done.err.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs"]
