"""Start-up of the command line beside `python -c pass`: CPU seconds, medians of several runs each,
interleaved.

python benchmarks/startup.py [--runs 20]
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
from pathlib import Path

from ratios import record

BIN = Path(sys.executable).parent
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import typer": [sys.executable, "-c", "import typer"],
    "aigo-bridge --help": [str(BIN / "aigo-bridge"), "--help"],
    "aigo-bridge run --help": [str(BIN / "aigo-bridge"), "run", "--help"],
    "import aigo_bridge.dtypes": [sys.executable, "-c", "import aigo_bridge.dtypes"],
}


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(runs):
        for name, command in COMMANDS.items():
            start = cpu()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            times[name].append(cpu() - start)
    floor = statistics.median(times["python -c pass"])
    for name, measured in times.items():
        median = statistics.median(measured)
        print(f"{name:28} {median * 1000:7.1f} ms   {median / floor:5.1f} × python -c pass")
        if name != "python -c pass":
            record(name, median / floor)


if __name__ == "__main__":
    main()
