"""Code of a model and its tests, in two processes: what is right passes, and nothing that only pretends to."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from textwrap import dedent

import pytest
from tests.bridge.sandbox.forgeries import ADD, FORGERIES, Forgery
from tests.bridge.sandbox.solutions import SOLUTIONS, Solution

from aigo_bridge.sandbox.jailing import JailLimits, JailResult, run_jailed
from aigo_bridge.sandbox.judging import Verdict, judging

QUICK = JailLimits(seconds=8)
WRONG = "def add(a, b):\n    return 0\n"


def judged(code: str, *tests: str, limits: JailLimits = QUICK) -> tuple[Verdict | None, JailResult]:
    """In the local sandbox, two programs beside each other."""
    programs = judging(code, tests)
    result = asyncio.run(
        run_jailed(programs.judge, stdin=programs.stdin.encode(), companion=programs.answer, limits=limits)
    )
    return programs.verdict(result.stdout.decode()), result


def judged_alone(code: str, *tests: str) -> Verdict | None:
    """As in any other sandbox: the judge starts the other process."""
    programs = judging(code, tests)
    done = subprocess.run(
        [sys.executable, *programs.judge[1:]],
        input=programs.stdin_alone.encode(),
        capture_output=True,
        check=True,
        timeout=60,
    )
    return programs.verdict(done.stdout.decode())


@pytest.mark.parametrize("solution", SOLUTIONS, ids=lambda each: each.name)
def test_what_is_right_passes(solution: Solution) -> None:
    assert judged_alone(solution.code, *solution.tests) == Verdict("passed", "")


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda each: each.name)
def test_nothing_is_forged(forgery: Forgery) -> None:
    verdict = judged_alone(forgery.code, *forgery.tests)
    assert verdict is not None
    assert verdict.verdict in ("failed", "unjudged"), verdict


def test_in_the_sandbox_both_run_beside_each_other() -> None:
    assert judged("def add(a, b): return a + b", *ADD)[0] == Verdict("passed", "")
    verdict, result = judged("import os\ndef add(a, b): os._exit(7)", *ADD)
    assert verdict == Verdict("failed", "ended before all tests had run")
    assert result.companion == 7


def test_files_are_those_of_both() -> None:
    code = "def lines(path):\n    return len(open(path).readlines())\ndef note(path):\n    open(path, 'w').write('x')"
    tests = "open('/tmp/a', 'w').write('1\\n2\\n')\nassert lines('/tmp/a') == 2\nnote('b')\nassert open('b').read() == 'x'"
    assert judged(code, tests)[0] == Verdict("passed", "")


def test_the_code_has_one_socket_and_sees_no_process_but_its_own() -> None:
    code = WRONG + dedent(
        """
        import ctypes, json, os, signal
        libc = ctypes.CDLL(None)
        seen = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        descriptors = {}
        for number in range(64):
            try:
                descriptors[number] = os.readlink(f"/proc/self/fd/{number}").split(":")[0]
            except OSError:
                pass
        reached = []
        for number in [*range(2, 50), -1]:
            try:
                os.kill(number, signal.SIGKILL)
                reached.append(number)
            except OSError:
                pass
            if number > 0 and (libc.ptrace(16, number, 0, 0) == 0 or os.path.exists(f"/proc/{number}/mem")):
                reached.append(number)
        os.write(2, json.dumps([seen, os.getpid(), descriptors, reached]).encode())
        """
    )
    verdict, result = judged(code, *ADD)
    assert verdict is not None
    assert verdict.verdict == "failed"
    seen, own, descriptors, reached = json.loads(result.stderr)
    assert seen == [own]
    assert descriptors == {"0": "/dev/null", "1": "pipe", "2": "pipe", "3": "socket"}
    # To kill all others is no error where there is none.
    assert reached in ([], [-1])


@pytest.mark.parametrize(
    ("code", "ended"),
    [
        ("import os\nwhile True: os.write(2, b'x' * 100_000)", "output"),
        ("import os\nwhile True: os.write(3, b'\\0\\0\\0\\x0c' + b'[\"print\",\"\"]')", "time"),
        ("import os, time\nos.write(3, b'\\0\\0\\xff\\xff')\ntime.sleep(100)", "time"),
    ],
)
def test_limits_end_both(code: str, ended: str) -> None:
    verdict, result = judged(code, *ADD, limits=JailLimits(seconds=1.5))
    assert (verdict, result.ended) == (None, ended)


@pytest.mark.parametrize(
    ("code", "test"),
    [
        ("class Sum:\n    def __eq__(self, other): return True\ndef add(a, b): return Sum()", ADD[0]),
        ("class Base: pass", "class Derived(Base): pass"),
        ("def add(a, b): return a + b", "assert add(1, 2) =="),
        ("import json as codec", "assert codec.loads('1') == 1"),
        ("def abs(x): return 0\ndef sum(*a): return 0", "assert abs(sum(1, 2) - 3) < 1e-6"),
        ("def use(x): return x.maxsize", "import queue\nuse(queue.Queue())"),
    ],
)
def test_where_only_the_answer_could_say_there_is_no_verdict(code: str, test: str) -> None:
    verdict = judged_alone(code, test)
    assert verdict is not None
    assert verdict.verdict == "unjudged", verdict


def test_a_failure_shows_the_test_and_the_place_in_the_code() -> None:
    verdict = judged_alone(
        "def add(a, b):\n    return a + c\n", "x = 1", "def check():\n    assert add(1, 2) == 3\ncheck()"
    )
    assert verdict is not None
    assert verdict.verdict == "failed"
    assert 'File "test_2.py", line 2, in check' in verdict.reason
    assert "name 'c' is not defined" in verdict.reason
    assert "line 2, in add: return a + c" in verdict.reason
    assert "aigo_bridge" not in verdict.reason


def test_tests_are_nowhere_in_the_process_of_the_code() -> None:
    code = dedent(
        """
        import gc, os
        def look():
            found = [each for each in gc.get_objects() if isinstance(each, (dict, list, tuple)) and "-".join(["un", "guess"]) in repr(each)]
            for name in ("cmdline", "environ", "maps"):
                found += ["x"] * ("-".join(["un", "guess"]) in open("/proc/self/" + name).read())
            return len(found)
        """
    )
    assert judged_alone(code, "secret = 'un-guess'\nassert look() == 0") == Verdict("passed", "")


def test_arrays_of_numbers_are_values() -> None:
    code = "import numpy as np\ndef double(x): return np.asarray(x) * 2\ndef mean(x): return np.mean(x)"
    tests = "assert np.array_equal(double(np.array([1, 2])), [2, 4])\nassert mean([1, 2]) == 1.5\nassert double([[1]])[0][0] == 2"
    assert judged_alone(code, tests) == Verdict("passed", "")
