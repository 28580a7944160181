"""Every operator, filter, test, method, global and statement of the templates, with hostile operands.

The lists come from the environment's own tables, so that a new filter is included. Each case must end quickly with text or a template
error; otherwise the kernel ends the process.
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
    """Output of a process that runs all cases: `[template, problem]`, and finally the number of cases."""
    arguments = "" if STRIDE is None else f"size=64_000, stride={int(STRIDE)}"
    script = RUNNER.format(bridge=str(BRIDGE), repository=str(REPOSITORY), arguments=arguments)
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=150 if STRIDE is None else None,
    )
    lines: list[list[Any]] = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 0, (ran.returncode, ran.stderr[-2000:].splitlines()[-1:])
    return lines


def test_each_template_case_ends_quickly_with_text_or_error(report: list[list[Any]]) -> None:
    assert [line for line in report if line[0] == "problem"] == []


def test_every_template_feature_is_tested(report: list[list[Any]]) -> None:
    (counts,) = [line[1] for line in report if line[0] == "counts"]
    assert counts["forms"] > 1_000
    assert counts["rendered"] > 10_000
    assert counts["refused"] > 5_000
