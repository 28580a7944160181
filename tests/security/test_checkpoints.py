"""Checkpoint files in a folder that others can write to: links, pipes and foreign lines are rejected."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from aigo_bridge.execution.checkpoint import Checkpoint

NAME = {"plan": 1}


def name_of(folder: Path) -> Path:
    """Return the checkpoint path of a plan."""
    checkpoint = Checkpoint(folder, NAME, goes_on=False)
    checkpoint.remove()
    return checkpoint.path


@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_link_in_place_of_a_checkpoint_is_not_followed(
    tmp_path: Path, link: Callable[[Path, Path], None], goes_on: bool
) -> None:
    """Earlier, the target was truncated and filled with answers."""
    other = tmp_path / "precious.txt"
    other.write_text("precious")
    out = tmp_path / "out"
    out.mkdir()
    link(other, name_of(out))

    checkpoint = Checkpoint(out, NAME, goes_on=goes_on)
    checkpoint.put("0/a", "key", b'"an answer"')
    checkpoint.close()

    assert other.read_text() == "precious"


def test_broken_link_in_place_of_a_checkpoint_creates_no_file(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    name_of(out).symlink_to(tmp_path / "new.txt")
    Checkpoint(out, NAME, goes_on=False).close()
    assert not (tmp_path / "new.txt").exists()


@pytest.mark.parametrize("goes_on", [False, True])
def test_pipe_in_place_of_a_checkpoint_does_not_block(tmp_path: Path, goes_on: bool) -> None:
    os.mkfifo(name_of(tmp_path))
    checkpoint = Checkpoint(tmp_path, NAME, goes_on=goes_on)
    checkpoint.put("0/a", "key", b'"an answer"')
    assert checkpoint.get("key") is None


@pytest.mark.parametrize(
    "content",
    [
        b"{}",
        b'{"x":1}',
        b'{"trial":"0/a"}',
        b'{"call":"key","answer":2}',
        b'{"trial":"0/a","call":["key"],"answer":2}',
        b'{"trial":1,"call":"key","answer":2}',
        b'{"failed":["0/a"]}',
        b'{"failed":{}}',
        b"[" * 900 + b"]" * 900,
        b"1",
    ],
)
def test_malformed_checkpoint_line_is_ignored(tmp_path: Path, content: bytes) -> None:
    """The line has a valid checksum; earlier, it ended the run with a traceback."""
    first = Checkpoint(tmp_path, NAME, goes_on=False)
    first.put("0/a", "key", b"1")
    first.close()
    with first.path.open("ab") as file:
        file.write(b"%08x %s\n" % (zlib.crc32(content), content))

    checkpoint = Checkpoint(tmp_path, NAME, goes_on=True)

    assert checkpoint.num_answers == 1
    assert checkpoint.get("key") == 1
