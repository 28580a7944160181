"""The metric `code_exec`: code that a model wrote passes the targets, which are test code, or it does not.

The core runs none of it. An engine lends a `CodeRunner`, which runs programs in a sandbox.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from aigo_bridge.dtypes import SolverOutput
from aigo_bridge.errors import SampleError
from aigo_bridge.jsonl_spec.post_processing import post_process
from aigo_bridge.models import Models
from aigo_bridge.plan import Sample
from aigo_bridge.scoring.outcome import Outcome
from aigo_bridge.scoring.variables import answer_text, render, variables
from aigo_bridge.spec.scorers import CodeExecScorer
from aigo_bridge.templates import SampleTemplate

RULES = ("none", "strip_whitespace", "extract_code_block")
"""Ways to take code out of an answer; rules of the JSONL task spec."""

TIME_LIMIT = 30.0
"""Seconds that one program, the code and its tests, may take."""

SHOWN = 2_000
"""Characters of an error's text that are kept in the metadata, from its end."""


@dataclass(frozen=True)
class CodeResult:
    """How a program ended."""

    ended: Literal["exit", "time", "memory", "output"]
    """By itself (a crash is that, too), or by the limit that ended it."""
    exit_code: int | None
    """`None` when a limit ended it."""
    stdout: str
    stderr: str


class CodeRunner(Protocol):
    """Runs Python programs in a sandbox."""

    async def run(self, code: str, *, stdin: str = "", time_limit: float = TIME_LIMIT) -> CodeResult:
        """Run a program in a process of its own: no network, nothing of the runner's files or environment, limits on everything.

        Raises:
            SampleError: the sandbox itself failed (stage `score`); this says nothing about the program.
        """
        ...


_HARNESS = """\
import json, os, sys
answers = os.dup(1)
given = json.loads(sys.stdin.buffer.read())
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
token = given.pop("token")
scope = {"__name__": "__main__"}
exec(compile(given["code"], "generated.py", "exec"), scope)
for number, test in enumerate(given["tests"], 1):
    exec(compile(test, f"test_{number}.py", "exec"), scope)
sys.stdout.flush()
os.write(answers, ("\\n" + token + "\\n").encode())
"""


async def code_exec(code: str, tests: Sequence[str], runner: CodeRunner) -> Outcome:
    """`{"code_exec": 1.0}` if the code runs and then every test after it without an exception, else 0.0; why not in the metadata.

    The code runs once, as `__main__`; the tests run after it in its global names, in order. Code that ends the program before the
    tests have run has not passed them. A limit that is overrun is a 0.0 as well.

    Raises:
        SampleError: the sandbox itself failed, so that there is no score (stage `score`).
    """
    token = secrets.token_hex(16)
    payload = json.dumps({"code": code, "tests": list(tests), "token": token})
    result = await runner.run(_HARNESS, stdin=payload, time_limit=TIME_LIMIT)
    passed = result.ended == "exit" and result.exit_code == 0 and result.stdout.endswith(f"\n{token}\n")
    metadata: dict[str, Any] = {"prediction": code}
    if not passed:
        metadata["failure"] = _failure(result)
    return Outcome({"code_exec": 1.0 if passed else 0.0}, metadata)


def check_tests(tests: object) -> list[str]:
    """The tests of a sample.

    Raises:
        SampleError: there are none, or they are not texts.
    """
    if isinstance(tests, str):
        tests = [tests]
    if not isinstance(tests, list | tuple) or not tests or not all(isinstance(each, str) for each in tests):
        raise SampleError(
            f"found {tests!r:.80} as tests of the code, expected a list of texts",
            stage="score",
            kind="InvalidTests",
        )
    return list(tests)


def _failure(result: CodeResult) -> str:
    if result.ended == "time":
        return f"took longer than {TIME_LIMIT:g} s"
    if result.ended == "memory":
        return "used more memory than it may"
    if result.ended == "output":
        return "wrote more than it may"
    said = result.stderr.strip()[-SHOWN:]
    if result.exit_code == 0:
        return "ended before all tests had run"
    return said or f"ended with exit code {result.exit_code}"


class CodeExec:
    """The scorer `code_exec`: code out of the model's answer, run with the sample's tests."""

    def __init__(self, spec: CodeExecScorer, runner: CodeRunner):
        self._tests = SampleTemplate(spec.tests) if "{{" in spec.tests else spec.tests
        self._code = None if spec.code is None else SampleTemplate(spec.code)
        self._rule = SampleTemplate(spec.post_process)
        self._when = None if spec.when is None else SampleTemplate(spec.when)
        self._runner = runner

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Outcome:
        values = variables(sample, output)
        if self._when is not None and render(self._when, values).strip() != "True":
            return Outcome({})
        tests = check_tests(self._given_tests(sample, values))
        text = answer_text(output) if self._code is None else render(self._code, values)
        rule = render(self._rule, values).strip()
        if rule not in RULES:
            raise SampleError(
                f"post_process: found {rule!r}, expected one of {', '.join(RULES)}",
                stage="score",
                kind="InvalidRule",
            )
        return await code_exec(post_process(rule, text), tests, self._runner)

    def _given_tests(self, sample: Sample, values: dict[str, Any]) -> Any:
        if isinstance(self._tests, SampleTemplate):
            text = render(self._tests, values)
            try:
                return json.loads(text)
            except ValueError as error:
                raise SampleError(
                    f"tests: the template gave no JSON: {error}",
                    stage="score",
                    hint="end it with `| tojson`",
                    kind="InvalidTests",
                ) from error
        if self._tests not in sample.data:
            raise SampleError(f"there is no column {self._tests!r}", stage="score", kind="MissingColumn")
        return sample.data[self._tests]
