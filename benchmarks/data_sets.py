"""Reading datasets: time and peak memory by format, size and selection, compared with the bare parser.

    python benchmarks/data_sets.py [--rows 1000000]

Every measurement runs in its own process. Memory is the peak above the memory of the imports.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from ratios import record

MEASURE = """
import csv, resource, sys, time
from pathlib import Path
import orjson
from aigo_bridge.datasets.files import load_file
what, path, number, subsampling = sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]
from aigo_bridge.datasets import rows
from aigo_bridge.datasets.rows import Selection
selection = Selection(None if number == "all" else int(number), subsampling)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
if what == "orjson":
    with path.open("rb") as file:
        for line in file:
            orjson.loads(line)
elif what == "csv":
    with path.open(newline="") as file:
        for row in csv.reader(file):
            pass
elif what == "ids":
    ids = rows._Ids()
    for count in range(int(number)):
        ids.observe(f"row-{count}")
    assert ids.are_usable()
elif what == "set of ids":
    ids = {f"row-{count}" for count in range(int(number))}
else:
    load_file(path, selection)
seconds = time.process_time() - start
print(seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def make(folder: Path, rows: int) -> None:
    with (folder / "d.jsonl").open("w") as lines, (folder / "d.csv").open("w", newline="") as cells:
        writer = csv.writer(cells)
        writer.writerow(["sample_id", "question", "answer", "weight", "easy"])
        for number in range(rows):
            row = [
                f"row-{number}",
                f"What is the capital of country {number}?",
                f"City {number}",
                number / 7,
                number % 2 == 0,
            ]
            writer.writerow(row)
            lines.write(
                json.dumps(dict(zip(["sample_id", "question", "answer", "weight", "easy"], row, strict=True)))
                + "\n"
            )


def measured(what: str, path: Path, number: str = "all", subsampling: str = "head") -> tuple[float, float]:
    command = [sys.executable, "-c", MEASURE, what, str(path), number, subsampling]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, mebibytes = map(float, ran.stdout.split())
    return seconds, mebibytes


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, rows)
        print(f"{rows:,} rows{'':24} {'CPU s':>8} {'rows/s':>10} {'peak MiB':>9}")
        for label, what, file, number, subsampling in [
            ("JSONL, orjson alone", "orjson", "d.jsonl", "all", "head"),
            ("JSONL, first 100", "ours", "d.jsonl", "100", "head"),
            ("JSONL, random 1,000", "ours", "d.jsonl", "1000", "random"),
            ("JSONL, all", "ours", "d.jsonl", "all", "head"),
            ("CSV, csv alone", "csv", "d.csv", "all", "head"),
            ("CSV, first 100", "ours", "d.csv", "100", "head"),
            ("CSV, random 1,000", "ours", "d.csv", "1000", "random"),
            ("CSV, all", "ours", "d.csv", "all", "head"),
        ]:
            seconds, mebibytes = measured(what, folder / file, number, subsampling)
            if what != "ours":
                least = seconds
            else:
                record(label, seconds / least)
            print(f"{label:36} {seconds:8.2f} {rows / seconds:10,.0f} {mebibytes:9.1f}")
        floor = measured("set of ids", folder, str(rows))[1] or 1.0
        ratio = measured("ids", folder, str(rows))[1] / floor
        print(f"{'ids remembered, compared with a set of them':36} {ratio:29.2f} x")
        record("memory of ids", ratio)


if __name__ == "__main__":
    main()
