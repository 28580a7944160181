"""The program that hidden tests judge: the repository as the agent has left it, and the names that the tests use."""

from __future__ import annotations

from typing import Any

HEAD = """import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
folder = Path(tempfile.mkdtemp())
for name, text in {files!r}.items():
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
sys.path.insert(0, str(folder))
"""


def program(sample: dict[str, Any], files: dict[str, str]) -> str:
    """Writes the files into a folder of its own, and imports from there; what the agent has removed is missing."""
    return HEAD.format(files=files) + sample["imports"] + "\n"


def postprocess(sample: dict[str, Any], solver_output: Any) -> list[tuple[dict[str, Any], Any]]:
    files = solver_output.trace.metadata.extra["files"]
    return [({**sample, "program": program(sample, files)}, solver_output)]
