"""`make soak MINUTES=30`: consecutive runs with injected faults, which must neither lose samples nor leak resources.

The faults, on both engines in turn:

- model errors: 429 with unusual waiting times, 500, and truncated, slow, too long or mislabeled answers
- killed snippet workers
- killed and resumed runs
- a changed clock
- a full disk
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.soak.rounds import QUICK, ROUNDS, Ground, Held, LossError, here
from tests.soak.serving import BadDays

ENGINES = ("inspect", "lighteval")

MOST_GROWTH = 1.10
"""Memory of the last rounds over that of the first ones after warming up."""

MOST_MEBIBYTES = 24.0
"""Growth that is none: a heap is never twice the same."""


FEWEST = 3
"""Rounds of a kind that are compared: what a run leaves to the garbage collector differs from one to the next."""

SLACK = 1
"""Descriptors, threads … more that are no growth: the least of several rounds is compared."""


def soak(
    minutes: float, samples: int, seed: int, *, engines: Sequence[str] = ENGINES, warm: int = 6
) -> list[str]:
    """Run rounds until the time is over and return the problems. Print resource usage after each round."""
    exec(QUICK)  # as for the processes
    chance = random.Random(seed)  # no secret
    held: list[Held] = []
    server = BadDays(seed, 0.1)
    server.endpoint.start()
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        place = Path(name) / "tmp"
        place.mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(place)
        ground = Ground(Path(name), server, samples)
        ground.prepare()
        ends = time.monotonic() + minutes * 60
        number = 0
        try:
            while time.monotonic() < ends or len(held) < warm + 2:
                work, engine = ROUNDS[number % len(ROUNDS)], engines[number // len(ROUNDS) % len(engines)]
                if number < warm:
                    work, engine = here, engines[number % len(engines)]
                began = time.monotonic()
                work(ground, engine, chance)
                number += 1
                held.append(Held.now(place))
                told = {"round": number, "kind": work.__name__, "engine": engine, **held[-1].as_dict()}
                print(json.dumps({**told, "seconds": round(time.monotonic() - began, 1)}), flush=True)
        except LossError as error:
            return [f"round {number + 1} ({work.__name__}, {engine}): {error}"]
        finally:
            server.endpoint.stop()
            tempfile.tempdir = None
            os.environ.pop("TMPDIR", None)
    return growth(held[warm:])


def growth(held: Sequence[Held]) -> list[str]:
    """Return the resources that grew over the rounds. A few rounds are not enough to detect growth."""
    third = len(held) // 3
    if third < FEWEST:
        return []
    first, last = held[:third], held[-third:]
    problems = []
    before, after = (statistics.median(each.mebibytes for each in part) for part in (first, last))
    if after > max(before * MOST_GROWTH, before + MOST_MEBIBYTES):
        problems.append(f"memory has grown from {before:.0f} to {after:.0f} MiB")
    for what in ("descriptors", "threads", "processes", "temporary"):
        few, many = (min(getattr(each, what) for each in part) for part in (first, last))
        if many > few + SLACK:
            problems.append(f"{what} have grown from {few} to {many}")
    return problems


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--engines", type=lambda text: text.split(","), default=list(ENGINES))
    parser.add_argument("--warm", type=int, default=6, help="rounds before growth is looked at")
    given = parser.parse_args()
    print(json.dumps({"seed": given.seed, "samples": given.samples}), flush=True)
    problems = soak(given.minutes, given.samples, given.seed, engines=given.engines, warm=given.warm)
    for problem in problems:
        print(f"soak: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
