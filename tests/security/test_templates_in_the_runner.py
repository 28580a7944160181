"""Every operator, filter, test, method, global and statement of the templates, with hostile operands.

The lists come from the environment's own tables, so that a new filter cannot be forgotten. What the runner renders itself must be
quick (the kernel ends the process if one case is not), must cost in proportion to its input, and must be what the killable process
gives; everything else must be left to that process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

STRIDE = os.environ.get("AIGO_TEMPLATE_STRIDE")
"""A long run sets the variable: of so many pairs of operands one is tried, and the operands are larger."""
BRIDGE = Path(__file__).parents[2] / "bridge"
REPOSITORY = Path(__file__).parents[2]

RUNNER = """
import json, sys
sys.path[:0] = [{bridge!r}, {repository!r}]
from tests.support.template_cases import examine
for line in examine({arguments}):
    print(json.dumps(line), flush=True)
"""


@pytest.fixture(scope="module")
def report() -> list[list[Any]]:
    """What a process found that looks at all cases: `[template, problem]`, and at the end how many it looked at."""
    arguments = "" if STRIDE is None else f"size=64_000, stride={int(STRIDE)}"
    script = RUNNER.format(bridge=str(BRIDGE), repository=str(REPOSITORY), arguments=arguments)
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=150 if STRIDE is None else None,
    )
    lines: list[list[Any]] = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 0, (ran.returncode, lines[-1:], ran.stderr[-2000:])
    return lines


def test_nothing_that_the_runner_renders_is_slow_or_other_than_in_the_process(
    report: list[list[Any]],
) -> None:
    problems = [line for line in report if line[0] == "problem"]
    assert problems == []


def test_every_table_of_the_environment_is_looked_at(report: list[list[Any]]) -> None:
    (counts,) = [line[1] for line in report if line[0] == "counts"]
    assert counts["forms of the runner"] > 500
    assert counts["forms left to the process"] > 500
    assert counts["rendered in the runner"] > 10_000
    assert counts["left to the process"] > 5_000
