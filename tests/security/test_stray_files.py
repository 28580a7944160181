"""Unrelated files next to a task do not end, block or overload the process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.commands import Run

from aigo_bridge.access.opening import (
    FileTooLargeError,
    IrregularFileError,
    OutsideRootError,
    is_below,
    open_regular,
    project_of,
    read_regular,
)
from aigo_bridge.access.private import refusals_below
from aigo_bridge.datasets.files import FolderTable, load_file
from aigo_bridge.datasets.rows import Problems
from aigo_bridge.errors import DatasetError, SpecError
from aigo_bridge.evaluation.run_files import find_run_file
from aigo_bridge.evaluation.validation import validate
from aigo_bridge.jsonl_spec import read_task_file
from aigo_bridge.models.connections.adapters import find_adapter
from aigo_bridge.reading import kind_of, read
from aigo_bridge.reading.locating import find_dataset, find_hub_datasets, find_task_with_key
from aigo_bridge.spec.task import TaskSpec

TASK = """key: t
display_name: T
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers: [{type: string_equals, ground_truth: "{{ sample.q }}"}]
"""

Maker = Callable[[Path], object]


def _socket(path: Path) -> None:
    # A socket's path may have a hundred letters.
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(8 * 2**40)


STRAY: dict[str, Maker] = {
    "brackets": lambda path: path.write_bytes(b"[" * 400_000),
    "braces": lambda path: path.write_bytes(b"{a: " * 200_000),
    "dashes": lambda path: path.write_bytes(b"- " * 400_000),
    "questions": lambda path: path.write_bytes(b"? " * 400_000),
    "indents": lambda path: path.write_text("\n".join(" " * n + "a:" for n in range(1000))),
    "quotes": lambda path: path.write_bytes(b"key: [" + b"'" * 900_000),
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "terminal": lambda path: path.symlink_to("/dev/stdin"),
    "socket": _socket,
    "folder": lambda path: path.mkdir(),
    "sparse": _sparse,
    "to itself": lambda path: path.symlink_to(path.name),
    "to nothing": lambda path: path.symlink_to("nothing"),
    "base 60": lambda path: path.write_text("key: 1" + ":59" * 300_000),
    "aliases": lambda path: path.write_text(
        "key: &k x\na: &a0 [*k]\n"
        + "".join(f"a{n}: &a{n} [{'*a' + str(n - 1)}{', *a' + str(n - 1)}]\n" for n in range(1, 60))
    ),
    "binary": lambda path: path.write_bytes(bytes(range(256)) * 100),
    "nothing": lambda path: path.write_bytes(b""),
}


def project(folder: Path) -> Path:
    (folder / "datasets").mkdir(parents=True)
    (folder / "task.yaml").write_text(TASK, encoding="utf-8")
    (folder / "datasets" / "rows.jsonl").write_text('{"q": "Q"}\n', encoding="utf-8")
    return folder / "task.yaml"


def in_a_process(program: str, *, memory: int = 2 << 30) -> str:
    """Return the output of a program that may crash, because the YAML parser is written in C."""
    limits = f"import resource, signal\nresource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))\n"
    limits += "resource.setrlimit(resource.RLIMIT_CPU, (20, 20))\nsignal.alarm(100)\n"
    done = subprocess.run(
        [sys.executable, "-c", limits + program], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def littered(folder: Path) -> Path:
    """Write a task between files of all kinds."""
    task = project(folder)
    for number, make in enumerate(STRAY.values()):
        for name in (f"a{number}.yaml", f"run{number}.yml", f"datasets/b{number}.yaml"):
            make(task.parent / name)
    return task


def test_files_next_to_a_task_do_not_prevent_its_run(tmp_path: Path) -> None:
    task = littered(tmp_path / "project")
    program = f"""
from aigo_bridge.evaluation.task import plan
from aigo_bridge.plan.plan import PlanOrigin
assert [sample.data for sample in plan(PlanOrigin({str(task)!r})).samples] == [{{"q": "Q"}}]
"""
    in_a_process(program)


def test_stray_files_do_not_block_a_search(tmp_path: Path) -> None:
    task = littered(tmp_path / "project")
    assert project_of(task.parent) is None
    assert find_dataset("rows", {}, task).name == "rows.jsonl"
    assert find_hub_datasets(task) == {}
    assert find_task_with_key("t", task.parent / "run.yaml") == task
    assert find_run_file("e", task) is None
    assert find_adapter("other", (), task.parent) is None
    for number, kind in enumerate(STRAY):
        assert kind_of(task.parent / f"a{number}.yaml", root=task.parent) is None, kind


def test_unreadable_neighbours_are_reported_for_a_missing_dataset(tmp_path: Path) -> None:
    task = project(tmp_path / "project")
    (task.parent / "datasets" / "rows.jsonl").unlink()
    STRAY["brackets"](task.parent / "a.yaml")
    STRAY["pipe"](task.parent / "b.yaml")
    with pytest.raises(SpecError, match=r"skipped, because they are not valid YAML: .*a\.yaml, .*b\.yaml"):
        find_dataset("rows", {}, task)


def test_folder_with_stray_files_is_validated(tmp_path: Path) -> None:
    task = littered(tmp_path / "project")
    for number, (kind, make) in enumerate(STRAY.items()):
        if kind != "sparse":  # reading on is right there: the rest may be a log
            make(task.parent / f"old{number}.tasklog.json")
    reports = {report.file.name: report for report in validate([task.parent])}
    assert reports["task.yaml"].is_valid(strict=True)


@pytest.mark.parametrize("kind", ["pipe", "device", "socket", "folder", "to itself", "to nothing"])
def test_special_files_are_not_task_files(kind: str, tmp_path: Path) -> None:
    task = tmp_path / "task.yaml"
    task.write_text("key: t\ndisplay_name: T\ndescription: !include x.md\ndefinition: {scorers: []}\n")
    STRAY[kind](tmp_path / "x.md")
    with pytest.raises(
        SpecError, match=r"is a folder|is not a regular file|does not exist|cannot be read|is outside"
    ):
        read(TaskSpec, task)
    for name in ("rows.jsonl", "rows.csv", "rows.parquet", "rows.jsonl.gz"):
        STRAY[kind](tmp_path / name)
        with pytest.raises(
            DatasetError, match=r"the data file (is a folder|is not a regular file|does not exist|cannot be)"
        ):
            load_file(tmp_path / name)
    with pytest.raises(SpecError, match="cannot be read"):
        read_task_file(tmp_path / "rows.jsonl")


def test_a_pipe_or_device_in_a_folder_of_texts_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text", encoding="utf-8")
    os.mkfifo(tmp_path / "b.txt")
    _sparse(tmp_path / "c.txt")
    problems = Problems("folder")
    assert [row.data["content"] for row in FolderTable(tmp_path, None).records(problems)] == ["text"]
    with pytest.raises(DatasetError) as caught:
        problems.raise_if_any()
    assert "b.txt: is not a regular file" in str(caught.value)
    assert "c.txt: is larger than 64 MiB" in str(caught.value)


def test_hostile_front_matter_is_read_as_text(tmp_path: Path) -> None:
    matters = ["[" * 60_000, "a: " + "{b: " * 15_000, "a: 1" + ":59" * 20_000, "- " * 30_000, "a: &a [*a]"]
    for number, matter in enumerate(matters):
        (tmp_path / f"{number}.md").write_text(f"---\n{matter}\n---\ntext", encoding="utf-8")
    program = f"""
from pathlib import Path
from aigo_bridge.datasets.files import FolderTable
from aigo_bridge.datasets.rows import Problems
table = FolderTable(Path({str(tmp_path)!r}), None)
rows = list(table.records(Problems("folder")))
print(len(rows), len(table.warnings), {{row.data["content"][:3] for row in rows}})
"""
    assert in_a_process(program).strip() == "5 5 {'---'}"


@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl", "rows.csv", "tasks.jsonl"])
@pytest.mark.parametrize(
    "content",
    [
        b"[" * 3_000_000,
        b'{"a":' * 1_000_000,
        b'"' * 3_000_000,
        b"9" * 3_000_000,
        b'[{"q": ' + b"9" * 1_000_000 + b"}]",
    ],
)
def test_hostile_rows_are_reported(name: str, content: bytes, aigo: Run, tmp_path: Path) -> None:
    task = project(tmp_path / "project")
    (task.parent / "datasets" / "rows.jsonl").unlink()
    (task.parent / name).write_bytes(content)
    done = aigo("validate", task.parent / name if name == "tasks.jsonl" else task)
    assert done.code in (0, 1)
    assert len(done.out) < 20_000
    assert "Traceback" not in done.err


READ = """
from pathlib import Path
from aigo_bridge.errors import SpecError
from aigo_bridge.reading import read
from aigo_bridge.spec.task import TaskSpec
for path in sorted(Path({folder!r}).glob("*.yaml")):
    try:
        read(TaskSpec, path)
    except SpecError as error:
        print(error.issues[0].message)
"""


def test_absurd_numbers_are_not_computed(tmp_path: Path) -> None:
    """A base-60 number of a megabyte would take almost a minute."""
    long = "1" + ":59" * 300_000
    for number, value in enumerate(
        [long, long + ".5", "0x" + "f" * 6000, "1" * 6000, "2024-01-01 10:00:00." + "1" * 6000]
    ):
        text = f"key: {value}\ndisplay_name: A\ndescription: ''\ndefinition: {{scorers: []}}\n"
        (tmp_path / f"{number}.yaml").write_text(text, encoding="utf-8")
    assert in_a_process(READ.format(folder=str(tmp_path))).count(" is not a ") == 5


def test_aliases_to_a_large_text_are_counted_before_expansion(tmp_path: Path) -> None:
    (tmp_path / "big.md").write_text(" " + "x" * (16 * 2**20 - 2) + "\n", encoding="utf-8")
    bodies = [
        # 14 KB of aliases, each a copy of 16 MiB before they were counted.
        "long_description: &a !include big.md\ntags: [" + ", ".join(["*a"] * 3500) + "]\n",
        "tags: [" + ", ".join(["!include big.md"] * 900) + "]\n",
    ]
    for number, body in enumerate(bodies):
        text = f"key: a\ndisplay_name: A\ndescription: ''\n{body}definition: {{scorers: []}}\n"
        (tmp_path / f"{number}.yaml").write_text(text, encoding="utf-8")
    said = in_a_process(READ.format(folder=str(tmp_path)), memory=1 << 30)
    assert said.count("expands to more than 67,108,864 characters") == 2


# --- the one place where files are opened


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    for kind in ("pipe", "device", "socket", "folder"):
        STRAY[kind](tmp_path / kind)
        with pytest.raises(IrregularFileError):
            open_regular(tmp_path / kind)
    (tmp_path / "file").write_bytes(b"12345")
    assert read_regular(tmp_path / "file", 5) == b"12345"
    with pytest.raises(FileTooLargeError):
        read_regular(tmp_path / "file", 4)


def test_links_are_resolved_before_paths_are_checked(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "out").write_bytes(b"out")
    (root / "in").write_bytes(b"in")
    (root / "sub" / "good").symlink_to("../in")
    (root / "sub" / "bad").symlink_to("../../out")
    (root / "sub" / "all").symlink_to(tmp_path)
    assert read_regular(root / "sub" / "good", 10, root) == b"in"
    for path in (root / "sub" / "bad", root / "sub" / "all" / "out", root / ".." / "out", tmp_path / "out"):
        with pytest.raises(OutsideRootError):
            open_regular(path, root)
        assert not is_below(path, root)
    assert [issue.message.split(":")[0] for issue in refusals_below(root, root)] == ["sub/all", "sub/bad"]


def test_link_swapped_in_before_opening_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path leaves the root when it is opened, but not when it was checked."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").write_bytes(b"in")
    (tmp_path / "out").write_bytes(b"out")
    opened = os.open

    def swapping(path: Path, flags: int) -> int:
        (root / "file").rename(root / "kept")
        (root / "file").symlink_to(tmp_path / "out")
        descriptor = opened(path, flags)
        (root / "file").unlink()
        (root / "kept").rename(root / "file")
        return descriptor

    monkeypatch.setattr(os, "open", swapping)
    with pytest.raises(OutsideRootError):
        open_regular(root / "file", root)


def test_pipe_in_place_of_an_environment_file_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aigo_bridge.reading.variables import environment

    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / ".env")
    assert environment() == dict(os.environ)
