"""`run TASK --full` with a local copy of the real rows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.support.commands import TASKS, Run


def test_task_runs_on_a_copy_of_the_full_dataset(tmp_path: Path, aigo: Run) -> None:
    rows = [{"question": f"What is {number} + 1?", "answer": f"#### {number + 1}"} for number in range(6)]
    (tmp_path / "copy").mkdir()
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "copy" / "test.jsonl").write_text(lines, encoding="utf-8")
    shutil.copytree(TASKS / "gsm8k", tmp_path / "mine")
    real = tmp_path / "mine" / "dataset.yaml"
    real.write_text(real.read_text("utf-8").replace("num_rows: 1319", "num_rows: 6"), encoding="utf-8")
    (tmp_path / "answers.jsonl").write_text('{"default": true, "reply": "ANSWER: 7"}\n', encoding="utf-8")
    words = ("mine/task.yaml", "--full", "--model", "scripted/answers.jsonl")

    done = aigo("run", *words, "--data-dir", "copy")
    copied = (tmp_path / "copy" / "test.jsonl").read_text("utf-8")
    (tmp_path / "copy" / "test.jsonl").write_text(copied.replace("What is 3", "What was 3"), encoding="utf-8")
    changed = aigo("run", *words, "--data-dir", "copy")
    offline = aigo("run", *words, "--no-network")
    alone = aigo("run", words[0], *words[2:], "--data-dir", "copy")
    nowhere = aigo("run", *words, "--data-dir", "nowhere")
    others = aigo("run", "aigo_tasks/gsm8k", *words[1:], "--data-dir", "copy")

    assert done.code == 0, done.err
    assert "their digest is unknown (found " in done.err
    assert "sample data" not in done.out + done.err
    result = json.loads((tmp_path / "out" / "gsm8k.tasklog.json").read_bytes())
    assert "sample data, not the benchmark" not in json.dumps(result["specification"])
    assert len(result["evidence"]["samples"]) == 6
    assert "the digest of openai/gsm8k" in done.err
    assert "is stored in datasets.lock.json" in done.err
    assert changed.code == 2
    assert "out/datasets.lock.json" in changed.err
    assert "as in an earlier run" in changed.err
    assert (offline.code, alone.code, nowhere.code, others.code) == (2, 2, 2, 2)
    assert "--full --data-dir DIR with DIR/test.parquet" in offline.err
    assert "--data-dir: only with --full" in alone.err
    assert "the folder 'nowhere' does not exist" in nowhere.err
    assert "found 6 rows, expected 1,319" in others.err
