"""Start-up of the command line, and commands on four samples, compared with `python -c pass`: CPU seconds,
medians of several interleaved runs. Import of a small Inspect log is compared with Inspect's own reader.

python benchmarks/startup.py [--runs 20]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from ratios import record

BIN = Path(sys.executable).parent
ROOT = Path(__file__).resolve().parent.parent
TASK = "examples/capitals"
LOG = "tests/golden/inspect/0.3.240.eval"
FLOOR = "python -c pass"


def commands(folder: Path) -> dict[str, list[str]]:
    """Row → command. The first import writes the result that later commands read."""
    result = str(folder / f"{Path(LOG).stem}.tasklog.json")
    verbs = {
        "import": ["import", LOG, "--out", str(folder)],
        "validate": ["validate", TASK],
        "explain": ["explain", TASK],
        "list": ["list"],
        "schema": ["schema", "task"],
        "show": ["show", result],
        "stats": ["stats", result],
        "table": ["table", result, "--out", str(folder / "samples.csv")],
        "report": ["report", result, "--out", str(folder / "report.html")],
    }
    return {
        FLOOR: [sys.executable, "-c", "pass"],
        "import typer": [sys.executable, "-c", "import typer"],
        "aigo-bridge --help": [str(BIN / "aigo-bridge"), "--help"],
        "aigo-bridge run --help": [str(BIN / "aigo-bridge"), "run", "--help"],
        "import aigo_bridge.dtypes": [sys.executable, "-c", "import aigo_bridge.dtypes"],
        "read_eval_log": [
            sys.executable,
            "-c",
            f"from inspect_ai.log import read_eval_log; read_eval_log({LOG!r})",
        ],
        **{f"aigo-bridge {verb}": [str(BIN / "aigo-bridge"), *rest] for verb, rest in verbs.items()},
    }


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    # Otherwise every command would compile the modules again.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        rows = commands(Path(folder))
        times: dict[str, list[float]] = {name: [] for name in rows}
        for turn in range(runs + 1):
            for name, command in rows.items():
                start = cpu()
                subprocess.run(
                    command,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    check=True,
                    cwd=ROOT,
                    env=environment,
                )
                if turn:  # The first run compiles modules.
                    times[name].append(cpu() - start)
    floor = statistics.median(times[FLOOR])
    for name, measured in times.items():
        median = statistics.median(measured)
        print(f"{name:28} {median * 1000:7.1f} ms   {median / floor:5.1f} × {FLOOR}")
        if name not in (FLOOR, "read_eval_log"):
            record(name, median / floor)
    own, theirs = (statistics.median(times[name]) for name in ("aigo-bridge import", "read_eval_log"))
    record("aigo-bridge import | read_eval_log", own / theirs)


if __name__ == "__main__":
    main()
