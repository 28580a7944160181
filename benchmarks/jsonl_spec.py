"""Validating JSONL task records, compared with `orjson.loads` alone: records per CPU second, and memory.

    python benchmarks/jsonl_spec.py [--records 200000]

Goal: 100,000 records per second on one core, including parsing. Every measurement runs in its own process.
Memory is the peak above the memory of the imports, for a reader that does not keep tasks.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from ratios import record

MEASURE = """
import resource, sys, time
from pathlib import Path
import orjson
from aigo_bridge.jsonl_spec import read_records, validate_file
what, path = sys.argv[1], Path(sys.argv[2])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
if what == "orjson":
    with path.open("rb") as file:
        for line in file:
            orjson.loads(line)
elif what == "stream":
    for found in read_records(path):
        pass
else:
    validate_file(path)
seconds = time.process_time() - start
print(seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""

KINDS = {
    "short, one example": "the example of the format page",
    "mixed": "all categories, 0 to 8 examples, metadata nested and not, quotes and colons",
    "long prompts": "4 KB of text, no examples",
    "all bad": "every line violates two rules",
}


def short(number: int, _: random.Random) -> dict[str, Any]:
    return {
        "task_id": f"arith_{number}",
        "category": "arithmetic",
        "prompt": "Compute the result. Question: 17 + 24\nAnswer:",
        "targets": ["41"],
        "metric_name": "exact_match",
        "few_shot_examples": [{"prompt": "Question: 2 + 2\nAnswer:", "completion": "4"}],
        "post_process": "strip_whitespace",
        "metadata": {"difficulty": "easy"},
    }


def mixed(number: int, chance: random.Random) -> dict[str, Any]:
    category, metric, rule, targets = chance.choice(
        [
            ("arithmetic", "exact_match", "strip_whitespace", ["41"]),
            ("mcq", "exact_match", "extract_letter", ["B"]),
            ("code_exec", "code_exec", "extract_code_block", ["assert f(1) == 2"]),
            ("classification", "f1", "lower", ["spam", "junk"]),
            ("summary", "rouge_l", "none", ["A river rose.", "Water rose in a river."]),
        ]
    )
    examples = [
        {"prompt": f'Question: what is "{n}"?\nAnswer:', "completion": f"{n}"}
        for n in range(chance.randrange(9))
    ]
    metadata = chance.choice([{}, {"difficulty": "hard", "n": 3}, {"source": {"name": "x", "pages": [1, 2]}}])
    return {
        "task_id": f"{category}_{number}",
        "category": category,
        "prompt": f'Answer: the "{number}" of "{category}": ' + "word " * chance.randrange(60) + "end",
        "targets": targets,
        "metric_name": metric,
        "few_shot_examples": examples,
        "post_process": rule,
        "metadata": metadata,
    }


def long(number: int, _: random.Random) -> dict[str, Any]:
    text = "Some longer passage of text, with a colon: here. " * 80
    return {**short(number, _), "prompt": f"{text}\nQuestion: what?\nAnswer:", "few_shot_examples": []}


def bad(number: int, _: random.Random) -> dict[str, Any]:
    return {**short(number, _), "metric_name": "accurracy", "targets": []}


MAKERS = dict(zip(KINDS, (short, mixed, long, bad), strict=True))


def measured(what: str, path: Path, repeat: int) -> tuple[float, float]:
    command = [sys.executable, "-c", MEASURE, what, str(path)]
    best = (float("inf"), 0.0)
    for _ in range(repeat):
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds, mebibytes = map(float, ran.stdout.split())
        best = min(best, (seconds, mebibytes))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    records = options.records
    with tempfile.TemporaryDirectory() as name:
        print(
            f"{records:,} records{'':18} {'orjson/s':>11} {'stream/s':>11}"
            f" {'in lists/s':>11} {'stream MiB':>11}"
        )
        for number, (kind, make) in enumerate(MAKERS.items()):
            path = Path(name, f"{number}.jsonl")
            chance = random.Random(number)
            with path.open("w") as file:
                for index in range(records):
                    file.write(json.dumps(make(index, chance)) + "\n")
            floor, stream, kept = (
                measured(what, path, options.repeat) for what in ("orjson", "stream", "kept")
            )
            rates = [records / seconds for seconds, _ in (floor, stream, kept)]
            print(f"{kind:32} {rates[0]:11,.0f} {rates[1]:11,.0f} {rates[2]:11,.0f} {stream[1]:11.1f}")
            record(f"{kind}, stream", stream[0] / floor[0])
            record(f"{kind}, in lists", kept[0] / floor[0])
            path.unlink()
        print("\n" + "\n".join(f"{kind}: {meaning}" for kind, meaning in KINDS.items()))


if __name__ == "__main__":
    main()
