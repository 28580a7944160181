"""Analysis processes of the language server: answers, deadlines and restarts."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from aigo_editor import analysis
from aigo_editor.analysis import AnalysisStoppedError, Process

SECONDS = 120


async def within(answer: Awaitable[Any]) -> Any:
    return await asyncio.wait_for(answer, SECONDS)


def problems(file: Path, text: str) -> dict[str, Any]:
    return {"job": "problems", "file": str(file), "texts": {str(file): text}, "planned": False}


def test_analysis_process_survives_an_invalid_request(tmp_path: Path) -> None:
    async def work() -> None:
        process = Process(tmp_path, SECONDS)
        with pytest.raises(AnalysisStoppedError, match="no such job"):
            await within(process.ask(job="dance", file="x", texts={}))
        issues = await within(process.ask(**problems(tmp_path / "task.yaml", "key: [")))
        assert issues[0]["message"].startswith("not YAML")
        await process.stop()

    asyncio.run(work())


def test_killed_analysis_process_is_restarted(tmp_path: Path) -> None:
    async def work() -> None:
        process = Process(tmp_path, SECONDS)
        await within(process.ask(**problems(tmp_path / "task.yaml", "key: [")))
        first = process._process
        assert first is not None
        first.kill()
        await within(first.wait())
        assert await within(process.ask(**problems(tmp_path / "task.yaml", "key: [")))
        await process.stop()

    asyncio.run(work())


def test_slow_request_is_killed_and_the_next_one_is_answered(tmp_path: Path) -> None:
    async def work() -> None:
        process = Process(tmp_path, SECONDS)
        assert await within(process.ask(**problems(tmp_path / "task.yaml", "key: [")))
        slow = process._process
        assert slow is not None
        slow.send_signal(signal.SIGSTOP)  # never answers
        process._deadline = 0.1
        with pytest.raises(AnalysisStoppedError, match=r"took more than 0\.1 s"):
            await within(process.ask(**problems(tmp_path / "task.yaml", "key: [")))
        assert slow.returncode == -signal.SIGKILL
        process._deadline = SECONDS
        assert await within(process.ask(**problems(tmp_path / "task.yaml", "key: [")))
        await process.stop()

    asyncio.run(work())


def test_a_cancelled_request_does_not_delay_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis, "GRACE", 0.1)

    async def work() -> None:
        process = Process(tmp_path, SECONDS)
        assert await within(process.ask(**problems(tmp_path / "task.yaml", "key: [")))
        slow = process._process
        assert slow is not None
        slow.send_signal(signal.SIGSTOP)
        dropped = asyncio.create_task(process.ask(**problems(tmp_path / "task.yaml", "key: [")))
        await asyncio.sleep(0)
        dropped.cancel()
        assert await within(process.ask(**problems(tmp_path / "task.yaml", "key: [")))
        assert dropped.cancelled()
        await process.stop()

    asyncio.run(work())


def test_answer_to_a_cancelled_request_is_not_used_for_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis, "GRACE", SECONDS)

    async def work() -> None:
        process = Process(tmp_path, SECONDS)
        dropped = asyncio.create_task(process.ask(**problems(tmp_path / "one.yaml", "key: [")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        dropped.cancel()
        issues = await within(process.ask(**problems(tmp_path / "two.yaml", "key: [")))
        assert issues[0]["file"] == str(tmp_path / "two.yaml")
        assert dropped.cancelled()
        await process.stop()

    asyncio.run(work())


def test_project_modules_are_not_imported(tmp_path: Path) -> None:
    (tmp_path / "yaml.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n", encoding="utf-8")

    async def work() -> None:
        process = Process(tmp_path, SECONDS)
        assert await within(process.ask(**problems(tmp_path / "task.yaml", "key: [")))
        await process.stop()

    asyncio.run(work())
    assert [path.name for path in tmp_path.iterdir()] == ["yaml.py"]
