"""`aigo-bridge lsp` command: exit, cleanup and missing extras."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcRequestCancelled
from tests.support.editor import editor, in_editor
from tests.support.forked import finished, start
from tests.support.missing import verbs_without

SECONDS = 120
COMMAND = ["aigo-bridge", "lsp"]


def processes_in(folder: Path) -> list[str]:
    """Return the processes whose working directory is a folder."""
    here = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == folder:
                here.append(process.name)
        except OSError:
            continue
    return here


def wait_until_none(folder: Path) -> None:
    end = time.monotonic() + SECONDS
    while processes := processes_in(folder):
        assert time.monotonic() < end, processes
        time.sleep(0.05)


def test_missing_lsp_extra_is_reported_with_the_install_command(tmp_path: Path) -> None:
    (done,) = verbs_without(tmp_path, ["pygls"], ["lsp"])
    assert (done.code, done.out) == (2, "")
    assert done.err.split("\n")[0].startswith(
        "error: the language server needs pygls, which is not installed; run: pip "
    )
    assert "pygls<3,>=2.1" in done.err


def test_lsp_exits_with_0_if_stdin_is_closed(tmp_path: Path) -> None:
    done = finished(COMMAND, cwd=tmp_path, stdin=subprocess.DEVNULL, timeout=SECONDS)
    assert (done.returncode, done.stdout) == (0, "")
    assert "Traceback" not in done.stderr


def test_an_invalid_message_does_not_end_the_server(tmp_path: Path) -> None:
    message = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {"capabilities": {}}})
    content = "Content-Length: 5\r\n\r\nnoise" + f"Content-Length: {len(message)}\r\n\r\n{message}"
    with start(COMMAND, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        output, _ = process.communicate(content, timeout=SECONDS)
    assert process.returncode == 0
    assert '"serverInfo": {"name": "aigo-bridge"' in output


@pytest.mark.slow
def test_killed_lsp_server_leaves_no_processes(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    (folder / "task.yaml").write_text("key: quiz\ndefinition: {}\n", encoding="utf-8")

    async def work() -> None:
        async with editor(folder) as opened:
            await opened.open("task.yaml")
            await opened.messages("task.yaml", "'display_name' is missing")
            assert len(processes_in(folder)) >= 2
            server = opened.client._server
            assert server is not None
            opened.client.capabilities = None  # the killed server cannot shut down properly
            server.kill()
            await asyncio.wait_for(server.wait(), SECONDS)

    in_editor(work)
    wait_until_none(folder)


def workers_in(folder: Path) -> list[int]:
    """Return the analysis processes of a server in a folder."""
    commands = {process: Path("/proc", process, "cmdline").read_bytes() for process in processes_in(folder)}
    return [int(process) for process, command in commands.items() if b"aigo_editor.worker" in command]


@pytest.mark.slow
def test_hanging_request_is_stopped_when_cancelled(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    text = (
        "key: quiz\ndisplay_name: Quiz\ndescription: ''\ndefinition:\n  dataset: {key: rows}\n"
        "  solver: {type: single_turn_solver, input_builder: {type: chat_completion, input_messages: ["
        "{role: user, content: '{{ sample.a }} {{ sample.b }}'}]}}\n  scorers: []\n"
    )
    (folder / "task.yaml").write_text(text, encoding="utf-8")
    (folder / "rows.jsonl").write_text('{"a": "Oslo"}\n', encoding="utf-8")
    marked = text.replace("sample.a", "sample.a█")

    async def work() -> None:
        async with editor(folder) as opened:
            await opened.open("task.yaml")
            await opened.messages("task.yaml", "`sample.b` is not a column")  # both processes are idle
            stopped = workers_in(folder)
            assert len(stopped) == 2
            for worker in stopped:
                os.kill(worker, signal.SIGSTOP)
            at = opened.place("task.yaml", marked)
            params = lsp.HoverParams(at.text_document, at.position)
            protocol = opened.client.protocol
            answer = protocol.send_request("textDocument/hover", params, msg_id="taken-back")
            await asyncio.sleep(1)  # usually long enough for the request to hang; the test passes otherwise
            opened.client.cancel_request(lsp.CancelParams("taken-back"))
            with pytest.raises((JsonRpcRequestCancelled, asyncio.CancelledError)):
                await asyncio.wait_for(asyncio.wrap_future(answer), SECONDS)
            # No later request waits for a stopped process, with or without rows.
            assert "tags" in await opened.complete("task.yaml", text + "ta█")
            end = time.monotonic() + SECONDS
            while "Oslo" not in str(await opened.hover("task.yaml", marked)):
                assert time.monotonic() < end
            assert set(workers_in(folder)) - set(stopped)

    in_editor(work)
    wait_until_none(folder)
