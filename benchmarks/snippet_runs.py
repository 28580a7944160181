"""A run whose solver is Python that calls the model: seconds, CPU seconds and memory of the runner and its
workers.

    python benchmarks/snippet_runs.py [--samples 200] [--repeat 3] [--against PYTHON]

Three models answer immediately, after 0.1 s and after one second, like remote models. Each run uses a new
process. `--against` names the interpreter of another state of this project: both run alternately, and the
ratio of their best runs is printed. The columns show the cost of one worker for each call in progress: number
of workers, and their peak memory with shared pages counted once."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TASK = """key: asking
display_name: Asking
description: ''
definition:
  dataset: {key: rows}
  solver:
    type: python
    run_solver_snippet: |
      async def run_solver(sample, model, trace):
          trace.append_user_message(sample["question"])
          trace.add_model_response(await model.predict(trace.items))
  scorers:
    - {type: string_equals, ground_truth: "{{ sample.answer }}"}
"""
DELAYS = (0.0, 0.1, 1.0)


@dataclass(frozen=True)
class Measure:
    """Cost of one run."""

    seconds: float
    cpu: float
    workers: int
    megabytes: float
    """Peak memory of all workers together."""


def prepare(folder: Path, samples: int, delay: float) -> None:
    rows = [{"question": f"What is {n} plus {n}?", "answer": str(2 * n)} for n in range(samples)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    reply = {"default": True, "reply": {"text": "42", "delay": delay}}
    (folder / "model.jsonl").write_text(json.dumps(reply) + "\n")
    (folder / "task.yaml").write_text(TASK)


def child(folder: Path) -> None:
    """Measure one run from inside the process."""
    from aigo_bridge.engine.protocol import RunSettings
    from aigo_bridge.engine.registry import load_engine
    from aigo_bridge.evaluation.task import plan, run
    from aigo_bridge.plan.plan import PlanOrigin

    origin = PlanOrigin(task=str(folder / "task.yaml"), datasets={"rows": str(folder / "rows.jsonl")})
    engine, task = load_engine("inspect"), plan(origin)
    settings = RunSettings(out=folder / "out", model=f"scripted/{folder / 'model.jsonl'}")
    watch = Watch()
    start = time.perf_counter()
    assert run(task, engine, settings).num_failed == 0
    seconds = time.perf_counter() - start
    watch.stop()
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(each.ru_utime + each.ru_stime for each in usage)
    print(json.dumps([seconds, cpu, watch.workers, watch.megabytes]))


class Watch(threading.Thread):
    """Measure the workers twice per second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.workers, self.megabytes = 0, 0.0
        self._stopped = threading.Event()
        self.start()

    def run(self) -> None:
        while not self._stopped.wait(0.5):
            sizes = [size for size in map(proportional_size, children()) if size]
            self.workers = max(self.workers, len(sizes))
            self.megabytes = max(self.megabytes, sum(sizes))

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def children() -> list[str]:
    threads = Path("/proc/self/task").iterdir()
    return [number for thread in threads for number in (thread / "children").read_text().split()]


def proportional_size(process: str) -> float:
    """Return the megabytes of a snippet worker; 0 for other processes."""
    with suppress(OSError):
        if b"snippets" in Path(f"/proc/{process}/cmdline").read_bytes():
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
            return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))
    return 0.0


def measure(python: str, samples: int, delay: float) -> Measure:
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), samples, delay)
        command = [python, __file__, "--child", folder]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    return Measure(*json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--against")
    parser.add_argument("--child", type=Path)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child)
        return
    pythons = {"this": sys.executable} | ({"other": arguments.against} if arguments.against else {})
    for delay in DELAYS:
        runs: dict[str, list[Measure]] = {name: [] for name in pythons}
        for _ in range(arguments.repeat):
            for name, python in pythons.items():
                runs[name].append(measure(python, arguments.samples, delay))
        best = {name: min(rows, key=lambda row: row.seconds) for name, rows in runs.items()}
        for name, row in best.items():
            workers = f"{row.workers:3} workers of {row.megabytes:4.0f} MB"
            print(f"model {delay:g} s  {name:5} {row.seconds:6.2f} s  CPU {row.cpu:6.2f} s  {workers}")
        if "other" in best:
            print(f"model {delay:g} s  ratio {best['this'].seconds / best['other'].seconds:.3f}", flush=True)


if __name__ == "__main__":
    main()
