"""`make mutants`: apply small faults to copies of the source, one at a time, and check that tests of a submission find each.

The faults and the tests that find them are in `tests/mutants.toml`. A test finds a fault if it fails with the fault and passes without it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Literal

import pytest

ROOT = Path(__file__).resolve().parents[1]
FAULTS = ROOT / "tests" / "mutants.toml"
FOLDERS = ("bridge", "adapters", "extras", "tasks")
"""Folders of the source that Python imports packages from."""
SECONDS = 300
"""Time limit for the tests of one fault. Tests that a fault keeps from ending have found it."""
FAILURES = "AIGO_MUTANTS_FAILURES"
"""Variable with the file that the names of failed tests are written to."""

Outcome = Literal["found", "missed", "unusable"]


@dataclass(frozen=True)
class Fault:
    """One changed line."""

    file: str
    line: str
    """The line without its indentation; the file contains it once."""
    fault: str
    """The line in its place."""
    tests: tuple[str, ...]
    """Files or folders of tests, at least one of which fails."""

    @property
    def area(self) -> str:
        """The package of the file, for example `aigo_bridge/metrics`."""
        return "/".join(Path(self.file).parts[1:-1])

    def apply_to(self, text: str) -> str:
        """Return a module's text with the fault.

        Raises:
            ValueError: the line is not in the text once.
        """
        lines = text.splitlines(keepends=True)
        places = [number for number, line in enumerate(lines) if line.strip() == self.line]
        if len(places) != 1:
            raise ValueError(f"{self.file}: expected once, found {len(places)} times: {self.line}")
        lines[places[0]] = lines[places[0]].replace(self.line, self.fault)
        return "".join(lines)


@dataclass(frozen=True)
class Finding:
    """Outcome of the tests for one fault."""

    outcome: Outcome
    detail: str
    seconds: float


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write down the name of a failed test, as a plugin of the runs below."""
    if report.failed:
        with Path(os.environ[FAILURES]).open("a", encoding="utf-8") as file:
            file.write(f"{report.nodeid}\n")


def faults(path: Path = FAULTS) -> list[Fault]:
    """Return the committed faults."""
    rows = tomllib.loads(path.read_text("utf-8"))["fault"]
    return [Fault(**{**row, "tests": tuple(row["tests"])}) for row in rows]


class Copy:
    """A copy of the source in which one fault at a time is tested."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, folder / name)
        path = os.pathsep.join(str(folder / name) for name in FOLDERS)
        self._failures = folder / "out" / "failures.txt"
        self._failures.parent.mkdir()
        self._environment = {**os.environ, "PYTHONPATH": path, FAILURES: str(self._failures)}
        self._run("compileall", "-q", *FOLDERS, "tests/support")
        # The bytecode of a module with a fault is never written.
        self._environment["PYTHONDONTWRITEBYTECODE"] = "1"

    def check(self, fault: Fault) -> Finding:
        """Run the tests of a fault with it, and the test that fails without it."""
        began = time.monotonic()
        with self._applied(fault):
            failed = self._tests(*fault.tests)
        outcome, detail = self._judged(fault, failed)
        return Finding(outcome, detail, time.monotonic() - began)

    def _judged(self, fault: Fault, failed: subprocess.CompletedProcess[str] | None) -> tuple[Outcome, str]:
        if failed is None:
            return "found", f"no end within {SECONDS} s"
        if failed.returncode == 0:
            return "missed", f"{fault.line}  →  {fault.fault}"
        finders = self._failures.read_text("utf-8").splitlines()
        if failed.returncode != 1 or not finders:
            return "unusable", failed.stdout[-1500:] + failed.stderr[-500:]
        sound = self._tests(finders[0])
        if sound is None or sound.returncode != 0:
            return "unusable", f"{finders[0]} also fails without the fault"
        return "found", finders[0]

    @contextmanager
    def _applied(self, fault: Fault) -> Iterator[None]:
        path = self._folder / fault.file
        text, times = path.read_text("utf-8"), path.stat()
        path.write_text(fault.apply_to(text), "utf-8")
        try:
            yield
        finally:
            path.write_text(text, "utf-8")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def _tests(self, *tests: str) -> subprocess.CompletedProcess[str] | None:
        self._failures.write_text("")
        options = (
            "-x",
            "-q",
            "-n",
            "0",
            "-p",
            "no:cacheprovider",
            "-p",
            "tests.mutants",
            "-m",
            "not nightly",
        )
        try:
            return self._run("pytest", *options, *tests)
        except subprocess.TimeoutExpired:
            return None

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", *words],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the faults that the command line names; return 1 if one is not found."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("areas", nargs="*", help="parts of file names; all faults by default")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="faults at a time")
    options = parser.parse_args(arguments)
    chosen = [
        fault for fault in faults() if not options.areas or any(area in fault.file for area in options.areas)
    ]
    outcomes: Counter[Outcome] = Counter()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(options.jobs) as pool:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for copy in pool.map(Copy, [Path(folder) / str(number) for number in range(options.jobs)]):
            copies.put(copy)

        def check(fault: Fault) -> tuple[Fault, Finding]:
            copy = copies.get()
            try:
                return fault, copy.check(fault)
            finally:
                copies.put(copy)

        for fault, finding in pool.map(check, chosen):
            outcomes[finding.outcome] += 1
            print(
                f"{finding.seconds:5.0f} s  {finding.outcome:8}  {fault.file}\n{'':18}{finding.detail}",
                flush=True,
            )
    print(
        f"found {outcomes['found']} of {len(chosen)} faults in {len({fault.area for fault in chosen})} packages"
    )
    return 0 if outcomes["found"] == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
