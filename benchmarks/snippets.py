"""Cost of confining snippets: the start of a worker and a warm call at each level, compared with a bare call
of the same function.

    python benchmarks/snippets.py [--calls 2000] [--repeat 5]

The start counts once for each worker. The result is the best of many short alternating measurements, because
other users of the machine can only make them slower."""

from __future__ import annotations

import argparse
import time

from ratios import record

from aigo_bridge.snippets import Snippet, SnippetHost
from aigo_bridge.snippets.process import choose, reached
from aigo_bridge.snippets.worker import SnippetCode, load

SOURCE = "def compute_scores(sample, output):\n    return {'same': float(sample['answer'] == output)}\n"
SNIPPET = Snippet(SOURCE, "compute_scores", "scorer")
ARGUMENTS = ({"answer": "42", "question": "What is six times seven?"}, "42")
STRETCH = 20
"""Number of calls that are measured together."""


def bare(calls: int) -> float:
    function = load(SnippetCode(SOURCE, "scorer", 1, known=False), "compute_scores")
    start = time.perf_counter()
    for _ in range(calls):
        function(*ARGUMENTS)
    return (time.perf_counter() - start) / calls


def measured(level: str, calls: int) -> tuple[float, float]:
    choose(level)
    reached()
    host = SnippetHost()
    start = time.perf_counter()
    host.call_blocking(SNIPPET, ARGUMENTS, {})
    began = time.perf_counter()
    stretches = []
    for _ in range(calls // STRETCH):
        since = time.perf_counter()
        for _ in range(STRETCH):
            host.call_blocking(SNIPPET, ARGUMENTS, {})
        stretches.append((time.perf_counter() - since) / STRETCH)
    host.close()
    return began - start, min(stretches)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {"worker": [], "jailed": []}
    plain = []
    for _ in range(arguments.repeat):
        plain.append(bare(arguments.calls))
        for level, rows in found.items():
            rows.append(measured(level, arguments.calls))
    call = min(plain)
    print(f"bare call      {call * 1e6:8.1f} µs")
    best = {}
    for level, rows in found.items():
        start, warm = (min(row[index] for row in rows) for index in (0, 1))
        best[level] = warm
        print(f"{level:<8} start {start * 1e3:8.1f} ms   warm call {warm * 1e6:8.1f} µs")
    print(f"jailed / worker, warm call: {best['jailed'] / best['worker']:.2f}")
    record("a warm call, jailed compared with not jailed", best["jailed"] / best["worker"])
    record("a warm call compared with a bare one", best["worker"] / call)


if __name__ == "__main__":
    main()
