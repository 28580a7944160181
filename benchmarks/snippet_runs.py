"""Run file of 100 specifications, each with its own Python scorer: snippet workers and memory of all
processes, compared with a run file of one specification.

    python benchmarks/snippet_runs.py [--specifications 100] [--samples 4]

The processes are sampled ten times a second. Memory that several of them share counts once.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ratios import record

GOAL_MEGABYTES = 1000.0
SCORER = "def compute_scores(sample, solver_output):\n    return {'score': float(%d)}\n"


@dataclass(frozen=True)
class Peak:
    """Most snippet workers, and most megabytes of all processes, at one time."""

    workers: int
    megabytes: float


def prepare(folder: Path, specifications: int, samples: int) -> None:
    rows = "".join(json.dumps({"question": f"{number}?"}) + "\n" for number in range(samples))
    (folder / "rows.jsonl").write_text(rows)
    (folder / "model.jsonl").write_text('{"default": true, "reply": "42"}\n')
    message = {"role": "user", "content": "{{ sample.question }}"}
    builder = {"type": "chat_completion", "input_messages": [message]}
    tasks = [
        {
            "key": f"task-{number}",
            "display_name": "Task",
            "description": "",
            "definition": {
                "dataset": {"key": "rows"},
                "solver": {"type": "single_turn_solver", "input_builder": builder},
                "scorers": [{"type": "python", "compute_scores_snippet": SCORER % number}],
            },
        }
        for number in range(specifications)
    ]
    run = {
        "datasets": [
            {"key": "rows", "display_name": "Rows", "source": {"type": "local", "file_path": "rows.jsonl"}}
        ],
        "tasks": tasks,
        "evaluation": {
            "key": "many",
            "display_name": "Many",
            "task_specifications": [{"task_key": task["key"], "model_key": "model"} for task in tasks],
        },
    }
    (folder / "run.yaml").write_text(json.dumps(run))


def processes(parent: int) -> Iterator[int]:
    """Yield a process and all that it has started."""
    yield parent
    with suppress(OSError):
        for thread in Path(f"/proc/{parent}/task").iterdir():
            for child in (thread / "children").read_text().split():
                yield from processes(int(child))


def memory(process: int) -> float:
    with suppress(OSError):
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))
    return 0.0


def is_worker(process: int) -> bool:
    with suppress(OSError):
        return b"snippets" in Path(f"/proc/{process}/cmdline").read_bytes()
    return False


def measured(specifications: int, samples: int) -> Peak:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, specifications, samples)
        model = ["--model", f"scripted/{folder / 'model.jsonl'}", "--out", str(folder / "out")]
        command = [str(Path(sys.executable).parent / "aigo-bridge"), "run", str(folder / "run.yaml"), *model]
        with (folder / "output").open("w") as output:
            run = subprocess.Popen(command, stdout=output, stderr=output)
            workers, megabytes, ended = 0, 0.0, False
            while not ended:
                with suppress(subprocess.TimeoutExpired):
                    ended = run.wait(0.1) is not None
                seen = list(processes(run.pid))
                workers = max(workers, sum(map(is_worker, seen)))
                megabytes = max(megabytes, sum(map(memory, seen)))
        if run.returncode:
            raise SystemExit((folder / "output").read_text()[-3000:])
    return Peak(workers, megabytes)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--specifications", type=int, default=100)
    parser.add_argument("--samples", type=int, default=4)
    options = parser.parse_args()
    one, many = (measured(count, options.samples) for count in (1, options.specifications))
    for count, peak in ((1, one), (options.specifications, many)):
        print(f"{count:4} specifications: {peak.workers:3} workers, {peak.megabytes:5.0f} MB")
    print(f"goal: {GOAL_MEGABYTES:g} MB")
    record("workers | specifications", many.workers / options.specifications)
    record("memory | one specification", many.megabytes / one.megabytes)


if __name__ == "__main__":
    main()
