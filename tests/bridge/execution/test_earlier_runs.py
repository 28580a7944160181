"""`--resume` of a changed task warns before the first model call."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY, Run
from typer.testing import CliRunner

import aigo_bridge
from aigo_bridge.cli import app

pytestmark = pytest.mark.engine

RESUME = ("run", "capitals", "--model", "scripted/capitals/answers.jsonl", "--resume", "--progress", "plain")


def _edited(name: str, before: str, after: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert before in text
        (folder / name).write_text(text.replace(before, after, 1))

    return change


CHANGES = {
    "prompt": (_edited("task.yaml", "What is the", "Name the"), "input_messages[0].content: the task has"),
    "rows": (_edited("capitals.jsonl", "Lima", "Cusco"), "the rows: the task has"),
}


@pytest.fixture(scope="module", params=["inspect", "lighteval"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def finished_run(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(engine)
    shutil.copytree(REPOSITORY / "examples/capitals", folder / "capitals")
    with chdir(folder):
        assert CliRunner().invoke(app, [*RESUME[:4], "--engine", engine]).exit_code == 0
    return folder


@pytest.fixture
def folder(aigo: Run, tmp_path: Path, finished_run: Path) -> Path:
    """Return the folder of a finished run."""
    shutil.copytree(finished_run, tmp_path, dirs_exist_ok=True)
    return tmp_path / "capitals"


@pytest.mark.slow
@pytest.mark.parametrize("kind", CHANGES)
def test_resume_of_an_edited_task_warns_before_the_first_call(
    aigo: Run, folder: Path, engine: str, kind: str
) -> None:
    change, expected = CHANGES[kind]
    change(folder)
    finished = aigo(*RESUME, "--engine", engine)
    warning, _, rest = finished.err.partition("0/4 samples")
    assert rest
    text = " ".join(warning.split())
    assert (
        "all 4 trials of 'capitals' are run and their models are asked again, although that run finished 4"
        in text
    )
    assert expected in text


def test_resume_with_another_model_or_number_of_trials_names_both(
    aigo: Run, folder: Path, engine: str
) -> None:
    (folder / "other.jsonl").write_bytes((folder / "answers.jsonl").read_bytes())
    options = ("--model", "scripted/capitals/other.jsonl", "--num-trials", 2, "--engine", engine)
    text = " ".join(aigo(*RESUME, *options).err.split())
    assert "the model was 'scripted/capitals/answers.jsonl', now 'scripted/capitals/other.jsonl'" in text
    assert "num_trials: the task has 2, the log 1" in text


def test_resume_of_the_same_task_does_not_warn(aigo: Run, folder: Path, engine: str) -> None:
    assert "warning" not in aigo(*RESUME, "--engine", engine).err


def test_resume_in_python_warns_before_the_first_call(folder: Path, engine: str) -> None:
    CHANGES["prompt"][0](folder)
    logs = set(folder.parent.glob("out/**/*"))
    plan = aigo_bridge.plan_task(folder)
    with pytest.raises(UserWarning, match="cannot continue"):  # warnings are errors in tests
        aigo_bridge.run(plan, "scripted/capitals/answers.jsonl", out="out", engine=engine, resume=True)
    assert set(folder.parent.glob("out/**/*")) == logs
