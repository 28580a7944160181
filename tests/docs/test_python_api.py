"""`docs/reference/python-api.md` and docstring examples are executed: as a program and in a real Jupyter kernel."""

from __future__ import annotations

import asyncio
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from tests.support.commands import REPOSITORY
from tests.support.pages import Block, page

import aigo_bridge

PAGE = page(REPOSITORY / "docs" / "reference" / "python-api.md")
PROGRAMS = [block.text for block in PAGE.blocks if block.kind == "python"]
EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown_behind(blocks: list[Block]) -> list[str]:
    """Return the output that the page shows after each program, or an empty text."""
    following = [*blocks[1:], Block("", "")]
    return [
        text.text if text.kind == "text" else ""
        for block, text in zip(blocks, following, strict=True)
        if block.kind == "python"
    ]


SHOWN = shown_behind(PAGE.blocks)


@pytest.mark.timeout(600)  # loads two engines
def test_examples_print_the_shown_output(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for program, shown in zip(PROGRAMS, SHOWN, strict=True):
        exec(program, names)
        assert capsys.readouterr().out == shown


class ThisPython(AsyncKernelManager):
    """Kernel of the test environment, independent of the registered kernels."""

    @property
    def kernel_spec(self) -> KernelSpec:
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name="tests", language="python")


THREAD = """
import asyncio

loop = asyncio.get_running_loop()
outcome = await asyncio.to_thread(aigo_bridge.run, plan, "scripted/answers.jsonl", out="out/thread")
print(outcome.num_samples, loop is asyncio.get_running_loop(), hasattr(asyncio, "_nest_patched"))
"""
"""The loop of the notebook goes on, and is as it was."""


@pytest.mark.timeout(900)  # two engines are loaded, in a process of its own
def test_page_runs_as_a_notebook(folder: Path) -> None:
    form: Any = nbformat.v4  # has types in part
    cells = [form.new_code_cell(code) for code in (*PROGRAMS, THREAD)]
    notebook = form.new_notebook(cells=cells)
    client = NotebookClient(notebook, timeout=800, km=ThisPython(), resources={"metadata": {"path": folder}})

    asyncio.run(client.async_execute())

    printed = [
        "".join(output.text for output in cell.outputs if output.get("name") == "stdout") for cell in cells
    ]
    assert printed == [*SHOWN, "2 True False\n"]


@pytest.mark.timeout(600)  # loads two engines
def test_docstring_examples_are_correct(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    docs = [inspect.getdoc(getattr(aigo_bridge, name)) or "" for name in aigo_bridge.__all__]
    examples = [example for doc in docs for example in EXAMPLE.findall(doc)]
    assert len(examples) == 10

    for example in examples:
        exec(example, {})
    assert capsys.readouterr().out == ""


def test_page_lists_every_public_name() -> None:
    named = set(re.findall(r"`(\w+)`", PAGE.text))
    assert [name for name in aigo_bridge.__all__ if name != "__version__" and name not in named] == []


TYPES = """
from typing import Literal, reveal_type

engine: Literal["inspect", "lighteval"] = "lighteval"
aigo_bridge.run(plan, engine=engine)
aigo_bridge.run(plan, engine="of another package")
reveal_type(aigo_bridge.translate(plan))
reveal_type(aigo_bridge.translate(plan, "inspect"))
reveal_type(aigo_bridge.translate(plan, "lighteval"))
reveal_type(aigo_bridge.translate(plan, "of another package"))
"""
REVEALED = ["inspect_ai._eval.task.task.Task"] * 2 + ["list[lighteval.tasks.requests.Doc]", "Any"]


@pytest.mark.slow
def test_the_page_passes_a_strict_type_check(tmp_path: Path) -> None:
    program = tmp_path / "page.py"
    program.write_text("\n".join([*PROGRAMS, TYPES]))
    cache = REPOSITORY / ".mypy_cache" / "pages"
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), str(program)]

    done = subprocess.run(
        # pandas and lighteval have no types of their own.
        [*command, "--disable-error-code=import-untyped", "--config-file="],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )

    assert done.returncode == 0, done.stdout
    assert re.findall(r'Revealed type is "(.*)"', done.stdout) == REVEALED
