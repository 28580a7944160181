"""Fuzzed process, which may crash, hang or run out of memory. `driver` handles the outcome.

Each input is written to the file `current` before it is tried. Exceptions are stored once per source position.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

from tests.fuzz.mutating import mutated
from tests.fuzz.targets import CRASHES, TARGETS, Target

MEMORY = 6 * 1024**3


def main() -> None:
    """Fuzz with `child NAME SECONDS SEED WORK`, or try the stored inputs of all targets with `child replay`."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    if sys.argv[1:] == ["replay"]:
        for target in TARGETS.values():
            _replay(target)
    else:
        _fuzz(TARGETS[sys.argv[1]], float(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))


def _fuzz(target: Target, seconds: float, seed: int, work: Path) -> None:
    chance = random.Random(seed)
    kept = target.seeds() or [b""]
    outcomes: set[str] = set()
    places: set[str] = set()
    tried = 0
    end = time.monotonic() + seconds
    first = list(kept) if seed % 1_000 == 0 else []
    while time.monotonic() < end:
        data = first.pop() if first else mutated(chance, chance.choice(kept), kept, target.words)
        (work / "current").write_bytes(data)
        outcome, problem = trial(target, data)
        tried += 1
        if problem is not None:
            place = problem[0]
            if place not in places:
                places.add(place)
                keep(target, data, problem[1])
        elif outcome not in outcomes:
            outcomes.add(outcome)
            if len(data) < 20_000 and len(kept) < 5_000:
                kept.append(data)
    print(json.dumps({"tried": tried, "outcomes": len(outcomes), "crashes": len(places)}), flush=True)


def trial(target: Target, data: bytes) -> tuple[str, tuple[str, str] | None]:
    """Return the outcome of an input, or the position and text of its exception. The kernel kills slow processes."""
    with tempfile.TemporaryDirectory(prefix="aigo-fuzz-") as folder:
        signal.setitimer(signal.ITIMER_PROF, target.cpu_seconds)
        try:
            return target.check(data, Path(folder)), None
        except Exception as error:  # noqa: BLE001  # each is what is looked for
            frames = traceback.extract_tb(error.__traceback__)
            return "", (
                f"{type(error).__name__} {frames[-1].filename}:{frames[-1].lineno}",
                _shown(traceback.format_exc()),
            )
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            gc.collect(0)


def _shown(text: str) -> str:
    return "\n".join(line[:300] for line in text.splitlines()[-25:])


def keep(target: Target, data: bytes, why: str) -> Path:
    """Store an input that crashed a target for later test runs."""
    path = CRASHES / target.name / hashlib.sha256(data).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_bytes(data)
        print(json.dumps({"crash": str(path), "why": why}), flush=True)
    return path


def _replay(target: Target) -> None:
    for path in target.kept():
        print(json.dumps({"target": target.name, "begins": path.name}), flush=True)
        _, problem = trial(target, path.read_bytes())
        if problem is not None:
            print(json.dumps({"target": target.name, "problem": problem[1]}), flush=True)
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps({"target": target.name, "end": True}), flush=True)


if __name__ == "__main__":
    main()
