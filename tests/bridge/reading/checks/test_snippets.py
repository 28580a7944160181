"""Functions of snippets with the wrong parameters are reported before a run."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest
from pydantic import BaseModel
from tests.bridge.reading.reading_examples import issues_of, write

from aigo_bridge.errors import Issue
from aigo_bridge.reading import read

SOLVER = "  solver: {type: pass_through_solver, trace_column: t}\n"
HEAD = "key: t\ndisplay_name: T\ndescription: ''\ndefinition:\n"


def block(code: str) -> str:
    return "|\n" + indent(code, " " * 14)


def scorer(code: str, *, solved: bool = True, kind: str = "python") -> str:
    solver = "  dataset: {key: d}\n" + SOLVER if solved else ""
    field = f"      compute_scores_snippet: {block(code)}\n"
    return f"{HEAD}{solver}  scorers:\n    - type: {kind}\n      metrics: []\n{field}"


def inside(field: str, holder: str, code: str) -> str:
    return f"{HEAD}  dataset: {{key: d}}\n{holder}{' ' * 6}{field}: {block(code)}\n"


METRIC = "  solver: {type: pass_through_solver, trace_column: t}\n  scorers:\n    - type: string_equals\n      ground_truth: x\n      metrics:\n        - type: python\n    "
GENERATOR = "key: g\ndisplay_name: G\ndescription: ''\ndefinition:\n  dataset: {type: empty}\n  synthesizers:\n    - type: python\n      synthesize_snippet: "
MODEL = "key: m\ndisplay_name: M\nconfig:\n  connection_type: custom_inference\n  run_inference_snippet: "

FITTING = {
    "as documented": scorer("def compute_scores(sample, solver_output): return {}"),
    "other names": scorer("def compute_scores(s, o): return {}"),
    "async": scorer("async def compute_scores(sample, solver_output): return {}"),
    "defaults": scorer("def compute_scores(sample, solver_output=None, *, strict=False): return {}"),
    "by place alone": scorer("def compute_scores(sample, solver_output, /): return {}"),
    "anything": scorer("def compute_scores(*args, **more): return {}"),
    "lambda": scorer("compute_scores = lambda sample, output: {}"),
    "the older form": scorer("def compute_scores(sample, model_input, model_output): return {}"),
    "one of two": scorer(
        "try:\n  import numpy\n  def compute_scores(a): return {}\nexcept ImportError:\n  def compute_scores(a, b): return {}"
    ),
    "only where an import fails": scorer(
        "try:\n  import scores\nexcept ImportError:\n  def compute_scores(a, b): return {}"
    ),
    "decorated": scorer("import functools\n@functools.cache\ndef compute_scores(): return {}"),
    "imported": scorer("from statistics import mean as compute_scores"),
    "called object": scorer("import functools\ncompute_scores = functools.partial(print)"),
    "class": scorer("class compute_scores(dict): pass"),
    "without a solver": scorer("def compute_scores(sample): return {}", solved=False),
    "without a solver, output optional": scorer(
        "def compute_scores(sample, solver_output=None): return {}", solved=False
    ),
    "all samples": scorer("def compute_scores(samples): return []", kind="python_all_samples"),
    "synthesize": GENERATOR + block("def synthesize(source): return []"),
    "inference": MODEL + block("def run_inference(body, environment): return body"),
    "inference with a sample": MODEL + block("def run_inference(body, environment, sample): return body"),
    "inference with a named sample": MODEL
    + block("def run_inference(body, environment, *, sample): return body"),
    "parameters of the task": scorer(
        "LIMIT = << config.n >>\ndef compute_scores(sample, solver_output): return {}"
    ).replace("definition:", "config_spec: [{type: int, key: n, display_name: N}]\ndefinition:"),
}

WRONG = {
    "no output": (scorer("import re\ndef compute_scores(sample): return {}"), "compute_scores(sample)", "(sample, solver_output)"),
    "too many": (scorer("def compute_scores(sample, output, third): return {}"), "(sample, output, third)", "(sample, solver_output)"),
    "nothing": (scorer("def compute_scores(): return {}"), "compute_scores()", "(sample, solver_output)"),
    "by name": (scorer("def compute_scores(*, sample, solver_output): return {}"), "(*, sample, solver_output)", "(sample, solver_output)"),
    "needs a name": (scorer("def compute_scores(a, b, *, c): return {}"), "(a, b, *, c)", "(sample, solver_output)"),
    "lambda": (scorer("compute_scores = lambda sample: {}"), "compute_scores(sample)", "(sample, solver_output)"),
    "output without a solver": (scorer("def compute_scores(sample, solver_output): return {}", solved=False), "(sample, solver_output)", "(sample)"),
    "the older form without a solver": (scorer("def compute_scores(sample, model_input, model_output): return {}", solved=False), "model_input", "(sample)"),
    "all samples": (scorer("def compute_scores(sample, solver_output): return []", kind="python_all_samples"), "(sample, solver_output)", "(samples)"),
    "metric": (inside("compute_metrics_snippet", METRIC, "def compute_metrics(scores, samples): return {}"), "(scores, samples)", "(scores)"),
    "post-processor": (inside("postprocess_snippet", "  solver:\n    type: pass_through_solver\n    trace_column: t\n    postprocessor:\n      type: python\n", "def postprocess(output): return []"), "postprocess(output)", "(sample, solver_output)"),
    "solver": (inside("run_solver_snippet", "  solver:\n      type: python\n", "async def run_solver(sample, model): return model"), "run_solver(sample, model)", "(sample, model, trace)"),
    "system": (f"{HEAD}  type: system_task\n  compute_evidence_snippet: {block('def compute_evidence(sample): return {}')}", "compute_evidence(sample)", "compute_evidence()"),
    "synthesize": (GENERATOR + block("def synthesize(): return []"), "synthesize()", "(source)"),
    "inference": (MODEL + block("def run_inference(body): return body"), "run_inference(body)", "(body, environment)"),
}  # fmt: skip


def errors(text: str, folder: Path) -> list[Issue]:
    return [issue for issue in issues_of(text, folder) if issue.severity == "error"]


@pytest.mark.parametrize("name", FITTING)
def test_callable_functions_have_no_errors(name: str, tmp_path: Path) -> None:
    assert errors(FITTING[name], tmp_path) == []


@pytest.mark.parametrize("name", WRONG)
def test_function_with_wrong_parameters_is_reported(name: str, tmp_path: Path) -> None:
    text, found, expected = WRONG[name]
    (issue,) = errors(text, tmp_path)
    assert issue.message.startswith("found ")
    assert found in issue.message.split(", expected ")[0]
    assert issue.message.endswith(expected)
    assert issue.line is not None
    assert {"def", "lambda"} & set(text.split("\n")[issue.line - 1].split())


def test_parameters_in_another_order_are_a_warning(tmp_path: Path) -> None:
    (issue,) = issues_of(scorer("def compute_scores(solver_output, sample): return {}"), tmp_path)
    assert (issue.severity, issue.hint) == ("warning", "arguments are passed by position")
    assert issue.message == (
        "found compute_scores(solver_output, sample), expected compute_scores(sample, solver_output)"
    )


def test_issue_has_the_position_of_the_function_in_its_file(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "score.py": "# first line\n\nif True:\n    def compute_scores(sample):\n        return {}\n",
            "t.yaml": scorer("x").split("compute_scores_snippet")[0]
            + "compute_scores_snippet: !include score.py\n",
        },
    )
    issues = issues_of((tmp_path / "t.yaml").read_text(), tmp_path)
    assert [(Path(issue.file or "").name, issue.line, issue.column) for issue in issues] == [
        ("score.py", 4, 5)
    ]


def test_wrong_parameters_are_a_warning_in_the_platform_dialect(tmp_path: Path) -> None:
    text = scorer("def compute_scores(sample): return {}").replace("{key: d}", "{key: << config.d >>}")
    text = text.replace("definition:", "config_spec: [{type: dataset, key: d, display_name: D}]\ndefinition:")
    (tmp_path / "t.yaml").write_text(text)
    assert [
        issue.severity for issue in read(BaseModel, tmp_path / "t.yaml", dialect="aigo-3.17", env={}).issues
    ] == ["warning"]


@pytest.mark.parametrize(
    "path", ["score.py", "./parts/score.py", "../parts/my-score.py", "C:\\parts\\score.py"]
)
def test_path_instead_of_code_is_reported(path: str, tmp_path: Path) -> None:
    (issue,) = errors(scorer("x").split("|")[0] + f"{path}\n", tmp_path)
    assert issue.message == f"found the path {path!r}, expected Python code"
    assert issue.hint == f"to insert the text of that file: !include {path}"


@pytest.mark.parametrize("text", ["prompts/ask.md", "./ask.txt", "ask.jinja"])
def test_path_instead_of_a_prompt_is_a_warning(text: str, tmp_path: Path) -> None:
    solver = f"  solver: {{type: single_turn_solver, input_builder: {{type: chat_completion, input_messages: [{{role: user, content: {text}}}]}}}}\n"
    (issue,) = issues_of(HEAD + "  dataset: {key: d}\n" + solver, tmp_path)
    assert (issue.severity, issue.message) == (
        "warning",
        f"the text is the path {text!r}, and the path itself will be sent",
    )


def test_ground_truth_that_looks_like_a_path_has_no_warning(tmp_path: Path) -> None:
    text = (
        HEAD
        + "  dataset: {key: d}\n"
        + SOLVER
        + "  scorers: [{type: string_equals, ground_truth: README.md}]\n"
    )
    assert issues_of(text, tmp_path) == []
