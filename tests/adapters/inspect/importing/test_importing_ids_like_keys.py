"""Sample ids that look like API keys: after redaction, different samples have the same id."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import Sample
from tests.support.commands import Run

TOKENS = [f"ghp_{first * 3}8k2Lm4Qz7Rt1Vx9Bn3Ws6Yd0Hf5Jg2Kp4" for first in "abc"]


@pytest.mark.parametrize("log_format", ["eval", "json"])
def test_samples_with_equal_redacted_ids_are_reported(
    aigo: Run, tmp_path: Path, log_format: Literal["eval", "json"]
) -> None:
    """Without a report, they would count as trials of one sample, and every sample count would be wrong."""
    task = Task(dataset=[Sample(input="q", id=token) for token in TOKENS])
    inspect_eval(
        task, model="mockllm/model", log_dir=str(tmp_path / "logs"), display="none", log_format=log_format
    )

    done = aigo("import", tmp_path / "logs", "--out", tmp_path / "out")

    assert done.code == 3
    assert "3 or more samples have the same id after redaction" in done.out
    whole = aigo("import", tmp_path / "logs", "--out", tmp_path / "whole", "--no-redact")
    assert whole.code == 0
    assert "3 samples" in whole.out


def test_a_single_redacted_id_is_only_reported_as_redacted(aigo: Run, tmp_path: Path) -> None:
    task = Task(dataset=[Sample(input="q", id=name) for name in (TOKENS[0], "b")])
    inspect_eval(task, model="mockllm/model", log_dir=str(tmp_path / "logs"), display="none")
    done = aigo("import", tmp_path / "logs", "--out", tmp_path / "out")
    assert done.code == 0
    assert "2 samples" in done.out
