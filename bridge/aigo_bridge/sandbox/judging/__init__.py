"""Tests of code that a model wrote: run in one process, the code in another; nothing passes between them but
JSON.

`judge` runs the tests and `answer` the code; `dialogue` is the talk between them, `values` and `mirrors` say
in JSON what they hand to each other, `trust` says what the tests take the code's word for. They run inside
the sandbox, from their text: they need the standard library alone, of Python 3.10 or later. Here, on the side
of the runner, the two programs are made of them and the verdict is read.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

PEER = 3
"""Descriptor of the socket between the two, where the sandbox starts both."""

_PACKAGE = "aigo_bridge.sandbox.judging"
_BOTH = ("values", "mirror", "mirrors", "dialogue")
_ANSWER = (*_BOTH, "answer")
_JUDGE = (*_BOTH, "trust", "judge")

_LOAD = """\
def load(modules):
    for name, text in modules:
        module = sys.modules[name] = types.ModuleType(name)
        module.__path__ = []
        exec(compile(text, name + ".py", "exec"), module.__dict__)
    return module
"""
_BOOT_JUDGE = f"""\
import json, sys, types
{_LOAD}
given = json.loads(sys.stdin.buffer.read())
load(given["judge"]).begin(given)
"""
_BOOT_ANSWER = f"""\
import json, os, sys, types
{_LOAD}
peer = int(sys.argv[1])
def exactly(size):
    data = b""
    while len(data) < size:
        part = os.read(peer, size - len(data))
        if not part:
            os._exit(0)
        data += part
    return data
size = int.from_bytes(exactly(4), "big")
load(json.loads(exactly(size))[0]).main(peer)
"""


@dataclass(frozen=True)
class Judging:
    """Code and its tests, as programs to run."""

    stdin: str
    """What the judge reads; the sandbox starts the other process."""
    stdin_alone: str
    """The same, where the judge has to start it."""
    token: str

    judge = ("python3", "-I", "-c", _BOOT_JUDGE)
    answer = ("python3", "-I", "-c", _BOOT_ANSWER, str(PEER))

    def verdict(self, stdout: str) -> Verdict | None:
        """What the judge wrote; `None` if it did not come to that."""
        for line in reversed(stdout.splitlines()):
            if self.token in line:
                report = json.loads(line)
                return Verdict(report["verdict"], report["reason"])
        return None


@dataclass(frozen=True)
class Verdict:
    """What came of the tests."""

    verdict: Literal["passed", "failed", "unjudged", "broken"]
    """`unjudged`: only the answer could say; `broken`: the sandbox did not start the code."""
    reason: str


def judging(code: str, tests: Sequence[str]) -> Judging:
    """The programs for some code and its tests."""
    token = secrets.token_hex(16)
    content = {
        "judge": _modules(_JUDGE),
        "answer": _modules(_ANSWER),
        "boot": _BOOT_ANSWER,
        "code": code,
        "tests": list(tests),
        "token": token,
    }
    return Judging(json.dumps(content | {"peer": PEER}), json.dumps(content | {"peer": None}), token)


@cache
def _modules(names: tuple[str, ...]) -> list[tuple[str, str]]:
    folder = Path(__file__).parent
    packages = [(name, "") for name in ("aigo_bridge", "aigo_bridge.sandbox", _PACKAGE)]
    return [
        *packages,
        *((f"{_PACKAGE}.{name}", (folder / f"{name}.py").read_text("utf-8")) for name in names),
    ]
