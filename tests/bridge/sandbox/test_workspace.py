"""Files that are kept between commands in the local sandbox."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator

import anyio
import pytest

from aigo_bridge.sandbox.jailing import JailLimits, JailResult
from aigo_bridge.sandbox.workspace import Workspace

QUICK = JailLimits(seconds=10, memory_bytes=256 << 20, disk_bytes=8 << 20, output_bytes=100_000)


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    space = Workspace()
    yield space
    space.remove()


def shell(workspace: Workspace, script: str, *, cwd: str = ".", stdin: bytes = b"") -> JailResult:
    async def run() -> JailResult:
        return await workspace.run(["bash", "-c", script], cwd=cwd, stdin=stdin, limits=QUICK)

    return anyio.run(run)


def said(workspace: Workspace, script: str, cwd: str = ".") -> str:
    result = shell(workspace, script, cwd=cwd)
    assert (result.ended, result.code, result.stderr) == ("exit", 0, b"")
    return result.stdout.decode().strip()


def test_files_of_a_command_are_available_to_the_next_command(workspace: Workspace) -> None:
    anyio.run(workspace.write, "src/a.txt", "Grüße\n".encode())
    said(
        workspace,
        "cat src/a.txt > b.txt; chmod +x b.txt; ln -s b.txt link; mkdir empty; touch -d 2020-01-02 b.txt",
    )
    shown = said(workspace, "cat link; ls; stat -c %a:%y b.txt | cut -c1-14", cwd=".")
    assert shown.split() == ["Grüße", "b.txt", "empty", "link", "src", "755:2020-01-02"]
    said(workspace, "rm -r ../empty ../b.txt ../link; echo inner > ../here", cwd="src")
    assert said(workspace, "ls") == "here\nsrc"


def test_files_are_read_and_written_between_commands(workspace: Workspace) -> None:
    async def steps() -> None:
        await workspace.write("a", b"1")
        assert await workspace.read("a") == b"1"
        with pytest.raises(FileNotFoundError, match=r"^there is no file '/work/none'$"):
            await workspace.read("none")
        with pytest.raises(IsADirectoryError, match=r"^'/work' is a folder$"):
            await workspace.read(".")
        with pytest.raises(PermissionError, match=r"^'/work/a/b' cannot be written: "):
            await workspace.write("a/b", b"")
        await workspace.run(["bash", "-c", "echo 2 >> a; mkdir d; ln -s /etc/hostname outside"])
        assert await workspace.read("/work/a") == b"12\n"
        await workspace.write("new/b", b"\x00\xff")
        assert await workspace.read("new/b") == b"\x00\xff"
        with pytest.raises(FileNotFoundError, match="no file '/work/none'"):
            await workspace.read("none")
        with pytest.raises(FileNotFoundError):  # the file does not exist inside the jail
            await workspace.read("outside")
        with pytest.raises(IsADirectoryError):
            await workspace.read("d")
        with pytest.raises(PermissionError, match="cannot be written"):
            await workspace.write("d", b"")
        for name in ("../x", "/etc/passwd"):
            with pytest.raises(PermissionError, match="expected a path below /work"):
                await workspace.read(name)

    anyio.run(steps)


def test_command_gets_its_input_and_folder_and_returns_its_exit_code(workspace: Workspace) -> None:
    result = shell(workspace, "cat; exit 7", stdin=b"in")
    assert (result.ended, result.code, result.stdout) == ("exit", 7, b"in")
    assert shell(workspace, "kill -9 $$").code == 137
    assert said(workspace, "mkdir -p x/y; pwd") == "/work"
    assert said(workspace, "pwd", cwd="x/y") == "/work/x/y"
    assert shell(workspace, "pwd", cwd="nowhere").code == 127
    result = anyio.run(workspace.run, ["no-such-command"])
    assert (result.code, result.stderr) == (127, b"no-such-command: No such file or directory\n")


def test_command_over_a_limit_leaves_the_files_unchanged(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aigo_bridge.sandbox.workspace.MOST_FILES", 40)
    said(workspace, "echo 1 > a")
    assert shell(workspace, "echo 2 > a; yes").ended == "output"
    assert said(workspace, "cat a") == "1"
    result = shell(workspace, "echo 2 > a; seq 41 | xargs touch")
    assert result.code == 1
    assert b"the files that this command wrote are lost: more than 40 files" in result.stderr
    assert said(workspace, "cat a; ls | wc -l").split() == ["1", "1"]


def test_background_processes_end_with_the_command(workspace: Workspace) -> None:
    said(workspace, "(sleep 0.5; echo late > late) > /dev/null 2>&1 &")
    assert said(workspace, "sleep 1; ls; echo only ls") == "only ls"


def test_archives_of_commands_are_never_opened_by_the_runner(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An untrusted archive is only unpacked in the jail that created it."""

    def refuse(*args: object, **settings: object) -> None:
        raise AssertionError("an archive was opened in this process")

    monkeypatch.setattr(tarfile, "open", refuse)
    said(workspace, "ln -s / root; ln -s ../../../../etc up; mkfifo pipe; echo x > a")
    assert said(workspace, "cat a; ls -p; readlink root up").split() == [
        "x",
        "a",
        "pipe",
        "root",
        "up",
        "/",
        "../../../../etc",
    ]
    assert sorted(path.name for path in workspace.folder.parent.iterdir()) == ["files", "work.tar"]


def test_command_does_not_run_with_an_invalid_archive(workspace: Workspace) -> None:
    said(workspace, "echo 1 > a")
    (workspace.folder.parent / "work.tar").write_bytes(b"nothing")
    result = shell(workspace, "echo ran")
    assert (result.code, result.stdout) == (1, b"")


def test_concurrent_commands_run_one_after_the_other(workspace: Workspace) -> None:
    async def steps() -> bytes:
        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(workspace.run, ["bash", "-c", f"sleep 0.1; echo {number} >> a"])
        return await workspace.read("a")

    assert sorted(anyio.run(steps).split()) == [b"0", b"1", b"2"]


def test_removed_workspace_deletes_its_files(workspace: Workspace) -> None:
    anyio.run(workspace.write, "a", b"1")
    workspace.remove()
    assert not workspace.folder.parent.exists()
