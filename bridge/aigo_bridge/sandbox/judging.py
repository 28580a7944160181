"""Code that a model wrote and its tests, as one program for a sandbox, and the verdict of this program."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

_STARTED = "aigo-bridge runs the code"
"""First line of the output, which shows that the sandbox started the program."""


@dataclass(frozen=True)
class CodeVerdict:
    """Result of the tests."""

    verdict: Literal["passed", "failed", "unjudged"]
    """`unjudged`: the tests cannot judge the code."""
    reason: str


@dataclass(frozen=True)
class JudgingProgram:
    """Program that runs code and its tests."""

    command: tuple[str, ...]
    stdin: str = field(repr=False)
    token: str = field(repr=False)
    """Random text that the program writes with its verdict. The code cannot guess it."""

    def verdict(self, stdout: str) -> CodeVerdict | None:
        """Return the verdict in the output; `None` if the program did not start."""
        for line in stdout.splitlines():
            match line.split(" "):
                case [self.token, ("passed" | "failed" | "unjudged") as verdict, reason]:
                    return CodeVerdict(verdict, bytes.fromhex(reason).decode())
        return CodeVerdict("failed", "ended before all tests had run") if _STARTED in stdout else None


def judging_program(code: str, tests: Sequence[str]) -> JudgingProgram:
    """Return the program for code and its tests."""
    settings = json.dumps({"code": code, "tests": list(tests), "started": _STARTED})
    token = secrets.token_hex(16)
    return JudgingProgram(("python3", "-I", "-c", _harness()), f"{len(settings):012}{settings}{token}", token)


@cache
def _harness() -> str:
    return Path(__file__).with_name("harness.py").read_text("utf-8")
