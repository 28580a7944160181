"""Speed and memory of importing lighteval's details, against the floor.

    python benchmarks/import_lighteval.py [--docs 10000] [--rounds 5]

The floor is the minimum for reading the rows in Python: pyarrow's `read` and `to_pylist` of the details file.
The import also sorts, maps, encodes and writes the rows. The result is CPU time without importing modules.
Each measurement runs in a new process; rounds alternate and the best one counts, because the machine has
other users."""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ratios import record

KINDS = {
    "answers": {},
    "tokens": {"tokens": 200},
    "5-shot": {"shots": 5},
    "choices": {"likelihoods": True},
}
"""Name → fields of its documents in addition to a question, four choices and an answer."""


def make(path: Path, docs: int, tokens: int = 0, shots: int = 0, likelihoods: bool = False) -> None:
    """Write details in the format of lighteval 0.13."""
    import pyarrow as pa  # type: ignore[import-untyped]  # ships none
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships none

    rng = random.Random(7)
    words = [f"w{rng.randrange(10**6)}" for _ in range(5000)]

    def text(length: int) -> str:
        return " ".join(rng.choice(words) for _ in range(length // 7))

    def doc(number: int, fewshots: list[Any]) -> dict[str, Any]:
        return {
            "query": text(100),
            "choices": [text(10) for _ in range(4)],
            "gold_index": number % 4,
            "instruction": "Answer.\n",
            "images": None,
            "specific": {"subject": text(10), "level": number % 5},
            "unconditioned_query": None,
            "original_query": None,
            "id": str(number),
            "task_name": f"bench|{shots}",
            "fewshot_samples": fewshots,
            "sampling_methods": ["LOGPROBS" if likelihoods else "GENERATIVE"],
            "fewshot_sorting_class": None,
            "generation_size": 256,
            "stop_sequences": ["\n"],
            "use_logits": False,
            "num_samples": 1,
            "generation_grammar": None,
        }

    pool = [doc(number, []) for number in range(shots)]
    order = list(range(docs))
    rng.shuffle(order)
    rows = []
    for number in order:
        found = doc(number, pool)
        answers = [] if likelihoods else [text(60)]
        rows.append(
            {
                "doc": found,
                "metric": {"em": number % 2, "f1": rng.random()},
                "model_response": {
                    "input": [{"role": "user", "content": "Answer.\n" + found["query"]}],
                    "input_tokens": [rng.randrange(50000) for _ in range(tokens)],
                    "text": answers,
                    "output_tokens": [[1, 2]] * 4 if likelihoods else [list(range(tokens // 4))],
                    "text_post_processed": answers,
                    "reasonings": [],
                    "logprobs": [-rng.random() for _ in range(4)] if likelihoods else [],
                    "argmax_logits_eq_gold": [False] * 4 if likelihoods else [],
                    "logits": None,
                    "unconditioned_logprobs": None,
                    "truncated_tokens_count": 0,
                    "padded_tokens_count": 0,
                },
            }
        )
    pq.write_table(pa.Table.from_pylist(rows), path)


def floor(path: Path) -> float:
    import pyarrow.parquet as pq

    began = time.process_time()
    pq.ParquetFile(path).read().to_pylist()
    return time.process_time() - began


def ours(path: Path) -> float:
    import aigo_lighteval.importing.details  # noqa: F401  # its imports are not measured
    from aigo_bridge.importing.log_import import ImportOptions
    from aigo_lighteval.importing.importing import run_import

    with tempfile.TemporaryDirectory() as out:
        began = time.process_time()
        run_import([str(path)], Path(out), ImportOptions(), lambda report: None)
        return time.process_time() - began


def measured(what: str, path: Path) -> tuple[float, float]:
    """Return the CPU seconds and the peak memory of the process in MB."""
    done = subprocess.run(
        [sys.executable, __file__, "--measure", what, str(path)], capture_output=True, text=True, check=True
    )
    seconds, memory = json.loads(done.stdout)
    return seconds, memory


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--docs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--measure", nargs=2)
    given = parser.parse_args()
    if given.measure:
        what, path = given.measure
        seconds = {"floor": floor, "import": ours}[what](Path(path))
        # `getrusage` would include memory from before `exec`.
        status = Path("/proc/self/status").read_text()
        print(json.dumps([seconds, int(status.split("VmHWM:")[1].split()[0]) / 1024]))
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, settings in KINDS.items():
            path = Path(folder) / f"details_{name}|0_2026-01-01T00-00-00.000001.parquet"
            make(path, given.docs, **settings)  # type: ignore[arg-type]  # a table of different arguments
            rounds = [(measured("floor", path), measured("import", path)) for _ in range(given.rounds)]
            least = min(one[0] for one, _ in rounds)
            most = min(two[0] for _, two in rounds)
            print(
                f"{name:8} {given.docs} documents, {path.stat().st_size / 1e6:.1f} MB: floor {least:.3f} s,"
                f" import {most:.3f} s = {most / least:.2f} x, {most / given.docs * 1e6:.0f} us each;"
                f" memory {rounds[0][0][1]:.0f} / {rounds[0][1][1]:.0f} MB"
            )
            record(name, most / least)


if __name__ == "__main__":
    main()
