"""Option defaults from project settings: they act like typed options, and typed options override them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.commands import TASKS, Run

from aigo_bridge.cli import VERBS, LazyGroup
from aigo_bridge.cli.defaults import set_defaults


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    return tmp_path / "aigo-bridge.toml"


def test_default_from_the_settings_counts_like_a_typed_option(aigo: Run, settings: Path) -> None:
    settings.write_text('[list]\njson = true\n[explain]\nnum-samples = 1\n[power]\nrates = "0.8,0.83"\n')

    assert aigo("list").json
    assert "needed" in aigo("power").out


def test_typed_options_override_defaults(aigo: Run, settings: Path, tasks: Path) -> None:
    settings.write_text('[validate]\nformat = "json"\n')
    task = TASKS / "gsm8k" / "task.yaml"

    assert aigo("validate", task).json
    for words in (["--format", "rich"], ["--format=rich"]):
        assert "a valid task" in aigo("validate", task, *words).out


def test_repeated_options_are_lists_or_tables_in_the_settings(
    aigo: Run, settings: Path, tmp_path: Path
) -> None:
    settings.write_text('[explain]\ndataset = {rows = "rows.jsonl"}\nconfig = ["a=1", "b=2"]\n')

    done = aigo("explain", TASKS / "uniqueness-task")

    assert done.code == 2
    assert "'a'" in done.err
    assert "'b'" in done.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[rum]\n", "aigo-bridge.toml:1:2: error: rum: unknown setting"),
        ("run = 3\n", "aigo-bridge.toml:1:1: error: run: found 3, expected a table of options"),
        ("[run]\nmodell = 'm'\n", "2:1: error: run.modell: unknown option"),
        ("[run]\nmodell = 'm'\n", "did you mean 'model'?"),
        ("[run]\nreport = 1\n", "run.report: found 1, expected true or false"),
        ("[run]\nmodel = true\n", "run.model: found True, expected a text or a number"),
        ("[run]\nmodel = ['a', 'b']\n", "run.model: found ['a', 'b'], expected one value"),
        (
            "[run]\nenv = ['X']\n",
            "run.env: permissions cannot be defaults; use the option on the command line",
        ),
        ("[run]\nallow = 'network'\n", "run.allow: permissions cannot be defaults"),
        ("[run]\nallow_url = ['127.0.0.1']\n", "run.allow_url: permissions cannot be defaults"),
        ("[run]\nroot = '/'\n", "run.root: permissions cannot be defaults"),
        ("[run]\ncustom-tasks = 'x.py'\n", "run.custom-tasks: permissions cannot be defaults"),
        ("[run]\nsnippets = 'in-process'\n", "run.snippets: permissions cannot be defaults"),
        ("[run]\nnetwork = true\n", "run.network: permissions cannot be defaults"),
        ("[import]\nredact = false\n", "import.redact: permissions cannot be defaults"),
        ("[run]\nout = '../elsewhere'\n", "run.out: found '../elsewhere', expected a folder in this project"),
        ("[run]\nengine-option = ['x']\n", "run.engine-option: unknown option"),
    ],
)
def test_an_invalid_default_is_reported_with_its_position(
    aigo: Run, settings: Path, text: str, message: str
) -> None:
    settings.write_text(text)

    done = aigo("import" if "import" in text else "run", "x")

    assert done.code == 2
    assert message in done.err


def test_all_problems_are_reported_together(aigo: Run, settings: Path) -> None:
    settings.write_text("[run]\nmodell = 'm'\nreport = 1\n")

    assert "2 errors" in aigo("run", "x").err
    settings.write_text("[rnu]\n[run]\nmodell = 'm'\n")
    done = aigo("run", "x")
    assert "rnu: unknown setting" in done.err
    assert "run.modell: unknown option" in done.err
    settings.write_text("run = 3\nrnu = 4\n")
    assert "2 errors" in aigo("run", "x").err


def test_settings_of_other_commands_are_ignored(aigo: Run, settings: Path) -> None:
    settings.write_text("[run]\nmodell = 'm'\n")

    assert aigo("schema", "task").code == 0


def test_help_works_with_invalid_settings(aigo: Run, settings: Path) -> None:
    settings.write_text("[run")

    assert aigo("run", "--help").code == 0
    assert aigo("--version").code == 0
    assert aigo("list").code == 2


def test_a_refused_default_is_reported_with_its_position(aigo: Run, settings: Path) -> None:
    settings.write_text('[run]\nmax-connections = "many"\n')

    done = aigo("run", "x")

    assert done.code == 2
    assert f"(the default in {settings}:2:1)" in " ".join(done.err.split())
    assert "the default" not in aigo("run", "x", "--max-connections", "few").err


def values(verb: str, *typed: str) -> dict[str, Any]:
    """Return the parameter values of a command for the typed arguments."""
    command = LazyGroup(name="aigo-bridge").get_command(None, verb)
    group = SimpleNamespace(meta={}, default_map=None)
    set_defaults(group, verb, command, typed, list(VERBS))
    with command.make_context(verb, list(typed), default_map=group.default_map[verb]) as context:
        return dict(context.params)


@pytest.mark.engine
def test_defaults_that_do_not_apply_to_a_benchmark_are_ignored(aigo: Run, settings: Path) -> None:
    settings.write_text('[run]\ncache = "reuse"\nconfig = {a = "1"}\nout = "o"\n')

    benchmark, task = values("run", "inspect:gsm8k"), values("run", "task.yaml")

    assert (benchmark["cache"], [*benchmark["config"]], benchmark["out"]) == (None, [], Path("o"))
    assert (task["cache"], [*task["config"]], task["out"]) == ("reuse", ["a=1"], Path("o"))


def test_default_false_selects_the_negative_option(aigo: Run, settings: Path) -> None:
    settings.write_text("[run]\nnetwork = false\nreport = false\n")

    assert not values("run", "t")["network"]
    assert values("run", "t", "--network")["network"]
    assert not values("run", "--", "--network")["network"]


def test_short_option_with_attached_value_overrides_the_default(aigo: Run, settings: Path) -> None:
    settings.write_text("[run]\nnum-samples = 3\nout = 'o'\n")

    typed = values("run", "t", "-n5", "-o", "x")

    assert (typed["num_samples"], typed["out"]) == (5, Path("x"))
