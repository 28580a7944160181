"""Fuzz all kinds of input for a limited time: `python -m tests.fuzz [--seconds 60] [--seed N] [TARGET …]`.

The targets share the time. Inputs that crash, hang or take too much memory are stored in `tests/fuzz/crashes/`, which the tests also try, and the
exit code is 1. With atheris installed (optional), `--atheris` chooses the mutations by coverage.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.child import keep
from tests.fuzz.targets import REPOSITORY, TARGETS, Target

STILL = 90.0
"""Seconds after which an input is taken to hang, however little of a processor it got."""


def main() -> int:
    """Fuzz and return 1 if a problem was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=float, default=60.0, help="for all targets together")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000, help="of the changes")
    parser.add_argument("--atheris", action="store_true", help="changes chosen by coverage")
    options = parser.parse_args()
    unknown = sorted(set(options.targets) - set(TARGETS))
    if unknown:
        parser.error(f"no targets: {', '.join(unknown)}; expected {', '.join(TARGETS)}")
    targets = [TARGETS[name] for name in options.targets or TARGETS]
    print(f"seed {options.seed}", flush=True)
    crashes = 0
    for target in targets:
        if options.atheris:
            crashes += _with_atheris(target, options.seconds / len(targets))
        else:
            crashes += _fuzz(target, options.seconds / len(targets), options.seed * 1_000)
    return 1 if crashes else 0


def _fuzz(target: Target, seconds: float, seed: int) -> int:
    """Return the number of crashes of one target. A process that ends is restarted."""
    end = time.monotonic() + seconds
    crashes = tried = 0
    end_of: int | str
    while (left := end - time.monotonic()) > 0:
        with tempfile.TemporaryDirectory(prefix="aigo-fuzzed-") as work:
            arguments = [target.name, str(left), str(seed), work]
            try:
                ran = subprocess.run(
                    [sys.executable, "-m", "tests.fuzz.child", *arguments],
                    cwd=REPOSITORY,
                    stdout=subprocess.PIPE,
                    text=True,
                    timeout=left + STILL,
                )
                lines, end_of = ran.stdout, ran.returncode
            except subprocess.TimeoutExpired as error:
                lines, end_of = (error.stdout or b"").decode(), "hangs"  # bytes, even in text mode
            for line in map(json.loads, lines.splitlines()):
                if "crash" in line:
                    crashes += 1
                    print(f"{target.name}: {line['crash']}\n{line['why']}", flush=True)
                tried += line.get("tried", 0)
            if end_of == 0:
                break
            crashes += 1
            current = Path(work) / "current"
            if not current.exists():
                print(f"{target.name}: ended before the first input ({end_of})", flush=True)
                break
            print(f"{target.name}: {keep(target, current.read_bytes(), '')}: ended with {end_of}", flush=True)
            seed += 1
    print(f"{target.name}: {tried} inputs, {crashes} crashes", flush=True)
    return crashes


def _with_atheris(target: Target, seconds: float) -> int:
    arguments = [sys.executable, "-m", "tests.fuzz.with_atheris", target.name, str(int(seconds))]
    return int(subprocess.run(arguments, cwd=REPOSITORY).returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
