"""Project settings: where they are found, and errors with their positions."""

from __future__ import annotations

from pathlib import Path

import pytest

from aigo_bridge.access.grants import project_variables
from aigo_bridge.access.opening import project_of
from aigo_bridge.access.settings import SettingsError, project_settings


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_settings_file_marks_a_project(tmp_path: Path) -> None:
    write(tmp_path / "p", "aigo-bridge.toml", '[run]\nmodel = "m"\n')
    inner = tmp_path / "p" / "tasks" / "a"
    inner.mkdir(parents=True)

    assert project_of(inner) == (tmp_path / "p").resolve()
    assert project_settings(inner).values == {"run": {"model": "m"}}
    assert project_settings(inner).name("run", "model") == "run.model"


def test_settings_table_in_pyproject_marks_a_project(tmp_path: Path) -> None:
    write(
        tmp_path,
        "pyproject.toml",
        '[tool.aigo-bridge]\nenv = ["REGION"]\n[tool.aigo-bridge.run]\nmodel = "m"\n',
    )

    settings = project_settings(tmp_path)

    assert settings.values["run"] == {"model": "m"}
    assert settings.name("run", "model") == "[tool.aigo-bridge] run.model"
    assert settings.issue("x", "run", "model").place.endswith("pyproject.toml:4:1")
    assert project_variables(tmp_path) == {"REGION"}


@pytest.mark.parametrize("text", ["", "[project]\nname = 'aigo-bridge'\n", "# aigo-bridge\n[tool.ruff]\n"])
def test_pyproject_without_the_settings_table_is_ignored(tmp_path: Path, text: str) -> None:
    write(tmp_path, "pyproject.toml", text)

    assert project_settings(tmp_path).file is None


def test_two_settings_files_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "aigo-bridge.toml", "")
    write(tmp_path, "pyproject.toml", "[project]\n[tool.aigo-bridge]\nenv = []\n")

    with pytest.raises(
        SettingsError, match=r"pyproject\.toml:2:2: \[tool\.aigo-bridge\] and aigo-bridge\.toml"
    ):
        project_settings(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 1\nb = \n", r"aigo-bridge\.toml:2:5: cannot be read as TOML: Invalid value"),
        ("a = 1\na = 2\n", r"aigo-bridge\.toml:2:6: cannot be read as TOML: Cannot overwrite"),
        ("[run", r"aigo-bridge\.toml: cannot be read as TOML: Expected ']'"),
        ("a = " + "[" * 5000, r"aigo-bridge\.toml: cannot be read as TOML: "),
        ("env = 3\n", r"aigo-bridge\.toml:1:1: env: found 3, expected a list of names"),
    ],
)
def test_an_unreadable_setting_is_reported_with_its_position(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, "aigo-bridge.toml", text)

    with pytest.raises(SettingsError, match=message):
        project_variables(tmp_path)


def test_settings_file_in_another_encoding_is_reported(tmp_path: Path) -> None:
    (tmp_path / "aigo-bridge.toml").write_bytes("# größer".encode("latin-1"))

    with pytest.raises(SettingsError, match="is not UTF-8"):
        project_settings(tmp_path)


@pytest.mark.parametrize(
    ("text", "path", "place"),
    [
        ("[run]\nmodel = 1\n", ("run", "model"), "2:1"),
        ("[run]\r\n  out = 1\r\n", ("run", "out"), "2:3"),
        ("run.model = 1\n", ("run", "model"), "1:1"),
        ('[ "run" ]\n"model" = 1\n', ("run", "model"), "2:1"),
        ("[run.model-map]\njudge = 1\n", ("run", "model-map", "judge"), "2:1"),
        ("[run.model-map]\njudge = 1\n", ("run", "model-map"), "1:2"),
        ("[stats]\nlevel = 1\n[run]\nlevel = 2\n", ("run", "level"), "4:1"),
        ("run = {model = 1}\n", ("run", "model"), "1:1"),
        ("x = 1\n", ("run",), ""),
    ],
)
def test_setting_position_is_reported_as_line_and_column(
    tmp_path: Path, text: str, path: tuple[str, ...], place: str
) -> None:
    file = tmp_path / "aigo-bridge.toml"
    file.write_bytes(text.encode())

    issue = project_settings(tmp_path).issue("x", *path)

    assert issue.place == f"{file}:{place}".rstrip(":")
