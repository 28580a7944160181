"""Ctrl-C of a run with a looping snippet: it ends quickly, writes its finished samples and leaves no process."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from tests.support.forked import start

TASK = """
key: loops
display_name: Loops
description: Its scorer never ends for one sample.
definition:
  type: benchmark_task
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages: [{role: user, content: "{{ sample.question }}"}]
  scorers:
    - type: python
      compute_scores_snippet: |
        import os
        def compute_scores(sample, solver_output):
            if sample["question"] == "loop":
                open("mark", "w").write(str(os.getpid()))
                while True: pass
            return {"one": 1.0}
      metrics: [{type: mean, key: one, field: one, name: one}]
"""


def test_interrupt_ends_a_run_with_a_looping_snippet(tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(TASK)
    rows = "".join(f'{{"question": "{text}"}}\n' for text in ("quick", "loop"))
    (tmp_path / "rows.jsonl").write_text(rows)
    (tmp_path / "model.jsonl").write_text('{"default": true, "reply": "yes"}\n')
    command = [
        *("aigo-bridge", "run", "task.yaml"),
        *("--model", "scripted/model.jsonl", "--out", "out"),
    ]
    # Its workers have their folders there, the only ones that a snippet can write to.
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = start(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not (marks := [mark for mark in tmp_path.glob("aigo-snippet-*/mark") if mark.read_text()]):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    worker = int(marks[0].read_text())
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert time.monotonic() - began < 5
    assert list(tmp_path.rglob("*.tasklog.json"))
    assert not alive(worker)


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
