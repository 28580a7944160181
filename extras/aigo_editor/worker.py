"""Worker process that reads files and renders prompts for the editor. `analysis` starts, calls and stops it.

Requests and answers are JSON lines. All other output goes to standard error.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

MEMORY_BYTES = 4 * 2**30
"""Maximum number of data bytes of the process."""
ROWS_MIB = "256"
"""Default size limit for dataset rows in MiB. The environment may set another limit."""


def main() -> None:
    """Answer requests until standard input ends."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.environ.setdefault("AIGO_BRIDGE_ROWS_MIB", ROWS_MIB)
    _limit()
    from aigo_editor import reading  # noqa: F401  # loaded before the first request

    with requests, answers:
        for line in requests:
            _answer(line, answers)


def _limit() -> None:
    with contextlib.suppress(
        ImportError, ValueError, OSError
    ):  # Windows lacks such limits; a container may allow less
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))


def _answer(line: bytes, answers: BinaryIO) -> None:
    request = json.loads(line)
    try:
        answer: dict[str, Any] = {"result": _result(request)}
    # A file may contain anything. The next request must still be answered.
    except Exception as error:  # noqa: BLE001
        answer = {"error": f"{type(error).__name__}: {error}"}
    answers.write(json.dumps(answer).encode() + b"\n")
    answers.flush()


def _result(request: Mapping[str, Any]) -> Any:
    from aigo_editor import reading

    file, texts = Path(request["file"]), request["texts"]
    match request["job"]:
        case "ready":
            return True
        case "problems":
            return [asdict(issue) for issue in reading.problems(file, texts, planned=request["planned"])]
        case "columns":
            return asdict(reading.columns(file, texts, request["keys"]))
        case "prompt":
            return reading.prompt(file, texts, request["row"])
        case "upgraded":
            return reading.upgraded(file, texts)
        case job:
            raise ValueError(f"no such job: {job}")
