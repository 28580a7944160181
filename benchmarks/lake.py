"""Imports into a lake: CPU seconds of all processes for many small logs, by number of workers.

    python benchmarks/lake.py [--logs 2000] [--workers 1,2]

The logs are copies of a log with two samples. Each has its own ids, so that each is a separate run. CPU
seconds are measured separately for the driver and its workers; on a shared machine, they are more reliable
than wall time. The driver does not open logs. It commits the data files that the workers have written. The
peer is Inspect's `read_eval_log`.

`speed-up` is the speed-up of two workers on two free cores: the CPU seconds of the run with one worker,
including the driver, divided by the CPU seconds of the driver and half of the workers in the other run.
`driver at 16` is the driver's share of the time when 16 workers are busy: a log takes them w / 16 seconds and
the driver d, so that its share is 16 d / w. `cores in use` also counts the time in which a worker could run
but other programs had the cores: only waiting for the driver, for work and for the last piece is a loss."""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ratios import record

from aigo_bridge.importing.log_import import ImportOptions
from aigo_bridge.process.pool import each_in_processes
from aigo_scale.lake.importing import import_into
from aigo_scale.lake.pieces import pieces_at

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "tests" / "golden" / "inspect" / "0.3.95.eval"


def make_logs(folder: Path, count: int) -> None:
    """Write one log for each run."""
    with zipfile.ZipFile(SOURCE) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    task_id = json.loads(members["header.json"])["eval"]["task_id"]
    folder.mkdir(parents=True)
    for number in range(count):
        own = f"{task_id[:-6]}{number:06d}"
        with zipfile.ZipFile(folder / f"{number:06d}_task_{own}.eval", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content.replace(task_id.encode(), own.encode()))


def peer(logs: Path) -> float:
    """Return the CPU seconds that Inspect needs to read the logs."""
    from inspect_ai.log import read_eval_log

    files = list(map(str, logs.iterdir()))
    read_eval_log(files[0])
    began = time.process_time()
    for file in files:
        read_eval_log(file)
    return time.process_time() - began


class HandOut:
    """Processes, and the time in which they could run."""

    def __init__(self, folder: Path):
        self._folder = folder
        self.wall = 0.0

    def __call__(
        self, work: Callable[..., Any], calls: Sequence[tuple[Any, ...]], jobs: int
    ) -> Iterator[Any]:
        """Make calls in processes; see `import_into`."""
        began = time.monotonic()
        yield from each_in_processes(_call, [(self._folder, work, call) for call in calls], jobs)
        self.wall += time.monotonic() - began

    @property
    def runnable(self) -> float:
        """Return the seconds in which the processes ran or waited for a core."""
        return sum(float(path.read_text()) for path in self._folder.iterdir())


def _call(folder: Path, work: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    result = work(*arguments)
    # Running time and waiting time of this process in nanoseconds.
    running, waiting, _ = Path("/proc/self/schedstat").read_text().split()
    (folder / str(os.getpid())).write_text(str((int(running) + int(waiting)) / 1e9))
    return result


def measure(logs: Path, lake: str, workers: int, folder: Path) -> dict[str, float]:
    """Measure one import in its own process."""
    folder.mkdir()
    hand_out = HandOut(folder)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        before = resource.getrusage(resource.RUSAGE_SELF)
        began = time.monotonic()
        tally = import_into(
            lake,
            pieces_at([str(logs)]),
            ImportOptions(jobs=workers),
            lambda report: sys.stderr.write("\n".join(report.lines)[:0]),
            hand_out=hand_out,
        )
        wall = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_SELF)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = {
            "logs": tally.imported,
            "wall": wall,
            "runnable": hand_out.runnable + wall - hand_out.wall,
            "driver": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "workers": children.ru_utime + children.ru_stime,
        }
        os.write(write, json.dumps(seconds).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        content = pipe.read()
    os.waitpid(child, 0)
    return dict(json.loads(content))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--logs", type=int, default=2000)
    parser.add_argument("--workers", default="1,2")
    given = parser.parse_args()
    rows: dict[int, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        make_logs(Path(folder, "logs"), given.logs)
        for workers in map(int, given.workers.split(",")):
            lake = Path(folder, f"lake-{workers}")
            rows[workers] = one = measure(
                Path(folder, "logs"), str(lake), workers, Path(folder, f"times-{workers}")
            )
            driver, worker = (1000 * one[name] / one["logs"] for name in ("driver", "workers"))
            size = sum(path.stat().st_size for path in lake.rglob("*") if path.is_file())
            print(
                f"{workers} workers: {one['logs']:.0f} logs, {one['wall']:.1f} s, {size / 1e6:.1f} MB. A log"
                f" takes the driver {driver:.2f} ms and a worker {worker:.1f} ms of CPU; driver at 16:"
                f" {16 * driver / worker:.1%}"
            )
            shutil.rmtree(lake)
        reading = peer(Path(folder, "logs"))
    if 1 in rows:
        spent = rows[1]["driver"] + rows[1]["workers"]
        print(f"one worker needs {spent / reading:.2f} times the CPU seconds of read_eval_log")
        record("import | read_eval_log", spent / reading)
    if {1, 2} <= rows.keys():
        alone = rows[1]["driver"] + rows[1]["workers"]
        both = rows[2]["driver"] + rows[2]["workers"] / 2
        print(f"speed-up: {alone / both:.2f} by CPU, {rows[1]['wall'] / rows[2]['wall']:.2f} by the clock")
        used = rows[2]["runnable"] / 2 / rows[2]["wall"]
        print(f"two workers use {used:.2f} of two cores (goal 0.9)")
        record("cores | cores in use", 1 / used)
        record("time of two free cores | half of one", 2 * both / alone)


if __name__ == "__main__":
    main()
