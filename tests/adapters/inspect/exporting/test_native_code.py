"""Generated files read like handwritten code: formatted, without warnings, and with exact values."""

from __future__ import annotations

import inspect
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import Case, Export, Make, evaluate, numbers_of_log

NASTY = 'both \' and ", a \\ and """, a \x85 and \u202e, \U0001f600 and \t\r\n'
LONG = "a very long name of something that somebody did not want to make any shorter " * 2
CONFIG: list[dict[str, Any]] = [
    {"type": "string", "key": "plain", "display_name": NASTY, "description": LONG, "default_value": NASTY},
    {"type": "string", "key": "quoted", "display_name": '"q"', "default_value": 'say "a" and "b"'},
    {"type": "string", "key": LONG.strip(), "display_name": "L", "default_value": LONG},
    {"type": "string", "key": "a-b", "display_name": "One", "default_value": "-"},
    {"type": "string", "key": "a_b", "display_name": "Two", "default_value": "_"},
    {"type": "string", "key": "1st", "display_name": "Digit", "default_value": "1"},
    {"type": "string", "key": "lambda", "display_name": "Keyword", "default_value": ""},
    {"type": "string", "key": "größe", "display_name": "Unicode", "default_value": "ß"},
    {"type": "string", "key": "FILES", "display_name": "Taken", "nullable": True},
    {"type": "list", "dtype": "string", "key": "none", "display_name": "No items", "default_value": []},
    {"type": "list", "dtype": "float", "key": "one", "display_name": "One item", "default_value": [1e-300]},
    {"type": "dict", "value_dtype": "string", "key": "map", "display_name": "Map", "default_value": {NASTY: LONG, "": ""}},
    {"type": "categorical", "key": "pick", "display_name": "P", "multiple": True, "allowed_values": ["x", "y"], "default_value": ["y"]},
    {"type": "int", "key": "big", "display_name": "Big", "default_value": -(2**63)},
]  # fmt: skip
SOLVER = {
    "type": "single_turn_solver",
    "input_builder": {
        "type": "chat_completion",
        "input_messages": [{"role": "user", "content": "{{ sample.w }}"}],
    },
}
METRICS = [
    {"type": "mean", "field": "is_correct", "name": NASTY},
    {"type": "std_dev", "field": "is_correct", "name": LONG},
    {"type": "max", "field": LONG},
    {"type": "frequency", "field": LONG},
    *({"type": "min", "field": "is_correct", "name": "n" * width} for width in range(30, 75, 3)),
]
EQUALS = {"type": "string_equals", "ground_truth": "{{ sample.w }}", "metrics": METRICS}
CONVERSATION = {
    "type": "multi_turn_solver",
    "message_builders": [
        {"type": "chat_message", "role": "user", "content": "{{ sample.w }}"},
        {"type": "generate"},
        {"type": "generate"},
    ],
}
DYNAMIC = {
    "type": "multi_turn_solver",
    "message_builders": [
        {"type": "chat_message", "role": "user", "content": "{{ sample.w }}"},
        {"type": "loop", "max_iterations": 2, "message_builders": [{"type": "generate", "terminate_if": {"includes": "?"}}]},
    ],
}  # fmt: skip
GENERIC = {
    "type": "single_turn_solver",
    "input_builder": {
        "type": "generic",
        "template": '{"messages": [{"role": "user", "content": {{ sample.w | tojson }}}], "temperature": 0}',
    },
}


RULE = {
    "key": "r",
    "action": "exclude_from_metrics",
    "filter": {"op": "equals", "expression": "{{ sample.w }}", "value": "y"},
}


def task(solver: dict[str, Any], scorers: list[dict[str, Any]], key: str = "json") -> dict[str, Any]:
    aggregators = [
        {"score_name": "is_correct", "aggregator": {"function": function, "score_name": name, **more}}
        for function, name, more in (("mean", LONG, {}), ("pass@k", "p" * 55, {"k": 10}), ("pass^k", NASTY + "k", {"k": 3}))
    ]  # fmt: skip
    return {
        "key": key,
        "display_name": '"' + NASTY + LONG + '"',
        "description": NASTY + '"',
        "config_spec": CONFIG,
        "definition": {
            "dataset": {"key": "rows"},
            "solver": solver,
            "scorers": scorers,
            "trials": {"num_trials": 2, "score_aggregators": aggregators if scorers else []},
            **({"actions": [RULE]} if solver is DYNAMIC else {}),
        },
    }


SCORERS: list[dict[str, Any]] = [
    EQUALS,
    {**EQUALS, "key": "k" * 200, "metrics": METRICS[:1]},
    *({**EQUALS, "key": f"{'k-' * width}x", "metrics": METRICS[:1]} for width in range(18, 30)),
    {"type": "string_equals", "key": "task", "ground_truth": "a", "value": "a", "metrics": []},
    {"type": "string_equals_mcqa", "key": "scorer", "ground_truth_choice": "A", "choices": ["A"]},
    {"type": "bleu", "key": "class", "ground_truth": "a"},
]
FORMS: dict[str, tuple[list[str], dict[str, Any], list[dict[str, Any]]]] = {
    "hosted": ([], SOLVER, SCORERS),
    "native": (["--native"], SOLVER, SCORERS),
    "native conversation": (["--native"], CONVERSATION, SCORERS[:1]),
    "native dynamic conversation": (["--native"], DYNAMIC, SCORERS[:1]),
    "native with options": (["--native"], GENERIC, []),
}


@pytest.fixture(params=FORMS)
def exported(request: pytest.FixtureRequest, case: Make, export: Export) -> tuple[Case, Path]:
    options, solver, scorers = FORMS[request.param]
    made = case(task(solver, scorers), [{"w": "x"}])
    return made, export(made, *options)


def test_exported_files_are_formatted_and_compile_without_warnings(exported: tuple[Case, Path]) -> None:
    """Ruff accepts the files. Bidirectional control characters and invalid characters are escaped."""
    _, file = exported
    for path in (file, file.parent / "README.md"):
        assert all(char.isprintable() or char == "\n" for char in path.read_text())
    binaries = Path(sys.executable).parent
    commands: tuple[list[str | Path], ...] = (
        [binaries / "ruff", "format", "--isolated", "--no-cache", "--diff", file],
        [binaries / "ruff", "check", "--isolated", "--no-cache", "--select", "E4,E7,E9,F,B,UP,RUF100,PLE,C4,SIM", file],
        [sys.executable, "-W", "error", "-c", "import sys; compile(open(sys.argv[1]).read(), sys.argv[1], 'exec')", file],
    )  # fmt: skip
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_exported_files_run(exported: tuple[Case, Path]) -> None:
    """A task called `json` does not shadow the `json` module."""
    made, file = exported

    log = evaluate(file, made.model)

    assert file.name == "json_task.py"
    assert not numbers_of_log(log, scored=log.results is not None).failed


def test_argument_defaults_are_the_exported_values(case: Make, export: Export) -> None:
    made = case(task(SOLVER, []), [{"w": "x"}])

    signature = inspect.signature(runpy.run_path(str(export(made)))["json_task"])

    defaults = {name: parameter.default for name, parameter in signature.parameters.items()}
    by_key = {parameter["key"]: parameter.get("default_value") for parameter in CONFIG}
    names = list(defaults)
    assert names == [
        "plain", "quoted", "a_very_long_name_of_something_that_somebody_did_no", "a_b_2", "a_b", "_1st", "lambda_", "größe",
        "FILES_2", "none", "one", "map", "pick", "big", "num_samples",
    ]  # fmt: skip
    assert [defaults[name] for name in names[:-1]] == list(by_key.values())
