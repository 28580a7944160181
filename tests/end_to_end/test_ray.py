"""`run --on ray` on three real nodes: killed drivers, workers and nodes cost pieces, and the evidence is that of one run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.sharding import normalised
from tests.support.commands import Run
from tests.support.missing import verbs_without
from tests.support.running import finished_samples, wait_until

ROWS = 12
KEY = "sk-of-nobody-but-this-test-4711"
TASK = """
key: counted
display_name: Counted
description: ""
definition:
  dataset: {key: q}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.n }}"}]}
  scorers:
    - {type: string_equals, ground_truth: "{{ sample.odd }}", metrics: [{type: mean, field: is_correct, name: accuracy}]}
"""
NODES = """
import os, sys
os.environ.update(RAY_worker_niceness="0", RAY_USAGE_STATS_ENABLED="0")
from ray.cluster_utils import Cluster
node = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
cluster = Cluster(initialize_head=True, head_node_args={**node, "_system_config": {"health_check_period_ms": 1000, "health_check_failure_threshold": 3}})
others = [cluster.add_node(**{name: node[name] for name in ("num_cpus", "object_store_memory")}) for _ in range(2)]
print(cluster.address, cluster.head_node.get_session_dir_path(), flush=True)
for line in sys.stdin:
    cluster.remove_node(others.pop(), allow_graceful=False)
    print("removed", flush=True)
cluster.shutdown()
"""


@pytest.fixture(scope="module")
def nodes() -> Iterator[subprocess.Popen[str]]:
    """Three nodes of one CPU; each line that is written kills one."""
    with subprocess.Popen(
        [sys.executable, "-c", NODES],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)


def folder_of(tmp_path: Path) -> Path:
    rows = [{"n": f"<{n}>", "odd": "yes" if n % 2 else "no"} for n in range(ROWS)]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "slow.jsonl").write_text('{"default": true, "reply": {"text": "yes", "delay": 0.4}}\n')
    (tmp_path / "task.yaml").write_text(TASK)
    return tmp_path


def workers(folder: Path) -> list[int]:
    """Processes that carry out pieces of a run in this folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            is_worker = (entry / "cmdline").read_bytes().startswith(b"ray::Worker")
            if is_worker and (entry / "cwd").readlink() == folder.resolve():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def begun(folder: Path, arguments: list[str], least: int) -> subprocess.Popen[str]:
    """A run that has finished so many samples more than there were."""
    logs = folder / "out" / "pieces"

    def finished() -> int:
        return sum(finished_samples(log) for log in logs.glob("*/*.eval"))

    before = finished()
    with (folder / "stdout").open("ab") as shown:
        process = subprocess.Popen(
            [sys.executable, "-c", "from aigo_bridge.cli import main; main()", *arguments],
            cwd=folder,
            env={**os.environ, "OPENAI_API_KEY": KEY},
            stdout=shown,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )
    wait_until(process, lambda: finished() >= before + least)
    return process


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.timeout(600)
def test_driver_worker_and_node_are_killed_and_every_sample_is_there_once(
    tmp_path: Path, nodes: subprocess.Popen[str], command: Run
) -> None:
    assert nodes.stdout is not None
    assert nodes.stdin is not None
    address, session = nodes.stdout.readline().split()
    folder = folder_of(tmp_path)
    task = ["run", "task.yaml", "--model", "scripted/slow.jsonl", "--max-connections", "2"]
    arguments = [*task, "--on", "ray", "--ray-address", address, "--workers", "2", "--piece-rows", "3"]
    driver = begun(folder, [*arguments, "--out", "out"], 2)
    assert workers(folder)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    deadline = time.monotonic() + 60
    while workers(folder):
        assert time.monotonic() < deadline, "workers outlive their driver"
        time.sleep(0.1)
    driver = begun(folder, [*arguments, "--out", "out", "--resume"], 1)
    os.kill(workers(folder)[0], signal.SIGKILL)
    nodes.stdin.write("\n")
    nodes.stdin.flush()
    driver.wait(300)
    told = (folder / "stdout").read_text()
    if driver.returncode:  # the node was the driver's own
        last = command("aigo-bridge", *arguments, "--out", "out", "--resume", cwd=folder)
        assert last.code == 0, told + last.err
    whole = command("aigo-bridge", *task, "--out", "whole", cwd=folder)
    assert whole.code == 0, whole.err
    result: dict[str, Any] = json.loads((folder / "out" / "counted.tasklog.json").read_bytes())
    assert [sample["sample_id"] for sample in result["evidence"]["samples"]] == list(range(ROWS))
    cluster, single = (folder / out / "counted.tasklog.json" for out in ("out", "whole"))
    assert normalised(cluster, was_recovered=True) == normalised(single, was_recovered=True)
    written = [path for place in (folder, Path(session)) for path in place.rglob("*") if path.is_file()]
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--on", "dask"], "--on: found 'dask', expected ray"),
        (["--workers", "2", "--pieces", "3"], "--workers, --pieces: with --on ray only"),
        (["--on", "ray", "--shard", "1/2"], "--shard: not with --on ray"),
        (["--on", "ray", "--engine", "inspect,lighteval"], "--engine inspect,lighteval: not with --on ray"),
        (["--on", "ray", "--pieces", "2", "--piece-rows", "3"], "one of them says how large pieces are"),
        (["--on", "ray", "--ray-address", "ray://h:1"], "expected HOST:PORT or auto"),
    ],
)
def test_wrong_use_is_refused_and_writes_nothing(
    options: list[str], told: str, tmp_path: Path, aigo: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(tmp_path)
    monkeypatch.chdir(folder)
    done = aigo("run", "task.yaml", "--model", "scripted/slow.jsonl", "--out", "out", *options)
    assert done.code == 2
    assert told in " ".join(done.err.split())
    assert not (folder / "out").exists()


def test_without_the_package_the_extra_is_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    words = ["run", folder / "task.yaml", "--model", f"scripted/{folder / 'slow.jsonl'}", "--on", "ray"]
    (done,) = verbs_without(folder, ["ray"], [*words, "--out", folder / "out"])
    assert done.code == 2
    assert "extra 'ray'" in " ".join(done.err.split())
    assert not (folder / "out").exists()
