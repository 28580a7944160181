"""An endless template fails only its samples, in every field; the run continues and scores the others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run

from aigo_bridge.templates import budget
from aigo_bridge.templates.compiling import compile_template

TASK = """
key: t
display_name: T
description: ""
definition:
  dataset: {{key: q}}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages: [{{role: user, content: "{prompt}"}}]
  scorers:
    - {{type: string_equals, key: same, ground_truth: "{truth}", value: "{{{{ sample.question }}}}"}}
"""
ENDLESS = "{% for i in range(sample.n) %}{% for j in range(sample.n) %}{% endfor %}{% endfor %}"


@pytest.fixture(autouse=True)
def quick_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(budget, "SECONDS", 0.2)
    compile_template.cache_clear()
    yield
    compile_template.cache_clear()


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
@pytest.mark.parametrize("field", ["prompt", "truth"])
def test_endless_template_fails_only_its_sample(
    engine: str, field: str, aigo: Run, tmp_path: Path, result_of: Callable[[Path], dict[str, Any]]
) -> None:
    (tmp_path / "q.jsonl").write_text(
        '{"question": "one", "n": 99999}\n{"question": "two", "n": 1}\n{"question": "three", "n": 2}\n'
    )
    fields = {"prompt": "{{ sample.question }}", "truth": "{{ sample.question }}", field: ENDLESS}
    (tmp_path / "task.yaml").write_text(TASK.format(**fields))
    (tmp_path / "m.jsonl").write_text('{"default": true, "reply": {"text": "x"}}\n')

    assert aigo("validate", tmp_path / "task.yaml").code == 0
    model = f"scripted/{tmp_path}/m.jsonl"
    done = aigo(
        "run",
        tmp_path / "task.yaml",
        "--dataset",
        "q=q.jsonl",
        "--engine",
        engine,
        "--model",
        model,
        "--out",
        "out",
    )

    assert done.code == 1, done.err
    first, *others = result_of(tmp_path / "out" / "t.tasklog.json")["evidence"]["samples"]
    assert re.search(r"task\.yaml:\d+: the template computes for more than 0\.2 s", str(first))
    assert "computes for more" not in str(others)
    assert [trial["errors"] for other in others for trial in other["trials"]] == [[], []]
