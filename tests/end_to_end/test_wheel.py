"""The installed wheel: the command, shipped tasks and Inspect's registry work without the source."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import REPOSITORY
from tests.support.plugins import NOTHING_REGISTERED


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`bin` folder of an environment with only the wheel and its dependencies."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, REPOSITORY],
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "env")
    # Its own pip would take longer to be installed than all that it installs.
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "env" / "bin" / "python")]
    subprocess.run(
        [*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)],
        check=True,
        capture_output=True,
    )
    # Dependencies are looked up in the environment of the tests. Path files in there are not followed, so the editable
    # installation of the source is out of reach.
    (site,) = (folder / "env" / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "env" / "bin"


def run(binary: Path, *arguments: object, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["PYTHONPATH"] = NOTHING_REGISTERED
    done = subprocess.run(
        [binary, *map(str, arguments)], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_installed_wheel_loads_nothing_from_the_source_tree(installed: Path, tmp_path: Path) -> None:
    code = "import aigo_bridge, aigo_inspect, aigo_tasks; print(aigo_bridge.__file__, aigo_inspect.__file__, aigo_tasks.__file__)"
    out = run(installed / "python", "-c", code, cwd=tmp_path)

    assert all(str(installed.parent) in path for path in out.split())


def test_shipped_task_runs_by_name(installed: Path, tmp_path: Path) -> None:
    """`aigo-bridge run aigo_tasks/<name>` from the wheel, as listed by `aigo-bridge list`."""
    listed: list[dict[str, Any]] = json.loads(run(installed / "aigo-bridge", "list", "--json", cwd=tmp_path))
    assert "aigo_tasks/singleturn-generic-input" in [row["name"] for row in listed]
    code = "import aigo_tasks; print(aigo_tasks.__path__[0])"
    answers = (
        Path(run(installed / "python", "-c", code, cwd=tmp_path).strip())
        / "singleturn-generic-input/answers.jsonl"
    )

    out = run(
        installed / "aigo-bridge", "run", "aigo_tasks/singleturn-generic-input", "--model", f"scripted/{answers}",
        "--json", cwd=tmp_path,
    )  # fmt: skip

    assert json.loads(out)["metrics"][0]["value"] == pytest.approx(18 / 22)
    assert (tmp_path / "out" / "singleturn-generic-input.tasklog.json").is_file()


def test_both_files_of_task_records_are_in_the_wheel(installed: Path, tmp_path: Path) -> None:
    code = (
        "from aigo_bridge.jsonl_spec import Rule, fixture_file, load_fixtures, validate_file;"
        "print(len(load_fixtures()), len(validate_file(fixture_file('tasks_bad.jsonl'))[1]) == len(Rule))"
    )

    assert run(installed / "python", "-c", code, cwd=tmp_path) == "10 True\n"


def test_inspect_finds_the_task_of_the_wheel(installed: Path, tmp_path: Path) -> None:
    """The registered name equals that of an editable installation."""
    (tmp_path / "d.jsonl").write_text('{"v": 1}\n{"v": 2}\n')
    code = (
        "from inspect_ai._cli.main import main; import sys;"
        "sys.argv = ['inspect', 'eval', 'aigo_bridge/task', '-T', 'task=aigo_tasks/uniqueness-task', '-T',"
        " 'config=field=v', '-T', 'dataset=d=d.jsonl', '--model', 'none', '--log-dir', 'logs', '--display', 'none'];"
        "main()"
    )
    run(installed / "python", "-c", code, cwd=tmp_path)

    assert len(list((tmp_path / "logs").glob("*.eval"))) == 1
