"""System tasks: task code computes the metrics without a model or dataset."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run

Load = Callable[[Path], dict[str, Any]]

TASK = """
key: https
display_name: HTTPS
description: ""
config_spec:
  - {{type: string, key: url, display_name: URL}}
definition:
  type: system_task
  compute_evidence_snippet: |
    {body}
"""


def write(folder: Path, *lines: str) -> None:
    (folder / "t.yaml").write_text(TASK.format(body="\n    ".join(lines)))


def test_metrics_and_reasons_are_in_the_evidence(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    write(
        tmp_path,
        "async def compute_evidence():",
        '    url = "<< config.url >>"',
        '    secure = url.startswith("https:")',
        '    return {"metrics": {"secure": {"value": 1 if secure else 0, "reason": f"{url} is what it is"},',
        '                        "share": {"value": 0.5}}}',
    )

    done = aigo("run", "t.yaml", "--config", "url=https://example.org", "--out", "out")

    assert done.code == 0, done.err
    assert "secure" in done.out
    result = result_of(tmp_path / "out" / "https.tasklog.json")
    assert result["evidence"]["metrics"] == [
        {
            "metric_key": "secure",
            "metric_type": "system_task",
            "values": {"secure": 1},
            "reason": "https://example.org is what it is",
        },
        {"metric_key": "share", "metric_type": "system_task", "values": {"share": 0.5}},
    ]
    assert "samples" not in result["evidence"] or result["evidence"]["samples"] in (None, [])
    assert result["status"] == "success"
    assert result["specification"]["config"] == {"url": "https://example.org"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ["def compute_evidence():", "    raise ValueError('down')"],
            "ValueError: down (t.yaml, line 11, in compute_evidence",
        ),
        (["def compute_evidence():", "    return {'metrics': {'a': {'value': 'high'}}}"], "metric 'a' is"),
        (["def compute_evidence():", "    return 3"], "expected a mapping with 'metrics'"),
        (["def compute():", "    return {}"], "must define a function `compute_evidence`"),
    ],
)
def test_errors_of_system_tasks_are_reported(
    aigo: Run, tmp_path: Path, result_of: Load, lines: list[str], message: str
) -> None:
    write(tmp_path, *lines)

    done = aigo("run", "t.yaml", "--config", "url=x", "--out", "out")

    assert done.code in (1, 2)
    if done.code == 2:  # seen in the file already
        assert "compute_evidence" in done.err
        return
    assert message in done.out
    result = result_of(tmp_path / "out" / "https.tasklog.json")
    assert result["status"] == "failure"
    assert result["evidence"]["metrics"] == []
    assert message in result["evidence"]["errors"][0]["message"]


def test_a_system_task_has_one_trial(aigo: Run, tmp_path: Path) -> None:
    """If more trials are requested, this is reported, and the progress completes."""
    (tmp_path / "t.yaml").write_text("""key: t
display_name: T
description: ''
definition:
  type: system_task
  compute_evidence_snippet: |
    def compute_evidence():
        return {"metrics": {"m": {"value": 1}}}
""")

    done = aigo("run", "t.yaml", "--num-trials", 3, "-o", "out")

    assert done.code == 0, done.err
    assert "--num-trials is ignored" in done.err
    assert done.err.endswith("1/1 sample\n")
