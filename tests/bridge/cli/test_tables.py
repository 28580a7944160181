"""Tables are complete at every terminal width. A narrow terminal shows entries below each other."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text
from tests.support.commands import Run

from aigo_bridge.cli.tables import print_entries, print_table


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Make standard output a terminal with the given number of columns."""

    def be(columns: int) -> None:
        for module in ("aigo_bridge.cli.tables", "aigo_bridge.cli.verbs.list"):
            monkeypatch.setattr(f"{module}.width_of", lambda _: columns)
        monkeypatch.setenv("COLUMNS", str(columns))

    return be


def scores() -> Table:
    table = Table("task", "metric", "value", box=None, padding=(0, 3, 0, 0))
    for cells in (("größe [x]", "accuracy", "0.75"), ("", "words", "–"), ("空 quiz", "accuracy", "1")):
        table.add_row(*map(Text, cells))
    return table


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    print_table(
        Console(file=sys.stdout, highlight=False, soft_wrap=True, color_system=None, width=250), scores()
    )
    return capsys.readouterr().out


@pytest.mark.parametrize("columns", [33, 200])
def test_wide_terminal_shows_a_table(
    columns: int, terminal: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    terminal(columns)

    lines = [line.split() for line in printed(capsys).splitlines()]

    assert lines[0] == ["task", "metric", "value"]
    assert lines[1:] == [
        ["größe", "[x]", "accuracy", "0.75"],
        ["words", "–"],
        ["空", "quiz", "accuracy", "1"],
    ]


def test_narrow_terminal_shows_entries_with_all_table_values(
    terminal: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    terminal(20)

    assert printed(capsys).splitlines() == [
        "größe [x]",
        "  metric: accuracy",
        "  value: 0.75",
        "  metric: words",
        "  value: –",
        "空 quiz",
        "  metric: accuracy",
        "  value: 1",
    ]


def test_piped_output_is_a_table_at_every_width(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "20")

    assert len(printed(capsys).splitlines()) == 4


def test_long_texts_are_wrapped_but_option_names_stay_whole(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_entries(("task", "what"), [("quiz", "asks a lot about what --full-rows does")], 30)

    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 30
    assert " ".join(" ".join(lines).split()) == "quiz what: asks a lot about what --full-rows does"
    assert any("--full-rows" in line for line in lines)


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_task_list_is_complete_at_every_width(
    columns: int, terminal: Callable[[int], None], aigo: Run
) -> None:
    piped = {task["name"]: task for task in aigo("list", "--json").json}
    terminal(columns)

    out = aigo("list").out

    listing = out.rpartition("\n\nsample:")[0]
    assert "…" not in listing
    assert max(map(len, listing.splitlines())) <= columns
    words = set(listing.replace(",", " ").split())
    for name, task in piped.items():
        assert name in words
        assert [key for key in task["parameters"] if key not in words] == []
