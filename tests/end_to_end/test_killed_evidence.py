"""A killed and resumed run has the evidence of an uninterrupted run, on both engines.

`AIGO_EVIDENCE_KILLS=30` sets the number of kills on each engine and `AIGO_KILLS_SEED` their times (`make nightly`).
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
from tests.support.endpoint import Endpoint, Raw
from tests.support.forked import finished, start
from tests.support.running import wait_until

KILLS = int(os.environ.get("AIGO_EVIDENCE_KILLS", "3"))
CALLS_A_KILL = 6
SAMPLES = 15 + (CALLS_A_KILL // 2) * KILLS
CONNECTIONS = 4
TASK = """
key: t
display_name: T
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages: [{role: system, content: Be brief.}, {role: user, content: "{{ sample.q }}"}]
  scorers:
    - {type: string_equals, ground_truth: "{{ sample.right }}"}
    - {type: model_as_a_judge_scorer, key: j, model_key: j, user_prompt: "judge {{ sample.q }}"}
"""
MODEL_FILE = """
key: m
display_name: M
config:
  connection_type: custom_connection
  url: %s/chat/completions
  api_key: none
  model_key: m
  adapter: {key: latticeflow$openai_chat_completion}
"""
OWN_TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample, json_dataset
from inspect_ai.scorer import includes, model_graded_qa
from inspect_ai.solver import generate, system_message


@task
def t():
    judge = model_graded_qa(model="openai-api/local/j")
    return Task(
        json_dataset("rows.jsonl", lambda row: Sample(row["q"], target=row["right"])),
        solver=[system_message("Be brief."), generate()],
        scorer=[includes(), judge],
    )
"""
RUNS = {
    "inspect": ("task.yaml", "--model-map", "j=m.yaml", "--engine", "inspect"),
    "lighteval": ("task.yaml", "--model-map", "j=m.yaml", "--engine", "lighteval"),
    "benchmark": ("inspect:own.py",),
}

VOLATILE = re.compile(
    r"(id|ids|.*_id|.*_at|timestamp|time|.*_time|completed|.*_seconds|duration.*|working_start|runtime|run_id|uuid|started|ended|created|source_uri)"
)
"""Fields of times, and of ids and names of files that each run makes; ids that the server gives are compared."""


def answer(body: Any) -> Raw:
    """Answer that depends only on the question; the server has its own field order and exchange ids."""
    asked = body["messages"][-1]["content"]
    is_judge = not asked.startswith("q")
    question = asked if not is_judge else zlib.crc32(asked.encode())
    text = "1 GRADE: C" if is_judge else asked.removeprefix("q") * 3
    fields = {
        "usage": {
            "total_tokens": 14,
            "completion_tokens": 3,
            "prompt_tokens": 11,
            "zz_own": {"b": 1, "a": None},
        },
        "model": "local",
        "zeta": [1, {"y": 2.50, "x": "é"}],
        "choices": [
            {
                "message": {"content": text, "role": "assistant", "annotations": []},
                "index": 0,
                "finish_reason": "stop",
            }
        ],
        "id": f"chatcmpl-{question}",
        "created": 1,
        "object": "chat.completion",
        "alpha": 1e3,
    }
    return Raw((json.dumps(fields).encode(),), headers={"x-request-id": f"req-{question}"})


@pytest.fixture
def folder(endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCAL_BASE_URL", endpoint.url)
    monkeypatch.setenv("LOCAL_API_KEY", "none")
    rows = [{"q": f"q{n}", "right": f"{n}" * 3} for n in range(SAMPLES)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "own.py").write_text(OWN_TASK)
    (tmp_path / "m.yaml").write_text(MODEL_FILE % endpoint.url)
    return tmp_path


def stable(value: Any) -> Any:
    """Return a result without times and ids, in unchanged field order."""
    if isinstance(value, dict):
        return {
            name: stable(field)
            for name, field in value.items()
            if not VOLATILE.fullmatch(name) or name == "request_ids"
        }
    if isinstance(value, list):
        return [stable(item) for item in value]
    return value


def evidence_of(file: Path) -> list[str]:
    """Return JSON lines, so that a failure shows the first difference."""
    text = re.sub(r'(x-irid\\": ?\\")\w+', r"\1", file.read_text())
    return json.dumps(stable(json.loads(text)), indent=1).splitlines()


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.parametrize("run", list(RUNS))
def test_evidence_after_kills_equals_evidence_of_an_uninterrupted_run(
    folder: Path, endpoint: Endpoint, run: str
) -> None:
    chance = random.Random(int(os.environ.get("AIGO_KILLS_SEED", "31")))  # no secret
    words = ["run", *RUNS[run], "--model", "openai-api/local/m", "--max-connections", str(CONNECTIONS)]
    endpoint.answer = answer
    whole = finished(["aigo-bridge", *words, "--out", "whole"], cwd=folder)
    assert whole.returncode == 0, whole.stderr

    def slowly(body: Any) -> Raw:
        time.sleep(chance.uniform(0.01, 0.1))
        return answer(body)

    endpoint.answer = slowly
    resume: list[str] = []
    for _ in range(KILLS):
        endpoint.requests.clear()
        process = start(
            ["aigo-bridge", *words, "--out", "out", *resume],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        few = chance.randint(1, CALLS_A_KILL)
        wait_until(process, lambda few=few: len(endpoint.requests) >= few)  # type: ignore[misc]  # called at once
        time.sleep(chance.uniform(0, 0.1))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        resume = ["--resume"]
    done = finished(["aigo-bridge", *words, "--out", "out", "--resume"], cwd=folder)

    assert done.returncode == 0, done.stderr
    assert evidence_of(folder / "out" / "t.tasklog.json") == evidence_of(folder / "whole" / "t.tasklog.json")
