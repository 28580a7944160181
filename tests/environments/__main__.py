"""`make environments`: every verb of the command line in clean environments of the wheel.

An extra that is missing, an old release, another Python: what the tests cannot see, because their environment has everything.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.environments import lock, oldest
from tests.environments.installing import FOLDER, CommandError, Environment, Tools, tools
from tests.environments.verbs import Check, checks, copy_inputs, problems

PYTHONS = "python3.12 python3.13 python3.14"
"""Interpreters that are tried besides the one that runs this; those that are not there are left out. The variable PYTHONS names others."""

THOROUGH = ("core", "oldest")
"""Where everything is run, and not only every verb and every extra once."""


def environments() -> list[Environment]:
    """All of them, the slowest first."""
    oldest_ones = [
        Environment(Path(name).stem, extras, FOLDER / name) for name, extras in oldest.FILES.items()
    ]
    return [
        Environment("lighteval", ("lighteval",)),
        *reversed(oldest_ones),
        # Extras without lighteval, which brings most of them, are tried where they are added to what is there already.
        Environment("editable", ("lake", "lsp", "openai", "parquet", "stats"), editable=True),
        Environment("core", plugin=True),
        *(Environment(version, python=python) for version, python in _pythons().items()),
    ]


def _pythons() -> dict[str, str]:
    """Name → interpreter, for further releases of Python that are there."""
    found: dict[str, str] = {}
    code = "import sys; print('python%d.%d' % sys.version_info[:2])"
    own = "python{}.{}".format(*sys.version_info[:2])
    for python in shlex.split(os.environ.get("PYTHONS", PYTHONS)):
        try:
            done = subprocess.run([python, "-c", code], capture_output=True, text=True)
        except OSError:
            continue
        if done.returncode == 0 and done.stdout.strip() != own:
            found.setdefault(done.stdout.strip(), python)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.environments", description=__doc__)
    parser.add_argument("names", nargs="*", help="environments; all by default")
    parser.add_argument("--pip", action="store_true", help="install by pip, even where uv can be had")
    parser.add_argument(
        "--write-oldest", action="store_true", help="find the oldest versions anew, run nothing"
    )
    parser.add_argument("--write-lock", action="store_true", help="find the files anew, run nothing")
    given = parser.parse_args(arguments)
    known = environments()
    chosen = [each for each in known if not given.names or each.name in given.names]
    if unknown := set(given.names) - {each.name for each in known}:
        parser.error(
            f"no environment {', '.join(sorted(unknown))}; there are {', '.join(e.name for e in known)}"
        )
    if not (given.write_oldest or given.write_lock) and (outdated := oldest.outdated()):
        names = ", ".join(path.name for path in outdated)
        print(f"{names}: not made from the requirements of pyproject.toml; run: make oldest")
        return 1
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="environments-") as name:
        folder = Path(name)
        made = tools(folder, with_uv=not given.pip)
        if given.write_oldest or given.write_lock:
            (oldest if given.write_oldest else lock).write(made)
            return 0
        print(f"{time.monotonic() - began:5.0f} s  wheel and tools", flush=True)
        # One more than there are cores: what is installed, or answers to nobody, is waited for half of the time.
        with ThreadPoolExecutor((os.cpu_count() or 1) + 1) as pool:
            right = list(pool.map(lambda each: _run(each, made, folder / each.name), chosen))
    print(f"{time.monotonic() - began:5.0f} s  {sum(right)} of {len(chosen)} environments are right")
    return 0 if all(right) else 1


def _run(environment: Environment, made: Tools, folder: Path) -> bool:
    """Make an environment and run every check in it; whether all is right. Lines of one environment stay together."""
    began = time.monotonic()
    try:
        binaries = made.make(environment, folder / "environment")
    except CommandError as error:
        print(f"{environment.name}: cannot be installed\n{error}", flush=True)
        return False
    installed = time.monotonic() - began
    (folder / "work").mkdir()
    copy_inputs(folder / "work")
    run = [
        _origin(environment, folder / "environment"),
        *checks(environment.has, all_of_them=environment.name in THOROUGH),
    ]
    wrong = [
        "\n  ".join([f"$ {check.command}", *"\n".join(found).splitlines()])
        for check in run
        if (found := problems(check, binaries, folder / "work"))
    ]
    seconds = f"{time.monotonic() - began:5.0f} s ({installed:.0f} s to install)"
    verdict = (
        f"{len(wrong)} of {len(run)} commands are not right" if wrong else f"{len(run)} commands are right"
    )
    print("\n".join([f"{seconds}  {environment.name}: {verdict}", *wrong]), flush=True)
    return not wrong


def _origin(environment: Environment, folder: Path) -> Check:
    """Nothing comes from the source; and what was installed editable still is, after extras were added."""
    code = "import aigo_bridge, aigo_inspect; print(aigo_bridge.__file__, aigo_inspect.__file__)"
    parts = ("checkout/bridge", "checkout/adapters") if environment.editable else ("lib", "lib")
    return Check(f'python -c "{code}"', tuple(f"{folder / part}/" for part in parts))


if __name__ == "__main__":
    sys.exit(main())
