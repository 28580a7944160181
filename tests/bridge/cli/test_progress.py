"""Progress of a run: failures with their count, retries, and hints for a stalled run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from aigo_bridge.cli.progress import Display, Monitor, progress, totals_line
from aigo_bridge.cli.terminal import set_verbosity
from aigo_bridge.engine.protocol import Progress, ProgressTotals, Retry
from aigo_bridge.models.gate import WaitingCall, waiting


@dataclass
class Watched:
    """Progress monitor with a clock that the test sets."""

    options: dict[str, Any] = field(default_factory=dict)
    now: float = 0.0
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        options = {"counts": False, **self.options}
        self.monitor = Monitor(lambda line, _: self.lines.append(line), clock=lambda: self.now, **options)

    def new(self) -> list[str]:
        """Return the lines printed since the last call."""
        lines = list(self.lines)
        self.lines.clear()
        return lines

    def tick(self, seconds: float) -> list[str]:
        self.now += seconds
        self.monitor.tick()
        return self.new()


START = Progress(0, 100, 0)
RETRY = Retry("openai-api/local/m", 1, 4.0, "Error code: 429 - Rate limit reached\nfor requests")


def failed(number: int, error: str = "Error code: 401 - wrong key", total: int = 100) -> Progress:
    return Progress(number, total, number, f"q{number}", error)


def test_equal_errors_are_printed_once_and_then_counted() -> None:
    watched = Watched()
    watched.monitor.report(START)
    watched.monitor.report(Progress(1, 100, 0, "good"))
    for number in range(1, 41):
        watched.monitor.report(replace(failed(number), done=number + 1))
    watched.monitor.report(replace(failed(41, "another"), done=42))
    assert watched.new() == ["sample q1: Error code: 401 - wrong key", "sample q41: another"]

    assert watched.tick(10) == ["39 more with the same error as: sample q1: Error code: 401 - wrong key"]
    assert watched.tick(10) == []
    watched.monitor.report(replace(failed(42), done=43))
    watched.monitor.end()
    assert watched.new() == ["1 more with the same error as: sample q1: Error code: 401 - wrong key"]


def test_errors_differing_only_in_request_ids_are_equal_but_statuses_differ() -> None:
    watched = Watched()
    for number, error in enumerate(
        [
            "401 wrong key (request req_011CabcDEF)",
            "401 wrong key (request req_022CxyzGHI)",
            "429 slow (request req_03)",
        ]
    ):
        watched.monitor.report(replace(failed(number + 1, error), failed=number))
    assert len(watched.new()) == 2


def test_errors_of_several_tasks_are_distinguished() -> None:
    watched = Watched({"several": True})
    for task in ("a", "a", "b"):
        watched.monitor.report(replace(failed(1), task=task))
    assert watched.new() == [
        "a: sample q1: Error code: 401 - wrong key",
        "b: sample q1: Error code: 401 - wrong key",
    ]


def test_a_run_in_which_every_sample_fails_is_reported_early() -> None:
    watched = Watched()
    for number in range(1, 9):
        watched.monitor.report(failed(number))
    first, hint = watched.new()
    assert first == "sample q1: Error code: 401 - wrong key"
    assert hint == (
        "all 5 samples so far failed with this error. Ctrl-C stops the run and keeps finished samples; --resume continues it."
        " Use --fail-on-error N to stop such runs automatically"
    )


@pytest.mark.parametrize("error", ["another", None])
def test_run_with_mixed_outcomes_is_not_reported_as_all_failed(error: str | None) -> None:
    watched = Watched()
    watched.monitor.report(Progress(1, 100, error is not None, "q0", error))
    for number in range(2, 9):
        watched.monitor.report(replace(failed(number), failed=number - (error is None)))
    assert not any("so far failed" in line for line in watched.new())


def test_retries_are_printed_at_intervals() -> None:
    """The first retry is printed immediately. Later lines count the waiting calls."""
    watched = Watched({"counts": True})
    watched.monitor.report(START)
    watched.new()
    for number in range(20):
        watched.monitor.report(replace(START, retry=replace(RETRY, wait=30.0 + number)))
    assert watched.new() == [
        "openai-api/local/m: Error code: 429 - Rate limit reached: retrying in 30 s (attempt 2)"
    ]
    watched.now += 12
    watched.monitor.report(replace(START, retry=replace(RETRY, attempt=2, wait=60.0)))
    (line,) = watched.new()
    assert line.endswith("429 - Rate limit reached: retrying in 60 s (attempt 3); 20 other calls also wait")


def test_progress_bar_shows_waiting_calls() -> None:
    shown: list[Progress] = []
    watched = Watched({"show": shown.append})
    watched.monitor.report(START)
    assert watched.monitor.waiting() == ""
    watched.monitor.report(replace(START, retry=RETRY))
    watched.monitor.report(replace(START, retry=replace(RETRY, wait=9.0)))
    assert (
        watched.monitor.waiting()
        == "2 calls wait, next attempt in 4 s, after: Error code: 429 - Rate limit reached"
    )
    watched.now += 5
    assert (
        watched.monitor.waiting()
        == "a call waits, next attempt in 4 s, after: Error code: 429 - Rate limit reached"
    )
    watched.now += 5
    assert watched.monitor.waiting() == ""
    assert watched.new() == []
    assert shown == [START]


def test_a_stalled_run_is_reported_with_stop_and_resume_hints() -> None:
    watched = Watched()
    watched.monitor.report(START)
    assert watched.tick(59) == []
    watched.monitor.report(replace(START, retry=replace(RETRY, wait=90.0)))
    (line,) = watched.tick(1)
    assert line.startswith(
        "no sample has finished for 60 s (0/100): a call waits, next attempt in 89 s, after: Error code: 429 - Rate limit reached."
        " Ctrl-C stops the run and keeps finished samples; --resume continues it."
    )
    assert watched.tick(59) == []
    assert len(watched.tick(1)) == 1
    assert watched.tick(119) == []
    (line,) = watched.tick(1)
    assert "for 240 s (0/100): waiting for answers." in line
    watched.monitor.report(Progress(1, 100, 0, "q1"))
    assert watched.tick(59) == []
    assert len(watched.tick(1)) == 1
    watched.monitor.report(Progress(100, 100, 0, "q1"))
    assert watched.tick(1000) == []


def test_no_resume_hint_for_runs_that_cannot_be_resumed() -> None:
    watched = Watched({"resumable": False})
    watched.monitor.report(START)
    (line,) = watched.tick(60)
    assert "Ctrl-C stops the run." in line
    assert "--resume" not in line


@pytest.mark.parametrize(
    ("totals", "line"),
    [
        (ProgressTotals(), ""),
        (ProgressTotals({"is_correct": 0.5}), "is_correct 0.5"),
        (ProgressTotals({"a": 2 / 3, "b": 1.0, "c": 0.0, "d": 1.0}), "a 0.667, b 1, c 0, 1 more scores"),
        (ProgressTotals({"x\n\x1b[2J": 1.0}), "x\\n\\x1b[2J 1"),
        (ProgressTotals(tokens=0), ""),
        (ProgressTotals(tokens=9_999), "9,999 tokens"),
        (ProgressTotals(tokens=12_345), "12.3k tokens"),
        (ProgressTotals(tokens=1_234_567, cost=0.01234), "1.23M tokens, cost 0.01234"),
        (ProgressTotals(retries=1), "1 retry"),
        (ProgressTotals(retries=3), "3 retries"),
    ],
)
def test_the_state_of_a_run_in_progress_is_summarized(totals: ProgressTotals, line: str) -> None:
    assert totals_line(totals) == line


def test_counts_show_the_intermediate_scores_and_tokens() -> None:
    watched = Watched({"counts": True, "totals": True})
    watched.monitor.report(Progress(100, 100, 1, "q", totals=ProgressTotals({"is_correct": 0.25}, 20_000)))
    assert watched.new() == ["100/100 samples, 1 failed; is_correct 0.25, 20k tokens"]


def test_verbose_progress_prints_each_sample_and_retry() -> None:
    watched = Watched({"each": True})
    watched.monitor.report(START)
    watched.monitor.report(Progress(1, 100, 0, "q1"))
    watched.monitor.report(Progress(2, 100, 0, "q1", trials=True, trial=1))
    watched.monitor.report(replace(START, retry=RETRY))
    watched.monitor.report(replace(START, retry=RETRY))
    assert [line.partition(": ")[0] for line in watched.new()] == [
        "sample q1",
        "sample q1, trial 2",
        "openai-api/local/m",
        "openai-api/local/m",
    ]


@pytest.mark.parametrize("display", ["rich", "plain", "none"])
def test_progress_format_follows_the_option(display: Display, capsys: pytest.CaptureFixture[str]) -> None:
    with progress(display=display) as report:
        assert (report is None) == (display == "none")
        if report is not None:
            report(START)
            report(Progress(100, 100, 0, "q", totals=ProgressTotals({"[red]x": 0.5})))
    said = capsys.readouterr().err
    assert ("\x1b[" in said) == (display == "rich")
    assert ("100/100 samples; [red]x 0.5\n" in said) == (display == "plain")
    assert ("[red]x 0.5" in said) == (display != "none")


def test_quiet_runs_show_no_progress() -> None:
    set_verbosity(quiet=True)
    try:
        with progress() as report:
            assert report is None
        with progress(display="plain") as report:
            assert report is not None
    finally:
        set_verbosity(quiet=False)


def test_long_running_call_is_reported_at_doubling_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(WaitingCall, "seconds", property(lambda _: now[0]))
    watched = Watched()
    watched.monitor.report(START)
    with waiting("openai-api/local/m", "q\x1b3"):
        now[0] += 24
        assert watched.tick(1) == []
        now[0] += 1
        (line,) = watched.tick(1)
        assert line == (
            "waiting 25 s for an answer of openai-api/local/m, sample q\\x1b3;"
            " limit each model call with --attempt-timeout SECONDS"
        )
        now[0] += 24
        assert watched.tick(1) == []
        with waiting("m"):
            now[0] += 1
            (line,) = watched.tick(1)
            assert "(and 1 more)" in line


def test_run_with_several_tasks_has_a_row_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    tasks = {"one": 2, "two": 1}
    with progress(display="rich", several=True) as report:
        assert report is not None
        report(Progress(0, 3, 0, tasks=tasks))
        report(Progress(1, 3, 0, 1, task="one", tasks=tasks))
        report(Progress(2, 3, 1, 2, "it broke", "one", tasks=tasks))

    screen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    rows = [line for line in screen.splitlines() if line.strip().startswith(("one ", "two "))]
    assert "2/2 1 failed" in " ".join(rows[-2].split())
    assert "0/1" in rows[-1]
