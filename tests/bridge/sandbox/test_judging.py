"""Model code and its tests in one process: correct code passes, and forged results do not."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.bridge.sandbox.forgeries import ADD, FORGERIES, Forgery

from aigo_bridge.sandbox.jailing import JailLimits, JailResult, run_jailed
from aigo_bridge.sandbox.judging import CodeVerdict, judging_program

SOLUTIONS = tomllib.loads(Path(__file__).with_name("solutions.toml").read_text("utf-8"))["solution"]
RIGHT = "def add(a, b): return a + b\n"


def judged_in_jail(code: str, *tests: str, seconds: float = 8) -> tuple[CodeVerdict | None, JailResult]:
    program = judging_program(code, tests)
    limits = JailLimits(seconds=seconds)
    result = asyncio.run(run_jailed(program.command, stdin=program.stdin.encode(), limits=limits))
    return program.verdict(result.stdout.decode()), result


def judged(code: str, *tests: str) -> CodeVerdict | None:
    """Return the verdict without a jail, as in a container."""
    program = judging_program(code, tests)
    done = subprocess.run(
        [sys.executable, *program.command[1:]],
        input=program.stdin.encode(),
        capture_output=True,
        check=False,
        timeout=60,
    )
    return program.verdict(done.stdout.decode())


@pytest.mark.parametrize("solution", SOLUTIONS, ids=lambda each: each["name"])
def test_correct_code_passes(solution: dict[str, Any]) -> None:
    assert judged(solution["code"], *solution["tests"]) == CodeVerdict("passed", "")


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda each: each.name)
def test_forged_results_do_not_pass(forgery: Forgery) -> None:
    verdict = judged(forgery.code, *forgery.tests)
    assert verdict is not None
    assert verdict.verdict in ("failed", "unjudged"), verdict


def test_the_jail_runs_the_same_program() -> None:
    assert judged_in_jail(RIGHT, *ADD)[0] == CodeVerdict("passed", "")
    verdict, result = judged_in_jail("import os\ndef add(a, b): os._exit(7)", *ADD)
    assert (verdict, result.code) == (CodeVerdict("failed", "ended before all tests had run"), 7)


def test_every_program_has_a_different_token() -> None:
    programs = [judging_program(RIGHT, ADD) for _ in range(2)]
    assert len({program.token for program in programs}) == 2
    assert programs[0].verdict(f"aigo-bridge runs the code\n{programs[1].token} passed \n") == CodeVerdict(
        "failed", "ended before all tests had run"
    )
    assert all(program.token not in repr(program) + str(program.command) for program in programs)


def test_output_without_the_program_has_no_verdict() -> None:
    assert judging_program(RIGHT, ADD).verdict("python3: not found\n") is None


@pytest.mark.parametrize(
    ("code", "ended"),
    [
        ("import os\nwhile True: os.write(2, b'x' * 100_000)", "output"),
        ("while True: print('x' * 100_000)", "output"),
        ("while True: pass", "time"),
        ("import time\nwhile True:\n    try: time.sleep(100)\n    except BaseException: pass", "time"),
    ],
)
def test_code_over_a_limit_fails(code: str, ended: str) -> None:
    verdict, result = judged_in_jail(code, *ADD, seconds=1.5)
    assert (verdict, result.ended) == (CodeVerdict("failed", "ended before all tests had run"), ended)


@pytest.mark.parametrize(
    ("code", "test", "reason"),
    [
        (
            "class Sum:\n    def __eq__(self, other): return True\ndef add(a, b): return Sum()",
            ADD[0],
            "class Sum",
        ),
        (RIGHT, "assert add(1, 2) ==", "test 1 is not Python"),
        ("def abs(x): return 0\ndef sum(*a): return 0", "assert abs(sum(1, 2) - 3) < 1e-6", "abs, sum"),
    ],
)
def test_code_that_tests_cannot_judge_has_no_verdict(code: str, test: str, reason: str) -> None:
    verdict = judged(code, test)
    assert verdict is not None
    assert verdict.verdict == "unjudged"
    assert reason in verdict.reason


def test_a_failed_test_is_a_failure_even_if_the_code_claims_equality() -> None:
    code = "class Sum:\n    def __eq__(self, other): return True\ndef add(a, b): return Sum()"
    verdict = judged(code, ADD[0], "assert False")
    assert verdict is not None
    assert verdict.verdict == "failed"


def test_a_failure_shows_the_test_and_the_line_of_the_code() -> None:
    verdict = judged(
        "def add(a, b):\n    return a + c\n", "x = 1", "def check():\n    assert add(1, 2) == 3\ncheck()"
    )
    assert verdict is not None
    assert verdict.verdict == "failed"
    for shown in (
        'File "test_2.py", line 2, in check',
        'File "generated.py", line 2, in add\n    return a + c',
        "NameError: name 'c' is not defined",
    ):
        assert shown in verdict.reason
    assert "<string>" not in verdict.reason


def test_the_error_of_the_code_cannot_hide_the_failure() -> None:
    code = "class E(Exception):\n    def __str__(self): raise SystemExit\ndef add(a, b): raise E"
    verdict = judged(code, *ADD)
    assert verdict is not None
    assert verdict.verdict == "failed"
