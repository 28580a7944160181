"""Errors in task code name its file and line: in the run, in the evidence, and when the log is read again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from tests.support.commands import Run

from aigo_bridge.evaluation.task import plan
from aigo_bridge.plan.plan import PlanOrigin

Load = Callable[[Path], dict[str, Any]]

GOOD = {
    "run_solver": """\
async def run_solver(sample, model, trace):
    answer = await model.predict("hello")
    return {"trace": {"items": []}, "raw_outputs": []}
""",
    "postprocess": """\
def postprocess(sample, solver_output):
    return [(sample, solver_output)]
""",
    "compute_scores": """\
def compute_scores(sample, solver_output=None):
    return {"x": 1}
""",
    "compute_all": """\
def compute_scores(samples):
    return [{"x": 1} for sample in samples]
""",
    "compute_metrics": """\
def compute_metrics(scores):
    return {"total": len(scores)}
""",
    "compute_evidence": """\
def compute_evidence():
    return {"metrics": {"a": {"value": 1}}}
""",
}
FIELDS = {kind: f"{kind}_snippet" for kind in GOOD} | {"compute_all": "compute_scores_snippet"}

HEAD = "# Ünïcode above\nkey: t\ndisplay_name: T\ndescription: ''\ndefinition:\n"
MODEL_TASK = """\
  dataset: {key: d}
  solver:
    type: python
    run_solver_snippet: @run_solver@
    postprocessor:
      type: python
      postprocess_snippet: @postprocess@
  scorers:
    - {type: string_equals, value: a, ground_truth: a}
    - type: python
      key: own
      metrics:
        - {type: mean, field: x}
        - type: python
          compute_metrics_snippet: @compute_metrics@
      compute_scores_snippet: @compute_scores@
"""
DATA_TASK = """\
  dataset: {key: d}
  scorers:
    - type: python_all_samples
      metrics: []
      compute_scores_snippet: @compute_all@
"""
SYSTEM_TASK = """\
  type: system_task
  compute_evidence_snippet: @compute_evidence@
"""
TASK_OF = dict.fromkeys(GOOD, MODEL_TASK) | {"compute_all": DATA_TASK, "compute_evidence": SYSTEM_TASK}


def failing(kind: str) -> str:
    """Return code that divides by zero in its third line."""
    signature, rest = GOOD[kind].split("\n", 1)
    return f"# fails\n{signature}\n    1 / 0\n{rest}"


def block(code: str) -> str:
    return "|\n" + indent(code, " " * 14).rstrip()


def write(folder: Path, kind: str, bad: str) -> Path:
    """Write a task whose snippets are blocks, except the snippet `kind`, which is `bad`."""
    text = TASK_OF[kind].replace(f"@{kind}@", bad)
    for other, code in GOOD.items():
        text = text.replace(f"@{other}@", block(code))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "t.yaml").write_text(HEAD + text)
    (folder / "d.jsonl").write_text('{"a": 1}\n')
    (folder / "m.jsonl").write_text('{"default": true, "reply": "yes"}\n')
    return folder / "t.yaml"


def line_of(file: Path, text: str = "1 / 0") -> int:
    (line,) = [number for number, line in enumerate(file.read_text().splitlines(), 1) if text in line]
    return line


def run(aigo: Run, kind: str, *more: str, code: int = 1) -> None:
    model = ("--model", "scripted/m.jsonl") if TASK_OF[kind] is MODEL_TASK else ()
    done = aigo("run", "t.yaml", *model, "--out", "out", *more)
    assert done.code == code, done.out + done.err


def messages(result: dict[str, Any]) -> set[str]:
    """Return the error messages of the result and its samples."""
    evidence = result["evidence"]
    trials = [trial for sample in evidence.get("samples") or [] for trial in sample["trials"]]
    found = [*(evidence.get("errors") or []), *(error for trial in trials for error in trial["errors"])]
    return {error["message"] for error in found}


@pytest.mark.parametrize("kind", GOOD)
def test_error_in_a_block_has_its_line_in_the_task_file(
    aigo: Run, tmp_path: Path, result_of: Load, kind: str
) -> None:
    """So does the imported log, when the task file no longer exists."""
    file = write(tmp_path, kind, block(failing(kind)))
    line = line_of(file)

    run(aigo, kind)

    first = messages(result_of(tmp_path / "out" / "t.tasklog.json"))
    (message,) = [message for message in first if "Error:" in message]
    function = "compute_scores" if kind == "compute_all" else kind
    place = f"(t.yaml, line {line}, in {function}: `1 / 0`)"
    assert f"{FIELDS[kind]}: ZeroDivisionError: division by zero {place}" in message
    file.unlink()
    done = aigo("import", "out", "--out", "again", "--json")
    assert done.code == 0, done.err
    (again,) = (tmp_path / "again").glob("*.tasklog.json")
    assert messages(result_of(again)) == first


@pytest.mark.parametrize("kind", ["run_solver", "compute_metrics"])
def test_other_failures_name_the_position(aigo: Run, tmp_path: Path, result_of: Load, kind: str) -> None:
    """A result of the wrong type is found after the code has run; the message names its first line."""
    signature = GOOD[kind].split("\n", 1)[0]
    file = write(tmp_path, kind, block(f"{signature}\n    return 'nothing'\n"))

    run(aigo, kind)

    begins = line_of(file, "return 'nothing'") - 1
    (message,) = [
        text for text in messages(result_of(tmp_path / "out" / "t.tasklog.json")) if "_snippet" in text
    ]
    assert f"{FIELDS[kind]} (t.yaml, line {begins}): " in message
    assert "returned" in message


@pytest.mark.parametrize("kind", ["run_solver", "compute_metrics"])
def test_error_in_an_included_file_has_its_line(
    aigo: Run, tmp_path: Path, result_of: Load, kind: str
) -> None:
    """The path is relative to the task folder, and leading blank lines count."""
    file = tmp_path / "code" / "own.py"
    file.parent.mkdir()
    file.write_text("\n\n" + failing(kind))
    write(tmp_path, kind, "!include code/own.py")

    run(aigo, kind)

    text = (tmp_path / "out" / "t.tasklog.json").read_text()
    assert f"(code/own.py, line {line_of(file)}, in " in text
    assert str(tmp_path) not in "".join(messages(result_of(tmp_path / "out" / "t.tasklog.json")))


STYLES = [
    ("|2\n\n\n        def compute_scores(sample):\n          return 1 / 0", "t.yaml, line {}, in compute_scores"),
    ("'def compute_scores(sample): return 1 / 0'", "t.yaml, line {}, in compute_scores"),
    ("&code def compute_scores(sample):return 1 / 0", "t.yaml, line {}, in compute_scores"),
    (">-\n          def compute_scores(sample):\n            return 1 / 0", "t.yaml, line {}, in compute_scores"),
    (">-\n          x = 1\n\n          def compute_scores(sample): return 1 / 0", "(line 2, in compute_scores"),
    (r'"def compute_scores(sample):\n  return 1 / 0"', "(line 2, in compute_scores"),
]  # fmt: skip
"""Scalars of YAML, and the place of their division by zero."""


def test_error_position_is_right_for_all_yaml_styles(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    """If code lines do not match file lines, the message has the line in the code."""
    scorers = [
        f"    - type: python\n      key: s{number}\n      metrics: []\n"
        f"      compute_scores_snippet: {scalar.replace('1 / 0', f'{number} / 0')}\n"
        for number, (scalar, _) in enumerate(STYLES)
    ]
    file = tmp_path / "t.yaml"
    file.write_text(HEAD + "  dataset: {key: d}\n  scorers:\n" + "".join(scorers))
    (tmp_path / "d.jsonl").write_text('{"a": 1}\n')

    run(aigo, "compute_all")

    found = sorted(messages(result_of(tmp_path / "out" / "t.tasklog.json")))
    assert len(found) == len(STYLES)
    for number, (message, (_, place)) in enumerate(zip(found, STYLES, strict=True)):
        assert message.startswith(f"scorer 's{number}': ")
        assert place.format(line_of(file, f"{number} / 0")) in message


def test_multiline_config_does_not_shift_line_numbers(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    code = 'TEXT = """<< config.text >>"""\ndef compute_scores(samples):\n    1 / 0\n'
    file = write(tmp_path, "compute_all", block(code))
    parameter = "config_spec: [{type: string, key: text, display_name: T, default_value: one}]\n"
    file.write_text(file.read_text().replace("definition:\n", f"{parameter}definition:\n"))

    run(aigo, "compute_all")
    run(aigo, "compute_all", "--config", "text=one\ntwo", "--out", "other")

    assert f"(t.yaml, line {line_of(file)}, in " in (tmp_path / "out" / "t.tasklog.json").read_text()
    (message,) = messages(result_of(tmp_path / "other" / "t.tasklog.json"))
    assert "(line 4, in compute_scores" in message


def test_equal_snippets_are_distinguished_by_position(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    """Two scorers in one file have equal code at different lines."""
    scorer = "    - {{type: python, key: {0}, metrics: [], compute_scores_snippet: 'def compute_scores(sample): return {1} / 0'}}\n"
    lines = "".join(scorer.format(key, number) for key, number in (("a", 1), ("b", 1), ("c", 2)))
    file = tmp_path / "t.yaml"
    file.write_text(HEAD + "  dataset: {key: d}\n  scorers:\n" + lines)
    (tmp_path / "d.jsonl").write_text('{"a": 1}\n{"a": 2}\n')

    run(aigo, "compute_all")

    first = line_of(file, "key: a")
    assert messages(result_of(tmp_path / "out" / "t.tasklog.json")) == {
        f"scorer {key!r}: compute_scores_snippet: ZeroDivisionError: division by zero (t.yaml, line {line}, in"
        f" compute_scores: `def compute_scores(sample): return {number} / 0`)"
        for key, line, number in (("a", first, 1), ("b", first + 1, 1), ("c", first + 2, 2))
    }


def test_files_outside_the_task_folder_are_named(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "own.py").write_text(failing("compute_all"))
    write(tmp_path / "tasks", "compute_all", "!include ../shared/own.py")

    done = aigo("run", "tasks/t.yaml", "--root", ".", "--out", "out")

    assert done.code == 1, done.err
    assert "(own.py, line 3, in " in (tmp_path / "out" / "t.tasklog.json").read_text()


def test_generator_errors_have_their_position(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "d.yaml").write_text(
        "key: d\ndisplay_name: D\ndescription: ''\n"
        "generator_specification: {dataset_generator_key: g, num_samples: 1, dataset_generator_config: {}}\n"
    )
    (tmp_path / "g.yaml").write_text(
        "key: g\ndisplay_name: G\ndescription: ''\ndefinition:\n"
        "  dataset: {type: inline_samples, samples: [{q: 1}]}\n"
        "  synthesizers:\n    - type: python\n      synthesize_snippet: |\n"
        "        def synthesize(source):\n            return 1 / 0\n"
    )

    done = aigo("generate", "d.yaml", "--out", "rows.jsonl")

    assert done.code != 0
    assert f"(g.yaml, line {line_of(tmp_path / 'g.yaml')}, in synthesize" in " ".join(done.err.split())


def test_plan_keeps_snippet_positions_outside_its_digest(tmp_path: Path) -> None:
    """A comment above changes positions but not digests; older headers without positions are read."""
    file = write(tmp_path, "compute_scores", block(GOOD["compute_scores"]))
    made = plan(PlanOrigin(str(file)))
    file.write_text("#\n" + file.read_text())
    moved = plan(PlanOrigin(str(file)))
    header = json.loads(json.dumps(made.header()))

    assert set(made.snippet_places) == {
        "solver.run_solver_snippet",
        "solver.postprocessor.postprocess_snippet",
        "scorers.1.compute_scores_snippet",
        "scorers.1.metrics.1.compute_metrics_snippet",
    }
    assert moved.snippet_places == {
        path: (name, line + 1) for path, (name, line) in made.snippet_places.items()
    }
    assert (moved.digest, moved.solver_digest) == (made.digest, made.solver_digest)
    # Local paths are not stored in the log.
    assert "snippet_places" not in header
