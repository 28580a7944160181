"""Issues in text, JSON and GitHub format, also for many files."""

from __future__ import annotations

import io
import json
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bridge.reading.reading_examples import DATASET, RUN_FILES, SINGLE_TURN, write

from aigo_bridge.cli.error_handling import LONGEST_LINE, render_issues, wrapped
from aigo_bridge.cli.terminal import colour_of, width_of
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue
from aigo_bridge.reading import validate_paths

ISSUE = Issue(
    "unknown key 'typ'",
    "t.yaml",
    3,
    5,
    ("a", 0),
    "did you mean 'type'?",
    "error",
    "  - typ: x",
    code=Code.UNKNOWN_KEY,
)


def test_text_format_shows_position_line_caret_and_hint() -> None:
    assert render_issues([ISSUE]) == (
        "t.yaml:3:5: error: unknown key 'typ' [AB116]\n3 |   - typ: x\n  |     ^\n  hint: did you mean 'type'?\n1 error\n"
    )


def test_issues_are_colored_only_on_request() -> None:
    assert "\x1b" not in render_issues([ISSUE])
    coloured = render_issues([ISSUE], colour=True)
    assert "\x1b[1;31merror\x1b[0m" in coloured


def test_an_issue_without_a_line_shows_its_path() -> None:
    assert (
        render_issues([Issue("is odd", "log.json", path=("a", 0))])
        == "log.json: a[0]: error: is odd\n1 error\n"
    )
    assert render_issues([Issue("is odd", path=("a", 0, "b"))]) == "a[0].b: error: is odd\n1 error\n"
    assert render_issues([Issue("is odd", severity="warning")]) == "warning: is odd\n1 warning\n"


def test_rendering_no_issues_gives_empty_output() -> None:
    assert render_issues([]) == ""
    assert render_issues([], "github") == ""
    assert json.loads(render_issues([], "json")) == []


def test_json_format_has_every_key() -> None:
    assert json.loads(render_issues([ISSUE], "json")) == [
        {
            "severity": "error",
            "code": "AB116",
            "message": "unknown key 'typ'",
            "file": "t.yaml",
            "line": 3,
            "column": 5,
            "path": ["a", 0],
            "hint": "did you mean 'type'?",
            "source_line": "  - typ: x",
        }
    ]


def test_github_format_escapes_characters_that_end_the_command() -> None:
    issue = Issue("a%b: c,\nd", "x,y:z.yaml", 1, 2, severity="warning")
    assert render_issues([issue], "github") == "::warning file=x%2Cy%3Az.yaml,line=1,col=2::a%25b: c,\\nd\n"


@pytest.mark.parametrize("at", [1, 80, 400, 500])
def test_long_source_line_is_shortened_around_the_error(at: int) -> None:
    line = "é" * (at - 1) + "X" + "b" * (500 - at)
    text = render_issues([Issue("m", "f", 12, at, source_line=line)])
    shown, caret = text.split("\n")[1:3]
    assert len(shown) <= LONGEST_LINE + 8
    assert shown[caret.index("^")] == "X"


def test_caret_is_aligned_below_wide_characters() -> None:
    shown, caret = render_issues([Issue("m", "f", 1, 3, source_line="日本X")]).split("\n")[1:3]
    assert (shown, caret) == ("1 | 日本X", "  |     ^")


@given(st.text(), st.text(), st.integers(1, 300))
def test_control_characters_in_issues_are_escaped(message: str, line: str, column: int) -> None:
    issue = Issue(message, file=message, line=1, column=column, hint=line, source_line=line)
    for form in (render_issues([issue]), render_issues([issue], "github")):
        kinds = {unicodedata.category(letter) for letter in form if letter != "\n"}
        assert not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_all_files_of_a_folder_are_validated_in_order(tmp_path: Path) -> None:
    files = {
        **{f"good/{name}": text for name, text in RUN_FILES.items()},
        "bad/task.yml": SINGLE_TURN.replace("purpose: qa", "purpose: q"),
        "bad/broken.yaml": "a: [",
        "part/scorer.yaml": "type: bleu\nground_truth: x\n",
        ".hidden/x.yaml": "a: [",
        "readme.md": "a: [",
    }
    reports = list(validate_paths([write(tmp_path, files)], env={}))
    found = {report.file.relative_to(tmp_path).as_posix(): report for report in reports}
    assert [*found] == [
        "bad/broken.yaml",
        "bad/task.yml",
        *(f"good/{name}" for name in sorted(RUN_FILES)),
        "part/scorer.yaml",
    ]
    assert (found["good/run.yaml"].kind, found["good/dataset.yaml"].kind) == ("run", "dataset")
    assert found["part/scorer.yaml"].skipped
    assert not found["bad/task.yml"].is_valid()
    assert not found["bad/broken.yaml"].is_valid()
    assert found["good/task.yaml"].is_valid(strict=True)


def test_root_of_a_file_is_the_same_when_its_folder_is_validated(tmp_path: Path) -> None:
    """A file that `validate` accepts must also run, and a run of the file does not depend on the validated folder."""
    write(
        tmp_path,
        {
            "tasks/t.yaml": "key: a\ndisplay_name: A\ndescription: !include ../d.md\ndefinition: {scorers: []}\n",
            "d.md": "d",
        },
    )
    (in_folder,) = validate_paths([tmp_path], env={})
    (alone,) = validate_paths([tmp_path / "tasks/t.yaml"], env={})
    (wider,) = validate_paths([tmp_path / "tasks/t.yaml"], root=tmp_path, env={})
    write(tmp_path, {"pyproject.toml": ""})
    (of_project,) = validate_paths([tmp_path], env={})

    assert not in_folder.is_valid()
    assert not alone.is_valid()
    assert wider.is_valid()
    assert of_project.is_valid()


def test_unknown_file_is_invalid_and_a_warning_is_invalid_if_strict(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "x.yaml": "a: 1\n",
            "d.yaml": DATASET.replace(
                "source:\n  type: local\n  file_path: ./capitals.csv\n", "file_path: x.csv\nsource_: 1\n"
            ).split("source_")[0],
        },
    )
    unknown, old = validate_paths([tmp_path / "x.yaml", tmp_path / "d.yaml"], env={})
    assert not unknown.is_valid()
    assert not unknown.skipped
    assert old.is_valid()
    assert not old.is_valid(strict=True)


@pytest.mark.parametrize("colour", [False, True])
def test_terminal_output_wraps_messages_and_hints_but_not_source(colour: bool) -> None:
    issue = Issue("a " * 60 + "b", "t.yaml", 1, 2, hint="c " * 60 + "d", source_line="x" * 150)

    lines = [
        re.sub(r"\x1b\[[0-9;]*m", "", line)
        for line in render_issues([issue], colour=colour, width=50).split("\n")
    ]

    source = lines.index(f"1 | {'x' * 150}")
    assert lines[0].startswith("t.yaml:1:2: error: a a")
    assert all(len(line) <= 50 for number, line in enumerate(lines) if number != source)
    assert all(line.startswith("  a") for line in lines[1:source])
    assert " ".join(" ".join(lines).split()).startswith("t.yaml:1:2: error: " + "a " * 60 + "b 1 | ")


def test_wrapping_keeps_words_whole_and_counts_wide_characters_twice() -> None:
    assert wrapped("a " + "/" * 90, 50) == "a\n  " + "/" * 90
    assert wrapped("語" * 19 + " " + "語" * 19, 50) == "語" * 19 + "\n  " + "語" * 19
    assert wrapped("語" * 19 + " b", 50) == "語" * 19 + " b"
    assert wrapped("a  b", 50) == "a  b"


@given(st.text(alphabet=" ab語\u0301", max_size=200), st.integers(1, 120))
def test_wrapping_keeps_all_text(text: str, width: int) -> None:
    assert wrapped(text, width).replace("\n  ", " ") == text


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colors_and_width_follow_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "77")
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    assert (colour_of(_Terminal()), width_of(_Terminal())) == (True, 77)
    assert (colour_of(io.StringIO()), width_of(io.StringIO())) == (False, None)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colour_of(_Terminal())
    monkeypatch.setenv("NO_COLOR", "")
    assert colour_of(_Terminal())
    monkeypatch.setenv("TERM", "dumb")
    assert not colour_of(_Terminal())
