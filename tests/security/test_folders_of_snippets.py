"""Files that a snippet leaves in its folder are not followed, do not block, and are deleted at any depth."""

from __future__ import annotations

import asyncio
import os
from contextlib import closing
from pathlib import Path

import pytest

from aigo_bridge.errors import SnippetError
from aigo_bridge.process.temporary import make_folder, remove_folder
from aigo_bridge.sandbox.levels import REFUSAL, REFUSED
from aigo_bridge.snippets import Snippet, SnippetHost, SnippetLimits


def error_of(source: str, *, conversing: bool) -> str:
    host = SnippetHost(SnippetLimits(seconds=20))
    snippet = Snippet(source, "f", "scorer 'mine'")

    def call() -> object:
        if conversing:
            return asyncio.run(host.call(snippet, callbacks={"unasked": unasked}))
        return host.call_blocking(snippet, (), {})

    with closing(host), pytest.raises(SnippetError) as caught:
        call()
    return str(caught.value)


async def unasked() -> None:
    """A callback that makes a call one of those that call back."""


@pytest.mark.parametrize("conversing", [False, True])
@pytest.mark.parametrize(
    "leave",
    [
        "os.symlink('/proc/self/environ', NAME)",
        "os.symlink('/etc/passwd', NAME)",
        "os.symlink('/dev/zero', NAME)",
        "os.mkfifo(NAME)",
        "os.mkdir(NAME)",
        "open(NAME, 'wb').write(bytes([255]) * 9)",
        "open(NAME, 'w').truncate(1 << 40)",
    ],
)
def test_a_snippet_cannot_imitate_an_unconfined_worker(
    monkeypatch: pytest.MonkeyPatch, leave: str, conversing: bool
) -> None:
    monkeypatch.setenv("SOME_NAME", "of-the-runner")
    source = f"import os\nNAME = {REFUSAL!r}\ndef f():\n    {leave}\n    os._exit({REFUSED})\n"
    message = error_of(source, conversing=conversing)
    assert "its process ended without an answer" in message
    assert "of-the-runner" not in message
    assert "root:" not in message
    assert len(message) < 3000


def test_a_folder_deeper_than_any_path_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_folder("aigo-deep-")
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("mine")
    monkeypatch.chdir(folder)
    for _ in range(1500):
        Path("down").mkdir()
        Path("file").write_text("x")
        Path("link").symlink_to(kept)
        os.chdir("down")
    Path("closed").mkdir(0)
    os.mkfifo("pipe")
    monkeypatch.chdir(tmp_path)
    remove_folder(folder)
    assert not Path(folder).exists()
    assert (kept / "file").read_text() == "mine"


def test_link_in_place_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    folder = Path(make_folder("aigo-deep-"))
    (tmp_path / "file").write_text("mine")
    folder.rmdir()
    folder.symlink_to(tmp_path)
    remove_folder(str(folder))
    folder.unlink()
    assert (tmp_path / "file").read_text() == "mine"
