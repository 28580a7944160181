"""One-line summary of an error: its first informative line."""

from __future__ import annotations

import traceback

import pytest
from pydantic import BaseModel, Field, ValidationError, model_validator

from aigo_bridge.cli.terminal import one_line
from aigo_bridge.text.summaries import named_summary_of, summary, summary_of

HOT = "Settings: temperature: Input should be a valid number, unable to parse string as a number, found 'hot'"


class Settings(BaseModel):
    """Settings similar to Inspect's `GenerateConfig`."""

    temperature: float = 0.0
    seed: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _check(self) -> Settings:
        if self.seed == 7:
            raise ValueError("7 is taken")
        return self


def invalid(**values: object) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate(values)
    return caught.value


@pytest.mark.parametrize(
    ("values", "line"),
    [
        (
            {"temperature": "hot"},
            HOT,
        ),
        (
            {"temperature": "hot", "seed": -1},
            f"{HOT} (and 1 more)",
        ),
        ({"seed": 7}, "Settings: Value error, 7 is taken, found {'seed': 7}"),
    ],
)
def test_field_and_problem_of_an_invalid_value_are_shown(values: dict[str, object], line: str) -> None:
    error = invalid(**values)
    assert summary_of(error) == line
    assert named_summary_of(error) == f"ValidationError: {line}"
    assert (
        summary(f"task 't' failed: ValidationError: {error}") == f"task 't' failed: ValidationError: {line}"
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\n\n  the disk is full\nmore", "the disk is full"),
        ("-----\n=====\nthe disk is full", "the disk is full"),
        ("ERROR:\n\nthe disk is full", "the disk is full"),
        ("An error\nthe disk is full", "the disk is full"),
        ("cannot start:\n\n  the disk is full\n  else", "cannot start: the disk is full"),
        ("one line", "one line"),
        ("Error", "Error"),
        ("---", "---"),
        ("", ""),
        ("1 validation error for X", "1 validation error for X"),
    ],
)
def test_uninformative_lines_are_skipped(text: str, line: str) -> None:
    assert summary(text) == line
    assert one_line(text) == line


def test_exception_at_the_end_of_a_traceback_is_shown() -> None:
    raised = ValueError("the disk is full\nsecond line")
    frames = 'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\n    x()\n'
    text = frames + "".join(traceback.format_exception_only(raised))
    assert summary(text) == "ValueError: the disk is full"
    assert summary(f"the worker ended: {text}") == "the worker ended: ValueError: the disk is full"
    assert summary(text.rpartition("ValueError")[0]).startswith("Traceback")


def test_cause_of_an_uninformative_error_is_shown() -> None:
    group = ExceptionGroup("unhandled errors in a TaskGroup", [KeyError("a"), OSError("b")])
    assert summary_of(group) == "KeyError: 'a' (and 1 more)"
    error = RuntimeError("RetryError[<Future at 0x7f00 state=finished raised ValueError>]")
    error.__cause__ = ValueError("the server is gone")
    assert named_summary_of(error) == "RuntimeError: ValueError: the server is gone"
    assert named_summary_of(AssertionError()) == "AssertionError"
