"""Printed text cannot control the terminal, and shows the right positions."""

from __future__ import annotations

import unicodedata

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.cli.error_handling import reported
from aigo_bridge.cli.metric_tables import shown_rows
from aigo_bridge.cli.outcomes import metric_problems
from aigo_bridge.cli.progress import failure_line, progress
from aigo_bridge.cli.terminal import one_line, printable
from aigo_bridge.engine.protocol import Progress
from aigo_bridge.errors import Issue, SpecError, UsageError
from aigo_bridge.exit_codes import ExitCode
from aigo_bridge.results.assembling import MetricRow


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain – Ω 👍", "plain – Ω 👍"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\rb", "a\\rb"),
        ("\x9b1m", "\\x9b1m"),
        ("user\u202etxt.exe", "user\\u202etxt.exe"),
        ("\udcff", "\\udcff"),
        ("\U000e0041", "\\U000e0041"),
        ("a\tb\nc", "a\tb\nc"),
    ],
)
def test_control_characters_become_visible(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(st.characters()))
def test_printed_text_contains_no_control_characters(text: str) -> None:
    kinds = {unicodedata.category(char) for char in printable(text) if char not in "\n\t"}
    assert not kinds & {"Cc", "Cf", "Cs"}


@given(st.text(st.characters()), st.integers(1, 50))
def test_one_line_returns_a_single_line_of_limited_length(text: str, length: int) -> None:
    line = one_line(text, length)
    assert "\n" not in line
    assert len(line) <= length


def test_one_line_skips_blank_lines_and_marks_truncation() -> None:
    assert one_line("\n  \n boom\nat x") == "boom"
    assert one_line("abcdef", 4) == "abc…"
    assert one_line("abcd", 4) == "abcd"
    assert one_line("") == ""


def test_every_issue_is_shown_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    issues = [
        Issue("found 'x', expected a number", "t.yaml", 3, 6, hint="remove it", source_line="key: x"),
        Issue("what\x1b[2J", severity="warning"),
        Issue("no columns", "t.yaml", 4),
    ]
    with pytest.raises(typer.Exit) as caught, reported():
        raise SpecError(issues)
    assert caught.value.exit_code == 2
    shown = capsys.readouterr().err
    assert (
        "t.yaml:3:6: error: found 'x', expected a number\n3 | key: x\n  |      ^\n  hint: remove it\n"
        in shown
    )
    assert "warning: what\\x1b[2J\n" in shown
    assert "t.yaml:4: error: no columns\n" in shown
    assert shown.endswith("2 errors, 1 warning\n")


def test_errors_without_a_position_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as caught, reported(ExitCode.FAILED):
        raise UsageError("say which model")
    assert caught.value.exit_code == 1
    assert capsys.readouterr().err == "error: say which model\n"


@pytest.mark.parametrize(
    ("arguments", "remains"),
    [
        (["-v", "run", "task.yaml"], "continue with `run --resume`"),
        (["import", "run"], "no partial files are left"),
    ],
)
def test_interruption_exits_with_the_usual_code(
    arguments: list[str], remains: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["aigo-bridge", *arguments])
    with pytest.raises(typer.Exit) as caught, reported():
        raise KeyboardInterrupt
    assert caught.value.exit_code == 130
    assert remains in capsys.readouterr().err


def test_unexpected_exceptions_are_raised() -> None:
    with pytest.raises(ZeroDivisionError), reported():
        raise ZeroDivisionError


def test_progress_without_a_terminal_is_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as tell:
        assert tell is not None
        tell(Progress(0, 3, 0))
        tell(Progress(1, 3, 0, "a"))
        tell(Progress(2, 3, 1, "b\x1b[2J", "boom\x07\nsecond line"))
        tell(Progress(3, 3, 1, "c"))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "0/3 samples\nsample b\\x1b[2J: boom\\x07\n3/3 samples, 1 failed\n"


def test_progress_counts_trials_if_there_are_several(capsys: pytest.CaptureFixture[str]) -> None:
    """A failure names the trial, and a repeated failure of a sample is reported once."""
    with progress() as tell:
        assert tell is not None
        tell(Progress(0, 6, 0, trials=True))
        for done in (1, 2, 3):
            tell(Progress(done, 6, done, "a", "boom", trials=True, trial=done - 1))
        tell(Progress(4, 6, 4, "a", "bang", trials=True, trial=3))
        tell(Progress(6, 6, 4, "b", trials=True, trial=0))
    shown = capsys.readouterr().err
    assert shown == "0/6 trials\nsample a, trial 1: boom\nsample a, trial 4: bang\n6/6 trials, 4 failed\n"


def test_progress_can_be_switched_off() -> None:
    with progress(enabled=False) as tell:
        assert tell is None


def test_failure_is_printed_on_one_line() -> None:
    assert failure_line(Progress(1, 1, 1, "x\ny", "z" * 1000)).count("\n") == 0
    assert len(failure_line(Progress(1, 1, 1, "x" * 1000, "z" * 1000))) < 420


def test_problem_of_a_metric_with_many_values_is_reported_once() -> None:
    rows = [
        MetricRow("a", "accuracy", 0.5, 6, "no denominator"),
        MetricRow("a", "x_recall", 0.0, 6, "no denominator"),
        MetricRow("a", "mean", 1.0, 6),
        MetricRow("b", "accuracy", 0.5, 6, "no denominator"),
    ]
    assert list(metric_problems(rows)) == ["accuracy and 1 more: no denominator", "accuracy: no denominator"]


def test_metrics_with_the_same_name_are_distinguished() -> None:
    rows = [
        MetricRow("a", "accuracy", 0.5, 6, metric_key="binary_classification"),
        MetricRow("a", "accuracy", 0.6, 6, metric_key="mean"),
        MetricRow("b", "accuracy", 0.5, 6, metric_key="mean"),
        MetricRow("b", "recall", 0.5, 6, metric_key="recall"),
    ]
    assert [label for label, _, _ in shown_rows(rows)] == [
        "accuracy (a, binary_classification)",
        "accuracy (a, mean)",
        "accuracy (b, mean)",
        "recall",
    ]
