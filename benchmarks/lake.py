"""Imports into a lake: seconds of all processes for many small logs, by the number of workers, and what the
driver and the storage take of it.

    python benchmarks/lake.py [--logs 2000] [--workers 1,2]

The logs are copies of one with two samples, each with ids of its own, so that each is a run of its own. CPU
seconds are those of the driver and of its workers, each by itself; on a machine that others use, they say
more than the clock does. `speed-up` is what two workers would reach on two free cores: the CPU seconds of one
worker's run, driver included, by those of the driver and of half of the other run's workers.

A worker waits for the disk (each table of a log is there before its entry is), and for its turn where others
use the machine.

`driver at 16` is the driver's share of the time when 16 workers are busy: a log takes them w / 16 seconds,
the driver d, so that its share is 16 d / w. For d, 16 processes are handed 2,000 and 10,000 logs and answer
at once, with the report and the entry of a real one: d is what each of the 8,000 more costs the driver, and
what is over is its start, most of it the forks.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import resource
import shutil
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from aigo_bridge.importing.log_import import ImportOptions, ImportReport
from aigo_bridge.lake.importing import import_into
from aigo_bridge.lake.pieces import Piece, pieces_at
from aigo_bridge.process.pool import each_in_processes

ROOT = Path(__file__).resolve().parents[1]
TASK, MODEL = "task of twenty letters", "provider/a-model-name"
SOURCE = ROOT / "tests" / "golden" / "inspect" / "0.3.95.eval"


def make_logs(folder: Path, count: int) -> None:
    """Logs of as many runs."""
    with zipfile.ZipFile(SOURCE) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    task_id = json.loads(members["header.json"])["eval"]["task_id"]
    folder.mkdir(parents=True)
    for number in range(count):
        own = f"{task_id[:-6]}{number:06d}"
        with zipfile.ZipFile(folder / f"{number:06d}.eval", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content.replace(task_id.encode(), own.encode()))


def measure(logs: Path, lake: str, workers: int) -> dict[str, float]:
    """One import, in a process of its own."""
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
            hand_out=each_in_processes,
        )
        wall = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_SELF)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = {
            "logs": tally.imported,
            "wall": wall,
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


def answer(lake: str, pieces: tuple[Piece, ...], *_: object) -> list[ImportReport]:
    """What an import gives, without the import."""
    entry = next(Path(lake, "manifest").glob("real-*"))
    for piece in pieces:
        digest = hashlib.sha256(piece.location.encode()).hexdigest()
        own = entry.read_text().replace(entry.stem.removeprefix("real-"), digest)
        own = own.replace(entry.stem.removeprefix("real-")[:32], digest[:32])
        own = re.sub(r'"run_id":"[^"]*"', f'"run_id":"{digest[:22]}"', own)
        Path(lake, "manifest", f"log-{digest}.json").write_text(own)
    return [
        ImportReport(
            piece.location,
            status="success",
            samples=2,
            trials=2,
            runs=(f"{hashlib.sha256(piece.location.encode()).hexdigest()[:22]}\0{TASK}\0{MODEL}",),
        )
        for piece in pieces
    ]


def simulate(logs: Path, lake: Path, count: int) -> float:
    """CPU seconds of the driver for as many logs more, with 16 processes that answer at once."""
    import_into(str(lake), pieces_at([str(logs / "000000.eval")]), ImportOptions(jobs=1), lambda _: None)
    (entry,) = (lake / "manifest").glob("log-*")
    entry.rename(entry.with_name(entry.name.replace("log-", "real-")))
    folder = logs.with_name(f"many-{count}")
    folder.mkdir()
    for number in range(count):
        folder.joinpath(f"{number:06d}.eval").touch()
    began = time.process_time()
    import_into(
        str(lake),
        pieces_at([str(folder)]),
        ImportOptions(jobs=16),
        lambda report: sys.stderr.write("\n".join(report.lines)[:0]),
        hand_out=lambda _, work, jobs: each_in_processes(answer, work, jobs),
    )
    return time.process_time() - began


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
            rows[workers] = one = measure(Path(folder, "logs"), str(lake), workers)
            per_log = {name: 1000 * one[name] / one["logs"] for name in ("wall", "driver", "workers")}
            print(
                f"{workers} workers: {one['logs']:.0f} logs, {one['wall']:.1f} s; a log takes the driver"
                f" {per_log['driver']:.2f} ms and a worker {per_log['workers']:.1f} ms of CPU; a worker waits"
                f" {1 - (one['driver'] + one['workers']) / one['wall'] / workers:.0%} of the time"
            )
            shutil.rmtree(lake)
        few, many = (
            simulate(Path(folder, "logs"), Path(folder, f"simulated-{count}"), count)
            for count in (2_000, 10_000)
        )
        driver = (many - few) / 8_000
        print(f"driver with 16: {1000 * driver:.3f} ms for a log, {few - 2_000 * driver:.2f} s for its start")
        for workers, one in rows.items():
            worker = one["workers"] / one["logs"]
            print(
                f"driver at 16, worker of {workers}: 16 * {1000 * driver:.3f} ms / {1000 * worker:.1f} ms ="
                f" {16 * driver / worker:.1%}"
            )
    if {1, 2} <= rows.keys():
        alone = rows[1]["driver"] + rows[1]["workers"]
        both = rows[2]["driver"] + rows[2]["workers"] / 2
        print(f"speed-up: {alone / both:.2f} by CPU, {rows[1]['wall'] / rows[2]['wall']:.2f} by the clock")


if __name__ == "__main__":
    main()
