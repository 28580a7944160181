"""Runs in shards: seconds and memory of a shard and of the merge, by the number of samples.

    python benchmarks/shards.py [--samples 10000,100000] [--shard-size 2500] [--engine echo]

Shards run one after the other, each in its own process, like a scheduler with one machine. The model is
scripted. `shard` is the mean of the shards' CPU seconds; `start` is the cost of a shard without rows in
addition to the import of Inspect. Memory is the peak of the largest process."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from ratios import record

TASK = """key: shards
display_name: Shards
description: ''
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.question }}"}]}
  scorers:
    - {type: string_equals, ground_truth: "{{ sample.answer }}"}
"""

WATCH = """
import threading, time
most = 0
def look():
    global most
    with open("/proc/self/status") as status:
        most = max(most, next(int(line.split()[1]) for line in status if line.startswith("RssAnon")))
def watch():
    while True:
        look()
        time.sleep(0.1)
def report():
    look()
    print(most, file=sys.__stderr__)
threading.Thread(target=watch, daemon=True).start()
"""
"""Code that measures the private memory of a process. The kernel can reclaim the mapped pages of a result."""

INSPECT = (
    "import inspect_ai, inspect_ai._eval.eval\n"
    "from inspect_ai._util.entrypoints import ensure_entry_points\nensure_entry_points()"
)
"""Code with the imports of Inspect at the start of an `eval`, including packages that register tasks."""

COMMAND = "from aigo_bridge.cli import main; main()"

ECHO = f"""
import sys
sys.path.insert(0, {str(Path(__file__).resolve().parents[1])!r})
from tests.support.plugin.aigo_bridge_words.echo import EchoEngine
from aigo_bridge.engine import registry
registry.engine_class = lambda name: EchoEngine
"""
"""Code that sets up a minimal engine, to measure the cost of a sample in the core alone with many samples."""


def prepare(folder: Path, samples: int) -> None:
    with (folder / "rows.jsonl").open("w") as rows:
        for number in range(samples):
            row = {"question": f"What is {number} plus {number % 7}?", "answer": str(number % 3)}
            rows.write(json.dumps(row) + "\n")
    (folder / "model.jsonl").write_text('{"default": true, "reply": "0"}\n')
    (folder / "task.yaml").write_text(TASK)


def measured(code: str, *arguments: str) -> tuple[float, float]:
    """Return CPU seconds and peak memory in MiB of an aigo-bridge process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = f"import sys; sys.argv[1:] = {list(arguments)!r}\n{WATCH}"
    script = f"{begin}\ntry:\n    exec({code!r})\nfinally:\n    report()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, int(done.stderr.split()[-1]) / 1024


def run(samples: int, size: int, engine: str) -> dict[str, float]:
    """Run the given number of samples in shards, and merge them."""
    count = -(-samples // size)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, samples)
        task, model, out = folder / "task.yaml", folder / "model.jsonl", folder / "parts"
        code = (ECHO if engine == "echo" else "") + COMMAND
        command = (
            "run",
            str(task),
            "--engine",
            engine,
            "--model",
            f"scripted/{model}",
            "--out",
            str(out),
            "--json",
        )
        shards = [measured(code, *command, "--shard", f"{number}/{count}") for number in range(1, count + 1)]
        merge = measured(code, "merge", str(out), "--out", str(folder / "merged"), "--json")
    return {
        "samples": samples,
        "shards": count,
        "seconds of a shard": sum(seconds for seconds, _ in shards) / count,
        "MiB of a shard": max(memory for _, memory in shards),
        "seconds of the merge": merge[0],
        "MiB of the merge": merge[1],
    }


def start() -> float:
    """Return the CPU seconds of a shard with one row in addition to the import of Inspect."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, 1)
        model = f"scripted/{folder / 'model.jsonl'}"
        arguments = ("run", str(folder / "task.yaml"), "--model", model, "--shard", "1/1", "--json")
        seconds = min(measured(COMMAND, *arguments, "--out", str(folder / f"out{n}"))[0] for n in range(2))
    return seconds - min(measured(INSPECT)[0] for _ in range(2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", default="10000,100000")
    parser.add_argument("--shard-size", type=int, default=2500)
    parser.add_argument("--engine", default="inspect", choices=["inspect", "lighteval", "echo"])
    options = parser.parse_args()
    rows = []
    for samples in map(int, options.samples.split(",")):
        rows.append(run(samples, options.shard_size, options.engine))
        print("  ".join(f"{name} {value:,.1f}" for name, value in rows[-1].items()), flush=True)
    first, last = rows[0], rows[-1]
    of_one = [row["seconds of the merge"] / row["samples"] for row in (first, last)]
    beyond = start()
    print(f"a shard's start beyond Inspect's import: {beyond:.2f} s")
    record("merge, time of a sample, last size to first", of_one[1] / of_one[0])
    record("merge, memory, last size to first", last["MiB of the merge"] / first["MiB of the merge"])
    record("a shard, memory, last size to first", last["MiB of a shard"] / first["MiB of a shard"])


if __name__ == "__main__":
    main()
