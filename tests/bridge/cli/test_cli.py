"""Behavior of all commands: verbosity, output width and option names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.commands import TASKS, Run

from aigo_bridge.cli import VERBS
from aigo_bridge.cli.terminal import is_quiet, is_verbose, note


@pytest.mark.parametrize(
    "words", [["-q", "power"], ["power", "-q"], ["--quiet", "power"], ["power", "--quiet"]]
)
def test_verbosity_options_are_accepted_anywhere(aigo: Run, words: list[str]) -> None:
    assert aigo(*words, "--rates", "0.8,0.83").code == 0
    assert (is_quiet(), is_verbose()) == (True, False)
    assert aigo("power", "--rates", "0.8,0.83", "-v").code == 0
    assert (is_quiet(), is_verbose()) == (False, True)
    assert aigo("power", "--rates", "0.8,0.83").code == 0
    assert (is_quiet(), is_verbose()) == (False, False)


def test_option_value_is_not_read_as_a_verbosity_option(aigo: Run) -> None:
    assert "-q" in aigo("validate", ".", "--format", "-q").err
    assert "'-v'" in aigo("validate", "--", "-v").err


def test_quiet_hides_notes_but_not_errors(aigo: Run, capsys: pytest.CaptureFixture[str]) -> None:
    done = aigo("-q", "validate", "nothing.yaml")
    note("something")

    assert done.code == 2
    assert "nothing.yaml" in done.err
    assert capsys.readouterr().err == ""
    aigo("list", "--help")
    aigo("schema", "task")
    note("something")
    assert capsys.readouterr().err == "something\n"


def test_verbose_output_names_the_project_defaults(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "aigo-bridge.toml").write_text("[validate]\nstrict = true\n")

    assert aigo("validate", TASKS / "gsm8k", "-v").err == "defaults of aigo-bridge.toml: --strict\n"
    assert aigo("validate", TASKS / "gsm8k").err == ""


@pytest.mark.parametrize(
    ("words", "description"),
    [
        (["run"], "'TASK'. Task file"),
        (["compare", "out"], "'NEW…'. Result logs, folders or run files to compare with BASE."),
        (["lake", "list"], "'LAKE'. Lake folder or URL"),
        (["parity"], "'TASK'. Task file"),
    ],
)
def test_missing_argument_is_described_with_an_example(aigo: Run, words: list[str], description: str) -> None:
    done = aigo(*words)

    assert done.code == 2
    assert f"Missing argument {description}" in done.err
    assert f"\nExample: aigo-bridge {words[0]} " in done.err


@pytest.mark.parametrize("columns", [60, 100, 200])
def test_help_is_as_wide_as_the_terminal(columns: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from aigo_bridge.cli import app; app(['run', '--help'], prog_name='aigo-bridge')"],
        env={**os.environ, "COLUMNS": str(columns), "PYTHONUTF8": "1"},
        capture_output=True, text=True, check=True, encoding="utf-8",
    )  # fmt: skip

    # Examples are not wrapped, so that they can be copied.
    lines = [line for line in done.stdout.splitlines() if not line.startswith("  aigo-bridge")]
    widest = max(map(len, lines))
    assert min(columns, 120) * 0.8 < widest <= min(columns, 120)


def test_option_names_of_the_engines_are_accepted(aigo: Run) -> None:
    for verb, words in {
        "run": ("--limit", "--epochs"),
        "explain": ("--limit",),
        "export": ("--limit",),
    }.items():
        out = aigo(verb, "--help").out
        assert [word for word in words if word not in out] == []


def test_no_command_uses_the_verbosity_letters_for_another_option(aigo: Run) -> None:
    for verb in VERBS:
        assert " -q" not in aigo(verb, "--help").out
        assert " -v" not in aigo(verb, "--help").out


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("valdate", "No such command 'valdate'. Did you mean 'validate'?"),
        ("rnu", "No such command 'rnu'. Did you mean 'run'?"),
        ("improt", "No such command 'improt'. Did you mean 'import' or 'plot'?"),
        ("xyzzy", "No such command 'xyzzy'."),
    ],
)
def test_a_misspelled_command_is_reported_with_similar_ones(aigo: Run, typed: str, said: str) -> None:
    done = aigo(typed, "x.yaml")

    assert done.code == 2
    assert done.err.rstrip().endswith(said)
