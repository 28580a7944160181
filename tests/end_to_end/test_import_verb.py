"""`aigo-bridge import`: foreign logs are converted to evidence, and own logs give the evidence of their run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from tests.support.commands import REPOSITORY, Run

Load = Callable[[Path], dict[str, Any]]


def answer(*_: Any) -> ModelOutput:
    output = ModelOutput.from_content("m", "4")
    output.usage = ModelUsage(input_tokens=5, output_tokens=1, total_tokens=6)
    return output


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """Log of a foreign Inspect task."""
    task = Task(dataset=[Sample(input="2+2", target="4"), Sample(input="2+3", target="5")], scorer=match())
    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    (log,) = inspect_eval(task, model=model, log_dir=str(tmp_path / "logs"), display="none")
    return Path(log.location)


def test_foreign_log_is_imported_as_evidence(
    aigo: Run, foreign: Path, tmp_path: Path, result_of: Load
) -> None:
    done = aigo("import", "logs", "--out", "evidence")

    assert done.code == 0, done.err
    assert "2 samples" in done.out
    (path,) = (tmp_path / "evidence").glob("*.tasklog.json")
    result = result_of(path)
    assert [s["trials"][0]["scores"][0]["values"] for s in result["evidence"]["samples"]] == [
        {"match": "C"},
        {"match": "I"},
    ]
    assert len(list((tmp_path / "evidence").glob("*.loss.json"))) == 1


def test_own_log_is_imported_as_the_evidence_of_its_run(aigo: Run, tmp_path: Path) -> None:
    examples = REPOSITORY / "examples" / "capitals"
    aigo("run", examples, "--model", f"scripted/{examples / 'answers.jsonl'}", "--out", "run")

    done = aigo("import", "run", "--out", "again", "--json")

    assert done.code == 0, done.err
    (again,) = (tmp_path / "again").glob("*.tasklog.json")
    assert again.read_bytes() == (tmp_path / "run" / "capitals.tasklog.json").read_bytes()
    assert done.json[0]["samples"] == 4


def test_own_log_is_written_to_the_named_file(aigo: Run, tmp_path: Path) -> None:
    example = REPOSITORY / "examples" / "capitals"
    aigo("run", example, "--model", f"scripted/{example / 'answers.jsonl'}", "--out", "run")
    assert aigo("import", "run", "--out", "again.tasklog.json").code == 0
    assert (tmp_path / "again.tasklog.json").read_bytes() == (
        tmp_path / "run/capitals.tasklog.json"
    ).read_bytes()


def test_damaged_log_is_salvaged(aigo: Run, foreign: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.eval").write_bytes(foreign.read_bytes()[: foreign.stat().st_size // 2])

    done = aigo("import", "cut.eval")

    assert done.code == 3
    assert "unreadable" in done.out
    assert "Traceback" not in done.out + done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "no logs at 'nothing'"),
        (["logs", "--context", "some"], "expected one of full, delta, none"),
        (["logs", "--format", "xml"], "expected one of json"),
        ([], "Missing argument"),
    ],
)
def test_wrong_use_of_import_is_reported(aigo: Run, arguments: list[str], message: str) -> None:
    done = aigo("import", *arguments)

    assert done.code == 2
    assert message in done.err


def test_max_loss_0_fails_on_any_loss(aigo: Run, foreign: Path) -> None:
    """By default, state patches are left out; `--max-loss 0` makes this an error, and `--events all` keeps them."""
    assert aigo("import", foreign, "--max-loss", "0").code == 1
    assert aigo("import", foreign, "--max-loss", "1000").code == 0


def test_size_limits_are_set_by_name(aigo: Run, tasks: Path, tmp_path: Path) -> None:
    log = Path(__file__).parents[1] / "golden" / "inspect" / "0.3.150.eval"

    small = aigo("import", log, "-o", "a", "--bound", "member_bytes=10")
    assert small.code == 3
    assert "member_bytes" in small.out
    assert aigo("import", log, "-o", "b", "--bound", "member_bytes=1e9").code == 0

    unknown = aigo("import", log, "--bound", "size=1")
    assert (unknown.code, "found bound 'size', expected one of" in unknown.err) == (2, True)
    word = aigo("import", log, "--bound", "member_bytes=big")
    assert (word.code, "expected NAME=NUMBER" in word.err) == (2, True)


def test_secrets_in_own_logs_are_redacted(
    aigo: Run, tmp_path: Path, result_of: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Secrets in model replies and rows; options that do not apply are reported."""
    known = "sk-" + "a1" * 12
    (tmp_path / "d.jsonl").write_text(f'{{"q": "which key? no-format-that-anybody-knows", "a": "{known}"}}\n')
    (tmp_path / "m.jsonl").write_text(f'{{"default": true, "reply": "{known}"}}\n')
    (tmp_path / "t.yaml").write_text("""key: t
display_name: T
description: ''
definition:
  dataset: {key: d}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - {type: string_equals, ground_truth: "{{ sample.a }}"}
""")
    assert aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "--out", "run").code == 0
    # The run did not have this key; known secrets of a run are not in its log.
    monkeypatch.setenv("SOME_API_KEY", "no-format-that-anybody-knows")

    done = aigo("import", "run", "--out", "clean", "--context", "none", "--events", "minimal")

    assert done.code == 0, done.err
    assert "--context is not used" in done.out
    assert "--events is not used" in done.out
    assert "x value of SOME_API_KEY" in done.out
    assert "x openai or anthropic key" in done.out
    (path,) = (tmp_path / "clean").glob("*.tasklog.json")
    text = path.read_text()
    assert known not in text
    assert "no-format-that-anybody-knows" not in text
    assert result_of(path)["evidence"]["metrics"][0]["values"] == {"accuracy": 1.0}
    assert aigo("import", "run", "--out", "whole", "--no-redact").code == 0
    (path,) = (tmp_path / "whole").glob("*.tasklog.json")
    assert path.read_bytes() == (tmp_path / "run" / "t.tasklog.json").read_bytes()


def test_missing_and_truncated_files_of_a_folder_are_listed(aigo: Run, foreign: Path, tmp_path: Path) -> None:
    """A broken link and a truncated log are listed next to the valid logs."""
    (foreign.parent / "2026-01-01T00-00-00_gone.eval").symlink_to(tmp_path / "nowhere.eval")
    (foreign.parent / "2026-01-01T00-00-01_cut.json").write_text('{"version": 2, "eval": {"task": ')

    for location in ("logs", "logs/*"):
        done = aigo("import", location, "--out", f"evidence-{len(location)}")

        assert done.code == 3
        assert "2 samples" in done.out
        assert "no such log: 'logs/2026-01-01T00-00-00_gone.eval'" in done.out
        assert "logs/2026-01-01T00-00-01_cut.json: unreadable" in done.out
