"""Simulate missing packages for commands in separate processes and their children."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.commands import Finished

_SITE = """
import importlib.metadata
import sys

MISSING = {missing!r}


class Missing:
    \"\"\"Finds nothing of the packages that are missing, and says so as Python does.\"\"\"

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
        return None


sys.meta_path.insert(0, Missing)
_from_name = importlib.metadata.Distribution.from_name.__func__


def from_name(cls, name):
    if name.replace("-", "_").lower() in MISSING:
        raise importlib.metadata.PackageNotFoundError(name)
    return _from_name(cls, name)


importlib.metadata.Distribution.from_name = classmethod(from_name)
"""

LIGHTEVAL = ("lighteval", "torch", "transformers", "datasets", "accelerate")
"""What the extra `lighteval` installs and the default install has not."""
PARQUET = ("pyarrow",)
"""What the extra `parquet` installs."""


def without(folder: Path, *packages: str) -> dict[str, str]:
    """The environment of a process in which packages cannot be imported and have no version.

    Args:
        folder: a folder of the test, where the module that hides them is written.
        packages: their import names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(_SITE.format(missing=sorted(packages)))
    before = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": f"{folder}{os.pathsep}{before}" if before else str(folder)}


_VERBS = """
import json
import sys

from typer.testing import CliRunner

from aigo_bridge.cli import app

done = []
for arguments in json.loads(sys.argv[1]):
    result = CliRunner().invoke(app, arguments)
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        raise error
    done.append([result.exit_code, result.stdout, result.stderr])
print(json.dumps(done))
"""


def verbs_without(folder: Path, packages: Sequence[str], *verbs: Sequence[object]) -> list[Finished]:
    """What `aigo-bridge` makes of commands, one after the other, in one process in which packages are missing.

    Args:
        folder: where they are run.
        packages: import names of what is missing.
        verbs: the arguments of each command.
    """
    environment = {**os.environ, **without(folder / "site", *packages)}
    arguments = json.dumps([[str(argument) for argument in verb] for verb in verbs])
    done = subprocess.run(
        [sys.executable, "-c", _VERBS, arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [Finished(*found) for found in json.loads(done.stdout.splitlines()[-1])]
