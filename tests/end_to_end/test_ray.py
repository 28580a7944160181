"""`run --on ray` on three real nodes: killed drivers, workers and nodes lose shards, and the evidence equals one run.

`AIGO_KILLS=20` sets the number of kills and `AIGO_KILLS_SEED` their times (`make nightly`).
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.sharding import normalised
from tests.support.commands import Run
from tests.support.endpoint import Endpoint, Raw, completion
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
KILLS = int(os.environ.get("AIGO_KILLS", "4"))
NODES = """
import os, sys
os.environ.update(RAY_worker_niceness="0", RAY_USAGE_STATS_ENABLED="0")
from ray.cluster_utils import Cluster
node = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
cluster = Cluster(initialize_head=True, head_node_args={**node, "_system_config": {"health_check_period_ms": 1000, "health_check_failure_threshold": 3}})
other = {name: node[name] for name in ("num_cpus", "object_store_memory")}
others = [cluster.add_node(**other) for _ in range(2)]
print(cluster.address, cluster.head_node.get_session_dir_path(), flush=True)
for line in sys.stdin:
    if line == "add\\n":
        others.append(cluster.add_node(**other))
    else:
        cluster.remove_node(others.pop(0), allow_graceful=False)
    print(line, end="", flush=True)
cluster.shutdown()
"""


@dataclass
class Nodes:
    """Cluster of three nodes with one CPU, in its own processes."""

    process: subprocess.Popen[str]
    address: str
    session: Path

    def order(self, word: str) -> None:
        """`kill` a node that is not the head, or `add` one."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == word + "\n"


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    with subprocess.Popen(
        [sys.executable, "-c", NODES],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        address, session = process.stdout.readline().split()
        yield Nodes(process, address, Path(session))
        process.stdin.close()
        process.wait(60)


def folder_of(tmp_path: Path, count: int = ROWS) -> Path:
    rows = [{"n": f"<{n}>", "odd": "yes" if n % 2 else "no"} for n in range(count)]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "slow.jsonl").write_text('{"default": true, "reply": {"text": "yes", "delay": 0.4}}\n')
    (tmp_path / "task.yaml").write_text(TASK)
    return tmp_path


def workers(folder: Path) -> list[int]:
    """Return the processes that run shards in this folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            is_worker = (entry / "cmdline").read_bytes().startswith(b"ray::Worker")
            if is_worker and (entry / "cwd").readlink() == folder.resolve():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def finished_in(folder: Path) -> int:
    """Return the finished samples of all shards that survive their workers."""
    return sum(finished_samples(log) for log in (folder / "out" / "pieces").glob("*/*.eval"))


def started(folder: Path, arguments: list[str], **variables: str) -> subprocess.Popen[str]:
    """Start a run in its own process and write its output to a file of the folder."""
    with (folder / "stdout").open("ab") as shown:
        return subprocess.Popen(
            [sys.executable, "-c", "from aigo_bridge.cli import main; main()", *arguments],
            cwd=folder,
            env={**os.environ, "OPENAI_API_KEY": KEY, "LOCAL_API_KEY": KEY, **variables},
            stdout=shown,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )


def until_gone(folder: Path) -> None:
    """Wait until no worker is left."""
    deadline = time.monotonic() + 90
    while workers(folder):
        assert time.monotonic() < deadline, "workers outlive their driver"
        time.sleep(0.1)


def struck(event: str, driver: subprocess.Popen[str], folder: Path, nodes: Nodes) -> None:
    """Apply a disturbance to a run in progress."""
    if event == "driver":
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        until_gone(folder)
    elif event == "ctrl-C":
        driver.send_signal(signal.SIGINT)
        assert driver.wait(90) == 130, (folder / "stdout").read_text()
        until_gone(folder)
    elif event == "worker":
        with contextlib.suppress(ProcessLookupError, IndexError):  # it has ended by itself in between
            os.kill(workers(folder)[0], signal.SIGKILL)
    else:
        nodes.order("kill")
        nodes.order("add")


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.timeout(600 + 120 * KILLS)
def test_evidence_after_killed_processes_equals_one_run(tmp_path: Path, nodes: Nodes, command: Run) -> None:
    events = ["driver", "ctrl-C", "worker", "node"]
    seed = int(os.environ.get("AIGO_KILLS_SEED", "19"))
    chance = random.Random(seed)
    events = [event for _ in range(KILLS) for event in chance.sample(events, len(events))][:KILLS]
    count = 8 * len(events)
    folder = folder_of(tmp_path, count)
    task = ["run", "task.yaml", "--model", "scripted/slow.jsonl", "--max-connections", "2"]
    arguments = [*task, "--on", "ray", "--ray-address", nodes.address, "--workers", "2", "--piece-rows", "3"]
    arguments += ["--out", "out", "--resume"]
    driver = started(folder, arguments)
    for event in events:
        if driver.poll() is not None:  # the last event was the end of it
            driver = started(folder, arguments)
        least = finished_in(folder) + chance.randint(1, 2)
        wait_until(driver, lambda least=least: finished_in(folder) >= least)  # type: ignore[misc]
        time.sleep(chance.uniform(0, 0.4))
        print(f"{event} at {finished_in(folder)} of {count}", flush=True)  # shown where the test fails
        struck(event, driver, folder, nodes)
    driver.wait(600)
    if driver.returncode:  # it was ended, or the node was its own
        driver = started(folder, arguments)
        assert driver.wait(600) == 0, (folder / "stdout").read_text()
    until_gone(folder)
    whole = command("aigo-bridge", *task, "--out", "whole", cwd=folder)
    assert whole.code == 0, whole.err
    result: dict[str, Any] = json.loads((folder / "out" / "counted.tasklog.json").read_bytes())
    assert [sample["sample_id"] for sample in result["evidence"]["samples"]] == list(range(count))
    cluster, single = (folder / out / "counted.tasklog.json" for out in ("out", "whole"))
    assert normalised(cluster, was_recovered=True) == normalised(single, was_recovered=True)


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.timeout(600)
def test_workers_share_one_limit_and_the_key_is_not_written(tmp_path: Path, nodes: Nodes) -> None:
    folder = folder_of(tmp_path)
    lock, current, peak, limited = threading.Lock(), [0], [0], list[float]()

    def answer(_: Any) -> tuple[int, dict[str, Any]] | Raw:
        with lock:
            current[0] += 1
            peak[0] = max(peak[0], current[0])
            is_limited = not limited and len(endpoint.times) == 5
            if is_limited:
                limited.append(time.monotonic())
        if not is_limited:
            time.sleep(0.3)
        with lock:
            current[0] -= 1
        return (
            Raw((b"{}",), status=429, headers={"Retry-After": "3"})
            if is_limited
            else (200, completion("yes"))
        )

    endpoint = Endpoint()
    endpoint.answer = answer
    endpoint.start()
    words = ["run", "task.yaml", "--model", "openai-api/local/m"]
    words += ["--on", "ray", "--ray-address", nodes.address, "--workers", "2", "--piece-rows", "3"]
    try:
        driver = started(
            folder, [*words, "--max-connections", "3", "--out", "out"], LOCAL_BASE_URL=endpoint.url
        )
        assert driver.wait(300) == 0, (folder / "stdout").read_text()
    finally:
        endpoint.stop()
    times = sorted(endpoint.times)
    assert len(times) == ROWS + 1
    assert 1 < peak[0] <= 3
    # Calls in progress arrive; after that, no worker sends a call.
    assert [moment for moment in times if 1 < moment - limited[0] < 3] == []
    assert {headers["authorization"] for headers in endpoint.headers} == {f"Bearer {KEY}"}
    written = [path for place in (folder, nodes.session) for path in place.rglob("*") if path.is_file()]
    assert any(path.name == "counted.tasklog.json" for path in written)
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []
    told = re.findall(rf"^(\d+)/{ROWS} samples", (folder / "stdout").read_text(), re.MULTILINE)
    assert told[-1] == str(ROWS)  # one display of all workers
    assert sorted(told, key=int) == told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--on", "dask"], "--on: found 'dask', expected ray"),
        (["--workers", "2", "--pieces", "3"], "--workers, --pieces: only with --on ray"),
        (["--on", "ray", "--shard", "1/2"], "--shard: cannot be combined with --on ray"),
        (
            ["--on", "ray", "--engine", "inspect,lighteval"],
            "--engine inspect,lighteval: cannot be combined with --on ray",
        ),
        (["--on", "ray", "--pieces", "2", "--piece-rows", "3"], "use only one of them"),
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


def test_missing_ray_package_is_reported_with_its_extra(
    tmp_path: Path, aigo: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # cannot be imported
    folder = folder_of(tmp_path)
    words = ["run", folder / "task.yaml", "--model", f"scripted/{folder / 'slow.jsonl'}", "--on", "ray"]
    done = aigo(*words, "--out", folder / "out")
    assert done.code == 2
    assert "extra 'ray'" in " ".join(done.err.split())
    assert not (folder / "out").exists()
