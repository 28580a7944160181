"""Scorer `code_exec`: whether code that a model wrote passes the targets, which are test code.

The core runs no code. An engine provides a `CodeRunner`, which runs programs in a sandbox.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import SolverOutput
from aigo_bridge.errors import SampleError, UnsupportedPlanError
from aigo_bridge.jsonl_spec.post_processing import post_process
from aigo_bridge.models.protocol import Models
from aigo_bridge.plan.plan import Sample
from aigo_bridge.sandbox.judging import CodeVerdict, judging_program
from aigo_bridge.scoring.scorer import TIME_LIMIT, CodeResult, CodeRunner, RunContext, Score, ScorerType
from aigo_bridge.scoring.variables import answer_text, render, variables
from aigo_bridge.spec.scorers import CodeExecScorer
from aigo_bridge.templates import SampleTemplate

RULES = ("none", "strip_whitespace", "extract_code_block")
"""Rules for extracting code from an answer; rules of the JSONL task spec."""

SHOWN = 2_000
"""Maximum characters of an error text in the metadata, counted from its end."""


async def code_exec(code: str, tests: Sequence[str], runner: CodeRunner) -> Score:
    """Return `{"code_exec": 1.0}` if the code and then every test run without an exception, otherwise 0.0
    with the reason in the metadata.

    The code runs once, as `__main__`. The tests run after it in the same process, in order, and use its
    global names. Code that ends the process before the tests have run fails. Exceeding a limit also gives
    0.0.

    Raises:
        SampleError: there is no score: the sandbox itself failed, or the tests cannot judge the code
            (stage `score`).
    """
    program = judging_program(code, tests)
    result = await runner.run(program, time_limit=TIME_LIMIT)
    failure = _limit(result) or _failure(program.verdict(result.stdout), result)
    metadata: dict[str, Any] = {"prediction": code}
    if failure is not None:
        metadata["failure"] = failure[-SHOWN:]
    return Score({"code_exec": 1.0 if failure is None else 0.0}, metadata)


def check_tests(tests: object) -> list[str]:
    """Return the tests of a sample.

    Raises:
        SampleError: the tests are missing or are not texts.
    """
    if isinstance(tests, str):
        tests = [tests]
    if not isinstance(tests, list | tuple) or not tests or not all(isinstance(test, str) for test in tests):
        raise SampleError(
            f"found {tests!r:.80} as tests of the code, expected a list of texts",
            stage="score",
            kind="InvalidTests",
        )
    return list(tests)


def _limit(result: CodeResult) -> str | None:
    if result.ended == "time":
        return f"took longer than {TIME_LIMIT:g} s"
    if result.ended == "memory":
        return "used more memory than it may"
    if result.ended == "output":
        return "wrote more than it may"
    return None


def _failure(verdict: CodeVerdict | None, result: CodeResult) -> str | None:
    """Return why the code failed; `None` if it passed.

    Raises:
        SampleError: the verdict is missing.
    """
    if verdict is None:
        reason = result.stderr.strip()[-200:] or f"exit code {result.exit_code}"
        raise SampleError(f"the sandbox did not run the tests: {reason}", stage="score", kind="SandboxError")
    if verdict.verdict == "unjudged":
        raise SampleError(
            f"the tests cannot judge this code: {verdict.reason}",
            stage="score",
            kind="UnjudgedCode",
            hint="docs/reference/sandbox.md lists code that tests cannot judge",
        )
    if verdict.verdict == "passed":
        return None
    if result.exit_code:
        return f"{result.stderr.strip()}\n{verdict.reason}, with exit code {result.exit_code}".strip()
    return verdict.reason


class CodeExec:
    """Scorer `code_exec`: extracts code from the model's answer and runs it with the sample's tests."""

    def __init__(self, spec: CodeExecScorer, runner: CodeRunner):
        self._tests = SampleTemplate(spec.tests) if "{{" in spec.tests else spec.tests
        self._code = None if spec.code is None else SampleTemplate(spec.code)
        self._rule = SampleTemplate(spec.post_process)
        self._when = None if spec.when is None else SampleTemplate(spec.when)
        self._runner = runner

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Score:
        values = variables(sample, output)
        if self._when is not None and render(self._when, values).strip() != "True":
            return Score({})
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
                    f"tests: the template returned invalid JSON: {error}",
                    stage="score",
                    hint="end it with `| tojson`",
                    kind="InvalidTests",
                ) from error
        if self._tests not in sample.data:
            raise SampleError(f"no column {self._tests!r}", stage="score", kind="MissingColumn")
        return sample.data[self._tests]


def _compile(scorer: CodeExecScorer, context: RunContext) -> CodeExec:
    if context.code_runner is None:
        raise UnsupportedPlanError(
            "code_exec: this engine does not have a sandbox for code that a model wrote", code=Code.ENGINE_GAP
        )
    return CodeExec(scorer, context.code_runner)


CODE_EXEC = ScorerType(CodeExecScorer, _compile)
