"""Command line of `aigo-bridge plot`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.commands import Run
from tests.support.missing import verbs_without
from tests.support.results import question, result, write_result


@pytest.fixture
def quiz(tmp_path: Path) -> Path:
    samples = [question(number, ["a", "b"][number % 2], "a") for number in range(4)]
    return write_result(tmp_path / "quiz.tasklog.json", result(samples))


def test_plot_writes_the_data_next_to_the_chart(aigo: Run, quiz: Path, tmp_path: Path) -> None:
    done = aigo("plot", "*.tasklog.json", "--chart", "scores", "-o", "fig.svg")

    assert (done.code, done.err) == (0, "")
    assert done.out == "chart  fig.svg\ndata   fig.csv\n"
    assert (tmp_path / "fig.csv").read_text().splitlines() == [
        "result,label,score,value,samples",
        "quiz.tasklog.json,some/model,exact.is_correct,0.0,2",
        "quiz.tasklog.json,some/model,exact.is_correct,1.0,2",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["quiz.tasklog.json", "-o", "fig.gif"], "found the extension '.gif', expected .svg, .png or .pdf"),
        (["quiz.tasklog.json", "-o", "f.svg", "--chart", "pie"], "no chart 'pie', expected metrics, scores"),
        (["quiz.tasklog.json", "-o", "f.svg", "--theme", "blue"], "no theme 'blue', expected paper, dark"),
        (["none.tasklog.json", "-o", "f.svg"], "result log 'none.tasklog.json' does not exist"),
        (
            ["quiz.tasklog.json", "-o", "f.svg"],
            "no data for the chart 'metrics', expected metrics with a value",
        ),
    ],
)
def test_invalid_plot_arguments_exit_with_2(
    aigo: Run, quiz: Path, arguments: list[str], message: str
) -> None:
    done = aigo("plot", *arguments)

    assert done.code == 2
    assert message in done.err


@pytest.mark.slow
def test_missing_plot_package_is_reported_with_the_install_command(quiz: Path, tmp_path: Path) -> None:
    picture, numbers = verbs_without(
        tmp_path,
        ["vl_convert", "scipy"],
        ["plot", str(quiz), "--chart", "scores", "-o", "f.svg"],
        ["plot", str(quiz), "-o", "f.svg"],
    )

    assert (picture.code, numbers.code) == (2, 2)
    assert "needs vl-convert-python, which is not installed; run: pip install " in picture.err
    assert not (tmp_path / "f.svg").exists()
