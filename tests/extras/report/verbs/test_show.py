"""`aigo-bridge show`: sample selection and readable output, and the suggested commands after a run."""

from __future__ import annotations

import json
import sys
import unicodedata
from pathlib import Path

import pytest
from tests.support.commands import Run
from tests.support.hostile_texts import HOSTILE
from tests.support.results import (
    PIXEL,
    Json,
    message,
    metric,
    question,
    result,
    sample,
    score,
    trial,
    write_result,
)

from aigo_bridge.cli.outcomes import show_next
from aigo_bridge.engine.outcome import Outcome
from aigo_bridge.results.counts import Counts

ERROR = {"error_type": "TimeoutError", "message": "no answer", "hint": "wait longer", "stage": "solver"}


def ids(text: str) -> list[str]:
    return [line.split()[1] for line in text.splitlines() if line.startswith("sample ")]


@pytest.fixture
def quiz(tmp_path: Path) -> Path:
    """Return a result of five questions. 1 and 3 are answered wrong, and 4 failed."""
    samples = [question(number, ["a", "b"][number % 2], "a") for number in range(4)]
    failed = sample(trial(4, None, errors=[ERROR], data={"question": "Question 4?"}))
    log = result([*samples, failed], [metric({"accuracy": 0.5})])
    return write_result(tmp_path / "quiz.tasklog.json", log)


def test_show_prints_conversations_scores_and_errors(aigo: Run, quiz: Path) -> None:
    done = aigo("show", quiz)

    assert (done.code, done.err) == (0, "")
    assert ["accuracy", "0.5", "exact"] in [
        [line.split()[place] for place in (0, 1, -1)]
        for line in done.out.splitlines()
        if line.startswith("accuracy")
    ]
    assert ids(done.out) == ["0", "1", "2", "3", "4"]
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "user Question 1?" in lines
    assert "assistant b" in lines
    assert "score exact: is_correct = 0.0" in lines
    assert "answer_gt a" in lines
    assert any(line.startswith("error solver: TimeoutError: no answer") for line in lines)
    assert "hint: wait longer" in lines


def test_sample_option_selects_one_sample_by_id(aigo: Run, quiz: Path) -> None:
    assert ids(aigo("show", quiz, "--sample", 3).out) == ["3"]

    done = aigo("show", quiz, "--sample", "none")

    assert done.code == 2
    assert "no sample 'none', expected one of '0', '1', '2', '3', '4'" in done.err


def test_failed_and_worst_options_select_samples(aigo: Run, quiz: Path) -> None:
    assert ids(aigo("show", quiz, "--failed").out) == ["4"]
    assert ids(aigo("show", quiz, "--worst", 3).out) == ["1", "3", "0"]
    assert ids(aigo("show", quiz, "--worst", 1, "--score", "exact.is_correct").out) == ["1"]

    done = aigo("show", quiz, "--worst", 1, "--score", "exact")

    assert done.code == 2
    assert "no sample has a number of the score 'exact'; expected one of 'exact.is_correct'" in done.err


def test_where_option_selects_matching_samples(aigo: Run, quiz: Path) -> None:
    done = aigo("show", quiz, "--where", 'score < 0.5 and topic == "cities"')
    assert (done.code, ids(done.out)) == (0, ["1", "3"])
    assert ids(aigo("show", quiz, "--where", "error contains 'no answer'").out) == ["4"]

    unknown = aigo("show", quiz, "--where", "topci == 'cities'")
    assert unknown.code == 2
    assert "no trial has a value for 'topci', expected a column of the dataset" in unknown.err


def test_worst_samples_are_ordered_by_the_mean_over_trials(aigo: Run, tmp_path: Path) -> None:
    def trials(sample_id: int, *values: object) -> Json:
        return sample(
            *(
                trial(sample_id, [], scores=[score("s", {"label": "x", "n": value})], index=index)
                for index, value in enumerate(values)
            )
        )

    samples = [trials(0, 3, 1), trials(1, None, None), trials(2, True, None), trials(3, 1, 2)]
    path = write_result(tmp_path / "t.tasklog.json", result(samples))

    assert ids(aigo("show", path, "--worst", 9).out) == ["2", "3", "0"]


def test_omitted_samples_are_reported(aigo: Run, quiz: Path) -> None:
    done = aigo("show", quiz, "-n", 2)

    assert ids(done.out) == ["0", "1"]
    assert "more samples follow; show more with -n N (now 2), or all with -n 0" in done.err
    assert "more samples" not in aigo("show", quiz, "-n", 5).err
    assert len(ids(aigo("show", quiz, "-n", 0).out)) == 5


def test_show_prints_tool_calls_images_and_truncated_texts(aigo: Run, tmp_path: Path) -> None:
    items = [
        message("user", "x" * 3_000, {"type": "input_image", "image_url": PIXEL}),
        {"type": "reasoning", "id": "", "content": [{"type": "reasoning_text", "text": "hm"}], "summary": []},
        {"type": "function_call", "id": "", "call_id": "c", "name": "add", "arguments": '{"a": 1}', "status": "completed"},
        {"type": "function_call_output", "id": "", "call_id": "c", "output": "2", "status": "completed"},
    ]  # fmt: skip
    path = tmp_path / "a.tasklog.json"
    path.write_text(json.dumps(result([sample(trial(0, items))])))

    done, full = aigo("show", path), aigo("show", path, "--full")

    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "reasoning hm" in lines
    assert 'calls add({"a": 1})' in lines
    assert "result 2" in lines
    assert f"⟨input_image, {len(PIXEL)} characters⟩" in full.out
    assert "more characters: --full)" in " ".join(done.out.split())
    assert full.out.count("x") >= 3_000 > done.out.count("x")


def test_damaged_result_is_partially_displayed(aigo: Run, tmp_path: Path) -> None:
    log = json.dumps(result([question(number, "a", "a") for number in range(3)]), sort_keys=True)
    (tmp_path / "cut.tasklog.json").write_text(log[: log.index('"sample_id": 2')])

    done = aigo("show", "cut.tasklog.json")

    assert (done.code, ids(done.out)) == (3, ["0", "1"])
    assert "cut off" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.tasklog.json"], "result log 'none.tasklog.json' does not exist"),
        (["quiz.tasklog.json", "--sample", "1", "--failed"], "expected one of them"),
        (["quiz.tasklog.json", "--score", "x"], "only with --worst N"),
        (["notes.json"], "notes.json: error: found a list, expected a result log"),
    ],
)
def test_invalid_show_arguments_exit_with_2(
    aigo: Run, quiz: Path, arguments: list[str], message: str
) -> None:
    (quiz.parent / "notes.json").write_text("[]")

    done = aigo("show", *arguments)

    assert done.code == 2
    assert message in done.err


def test_show_escapes_control_characters(aigo: Run, tmp_path: Path) -> None:
    """Check every untrusted field of a sample."""
    samples = [
        sample(
            trial(
                f"{number}{text}",
                [message("user", text), message("assistant", text)],
                scores=[score(f"key{text}", {text: 0.0, "label": text}, why=text, **{f"x{text}": 1})],
                data={f"column{text}": text},
                errors=[{**ERROR, "error_type": text, "message": text, "hint": text}],
            ),
            excluded="rule",
        )
        for number, text in enumerate(HOSTILE)
    ]
    path = tmp_path / "h.tasklog.json"
    path.write_text(json.dumps(result(samples, [metric({HOSTILE[0]: 1.0})], title=HOSTILE[-12])))

    done = aigo("show", path, "-n", 0)

    assert done.code == 0, done.err
    assert done.out.count("\nsample ") == len(HOSTILE)
    unseen = {char for char in done.out if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}
    assert unseen == {"\n"}


@pytest.mark.parametrize("num_failed", [0, 2])
def test_run_on_a_terminal_prints_suggested_next_commands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, num_failed: int
) -> None:
    place = Path("my out/quiz.tasklog.json")
    outcome = Outcome(
        task="quiz",
        status="success",
        result=place,
        counts=Counts(failed=num_failed, failed_trials=num_failed),
    )

    show_next(outcome)
    piped = capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show_next(outcome)

    failed = " --failed" if num_failed else ""
    assert piped == ""
    assert capsys.readouterr().out.splitlines()[1:] == [
        "look at it",
        f"  aigo-bridge show 'my out/quiz.tasklog.json'{failed}",
        "  aigo-bridge report 'my out/quiz.tasklog.json'",
    ]
