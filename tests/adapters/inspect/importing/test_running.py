"""Inspect runs in progress: data in the log and data that Inspect still buffers."""

from __future__ import annotations

import asyncio
import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from aigo_bridge.engine.engine import RunState
from aigo_bridge.importing.log_import import ImportOptions
from aigo_inspect.importing.importing import InspectLogs
from aigo_inspect.importing.running import InspectRuns
from aigo_inspect.logs.buffer import find_database
from aigo_report.viewing.folder import Folder
from aigo_report.viewing.preparing import BLOCKS, SUMMARY, prepare

pytestmark = pytest.mark.engine

LONG = "a long text " * 100


def run_with(look: Callable[[Path], None], folder: Path) -> Path:
    """Start a run of two samples: `done` ends, and `live` waits for its second answer during the inspection."""
    from inspect_ai import Task
    from inspect_ai import eval as run
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ChatMessageUser, ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import includes
    from inspect_ai.solver import Generate, TaskState, solver

    @solver
    def slow() -> Any:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state = await generate(state)
            if state.sample_id == "live":
                (log,) = folder.glob("*.eval")
                while "samples/done_epoch_1.json" not in zipfile.ZipFile(log).namelist():
                    await asyncio.sleep(0.05)
                state.messages.append(ChatMessageUser(content="Go on."))
                state = await generate(state)
                look(log)
            return state

        return solve

    def answer(text: str) -> ModelOutput:
        output = ModelOutput.from_content("mockllm/model", text)
        output.usage = ModelUsage(input_tokens=3, output_tokens=2, total_tokens=5)
        return output

    rows = [
        Sample(id="done", input="One?", target="x"),
        Sample(id="live", input=LONG, target="x", metadata={"n": 1}),
    ]
    model = get_model("mockllm/model", custom_outputs=[answer(f"x {number}") for number in range(4)])
    task = Task(name="slow", dataset=rows, solver=slow(), scorer=includes())
    (log,) = run(task, model=model, log_dir=str(folder), display="none", log_buffer=1, max_samples=2)
    assert log.status == "success", log.error
    return Path(log.location.removeprefix("file://"))


def imported(log: Path, out: Path) -> dict[str, Any]:
    """Return the result of a log."""
    InspectLogs().import_logs([str(log)], out, ImportOptions(jobs=1), lambda report: None)
    (result,) = out.glob("*.tasklog.json")
    content: dict[str, Any] = json.loads(result.read_text())
    return content


def texts(trial: dict[str, Any]) -> list[str]:
    return [part["text"] for item in trial["solver"]["output"]["trace"]["items"] for part in item["content"]]


def test_a_sample_in_progress_is_read_up_to_its_last_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    logs, copy, runs = tmp_path / "logs", tmp_path / "copy.eval", InspectRuns()
    states: list[RunState | None] = []
    live: list[Any] = []
    pages: list[Any] = []

    def look(log: Path) -> None:
        before = log.read_bytes()
        live.extend(runs.snapshot(log, copy, logs))
        # Only Inspect adds zstd support to `zipfile`, and `view` does not load Inspect.
        with monkeypatch.context() as patch:
            patch.setattr(zipfile.ZipFile, "open", None)
            states.append(runs.state(log))
        (entry,) = Folder(logs).listing().entries.values()
        page = prepare(entry, logs, tmp_path / "page")
        summary = orjson.loads(gzip.decompress((page.folder / SUMMARY).read_bytes()))
        place, size = page.blocks["r0t0"]
        rows = gzip.decompress((page.folder / BLOCKS).read_bytes()[place : place + size])
        pages.extend((page, summary, orjson.loads(rows)))
        assert log.read_bytes() == before
        with pytest.raises(OSError, match="is outside the root folder"):
            runs.snapshot(log, tmp_path / "other.eval", tmp_path / "data")

    logs.mkdir()
    log = run_with(look, logs)

    (state,) = states
    assert state is not None
    assert (state.alive, state.trials, live) == (True, 2, [("live", 0)])
    page, summary, rows = pages
    assert page.run == state.version
    assert summary["run"] == {"alive": True, "live": 1, "done": 1, "total": 2}
    assert (summary["results"][0]["status"], summary["results"][0]["metrics"]) == ("running", [])
    assert [(row["id"], row.get("o"), row.get("a", "")[:2]) for row in rows] == [
        ("done", None, "x "),
        ("live", "not finished", "x "),
    ]
    counts = summary["results"][0]["counts"]
    assert (counts["scored"], counts["unfinished"], counts["failed"]) == (1, 1, 0)
    content = imported(copy, tmp_path / "out")
    by_id = {sample["sample_id"]: sample["trials"][0] for sample in content["evidence"]["samples"]}
    answers = [text for trial in by_id.values() for text in texts(trial) if text.startswith("x ")]
    assert texts(by_id["done"])[0] == "One?"
    assert (texts(by_id["live"])[0], texts(by_id["live"])[2]) == (LONG, "Go on.")
    assert len(answers) == 3
    assert (by_id["done"]["scores"] or [{}])[0].get("values") == {"includes": "C"}
    assert not by_id["live"]["scores"]
    assert by_id["live"]["sample"]["data"]["input"] == LONG
    # The run has ended: all data is in the log.
    assert runs.state(log) is None
    assert find_database(log) is None
    assert runs.snapshot(log, copy, logs) == []
    assert copy.read_bytes() == log.read_bytes()


def test_an_invalid_inspect_database_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    log = tmp_path / "a.eval"
    with zipfile.ZipFile(log, "w") as archive:
        archive.writestr("_journal/start.json", "{}")
    place = (
        tmp_path / "data/inspect_ai/samplebuffer" / hashlib.sha256(f"file://{tmp_path}".encode()).hexdigest()
    )
    place.mkdir(parents=True)
    (place / "a.eval.1x.db").touch()
    (place / "a.eval.5.db").symlink_to("/etc/passwd")
    assert find_database(log) is None

    (place / "a.eval.77.db").write_text("no database")
    assert find_database(log) == place / "a.eval.77.db"
    assert InspectRuns().state(log) is None
    assert InspectRuns().snapshot(log, tmp_path / "copy.eval", tmp_path) == []
    assert (tmp_path / "copy.eval").read_bytes() == log.read_bytes()
