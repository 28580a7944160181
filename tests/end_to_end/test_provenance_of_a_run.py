"""The provenance of a run on a real endpoint: requested models, settings, and models that answered."""

from __future__ import annotations

import json
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run
from tests.support.endpoint import Endpoint, completion

from aigo_bridge.version import __version__

TASK = """
key: t
display_name: T
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder:
      type: generic
      template: '{"messages": [{"role": "user", "content": {{ sample.q | tojson }}}], "temperature": 0.25, "max_tokens": 17}'
  scorers:
    - {type: string_equals, ground_truth: "even"}
"""


def committed(folder: Path) -> str:
    """Commit the files of a folder in a new repository."""

    def git(*words: str) -> str:
        author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        done = subprocess.run(
            ["git", "-C", str(folder), *author, *words], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "--message", "task")
    return git("rev-parse", "HEAD")


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_requested_and_answering_models_are_recorded(
    endpoint: Endpoint, aigo: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    key = "sk-0123456789abcdefghij"
    monkeypatch.setenv("LOCAL_BASE_URL", endpoint.url)
    monkeypatch.setenv("LOCAL_API_KEY", key)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"q": f"q{n}"}) + "\n" for n in range(3)))
    (tmp_path / "task.yaml").write_text(TASK)
    commit = committed(tmp_path)

    def answer(body: Any) -> Any:
        return 200, {**completion("even"), "model": "m-2024-07-18", "system_fingerprint": "fp_44709d6fcb"}

    endpoint.answer = answer
    done = aigo("run", "task.yaml", "--model", "openai-api/local/m", "--engine", engine, "--out", "out")
    assert done.code == 0, done.err
    text = (tmp_path / "out/t.provenance.json").read_text()
    record = json.loads(text)
    run = record["run"]
    assert run["models"] == {"": "openai-api/local/m"}
    (asked,) = run["asked"]
    assert (asked["name"], asked["calls"]) == ("openai-api/local/m", 3)
    assert asked["answered_as"] == run["named_in_responses"] == ["m-2024-07-18"]
    (settings,) = asked["settings"]
    assert (settings["temperature"], settings["max_tokens"]) == (0.25, 17)
    assert "messages" not in settings
    assert run["system_fingerprints"] == ["fp_44709d6fcb"]
    assert run["provider"] == "openai-api/local"
    distribution = {"inspect": "inspect-ai", "lighteval": "lighteval"}[engine]
    assert (run["engine"], run["engine_version"]) == (engine, version(distribution))
    environment = record["environment"]
    assert (environment["bridge"], environment["python"]) == (__version__, platform.python_version())
    assert environment["platform"] == platform.platform()
    assert environment["packages"][distribution] == version(distribution)
    assert run["started_at"] <= run["ended_at"]
    assert record["written_at"]
    assert (record["repository"]["commit"], record["repository"]["dirty"]) == (commit, False)
    assert key not in text
