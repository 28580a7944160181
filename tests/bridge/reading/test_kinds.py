"""The kind of a file is recognized by its content, and by its name if the content is ambiguous."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel
from tests.bridge.reading.reading_examples import write

from aigo_bridge.errors import SpecError
from aigo_bridge.reading import Dialect, read, recognise, validate_paths

NAMED = "key: x\ndisplay_name: X\ndescription: ''\n"

PARTS = {
    "a judge": "type: model_as_a_judge_scorer\nmodel_key: openai$gpt\nuser_prompt: x\n",
    "a scorer with a judge and names": NAMED + "type: rag_checker\njudge_model_key: openai$gpt\n",
    "a scorer in Python": "type: python\nkey: exact\ncompute_scores_snippet: |\n  def compute_scores(s, o): return {}\n",
    "a metric": "type: mean\nfield: is_correct\n",
    "a solver": "type: single_turn_solver\ninput_builder: {type: generic, template: x}\n",
    "a parameter": NAMED + "type: model\n",
    "a source": "type: local\nfile_path: d.csv\n",
}


@pytest.mark.parametrize("name", PARTS)
def test_file_with_only_a_part_is_skipped_with_a_hint(name: str, tmp_path: Path) -> None:
    """Such files used to be taken for apps or datasets and rejected."""
    write(tmp_path, {"scorers/part.yaml": PARTS[name]})

    (in_folder,) = validate_paths([tmp_path], env={})
    (alone,) = validate_paths([tmp_path / "scorers" / "part.yaml"], env={})

    assert (in_folder.skipped, in_folder.issues) == (True, ())
    (issue,) = alone.issues
    kind = PARTS[name].split("type: ")[1].split("\n")[0]
    assert issue.message == f"this file is only a part (type {kind!r}) of another file"
    assert issue.hint == "validate the file that refers to it"


def test_a_task_specification_in_its_own_file_is_not_an_app(tmp_path: Path) -> None:
    write(tmp_path, {"quiz.yaml": "task_key: quiz\nmodel_key: << config.m >>\ntask_config: {a: 1}\n"})
    (report,) = validate_paths([tmp_path], env={})
    assert (report.skipped, report.issues) == (True, ())


RISK_SCORER = {
    "key": "r",
    "display_name": "R",
    "risk_scoring_methodology_key": "m",
    "scope": "all_latest",
    "aggregation": "mean",
}


def test_risk_scorers_are_not_an_app() -> None:
    assert recognise({"risk_scorers": [RISK_SCORER]}) is None
    assert recognise(RISK_SCORER) == "risk_scorer"
    assert recognise({"key": "a", "display_name": "A", "risk_scorers": ["r"]}) == "app"
    assert recognise({"key": "a", "display_name": "A", "risk_scorers": []}) == "app"


@pytest.mark.parametrize(
    ("file", "text", "dialect", "kind"),
    [
        ("datasets/x.yaml", NAMED, "aigo-3.17", "dataset"),
        ("dataset.yaml", NAMED + "source: null\n", "aigo-3.17", "dataset"),
        ("evaluations/x.yaml", NAMED, "default", "evaluation"),
        ("evaluation.yaml", NAMED.replace("''", "null"), "aigo-3.17", "evaluation"),
        ("policies/x.yaml", NAMED + "rules: []\n", "aigo-3.17", "policy"),
        ("apps/x.yaml", NAMED, "default", "app"),
        ("tasks/x.yaml", NAMED + "definition: {}\n", "aigo-3.17", "task"),
        ("x.yaml", NAMED + "definition: {}\n", "aigo-3.17", "task"),
    ],
)
def test_the_file_name_decides_if_the_keys_do_not(
    file: str, text: str, dialect: Dialect, kind: str, tmp_path: Path
) -> None:
    write(tmp_path, {file: text})
    (report,) = validate_paths([tmp_path / file], dialect=dialect, env={})
    assert (report.kind, report.is_valid()) == (kind, True), report.issues


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("datasets/x.yaml", NAMED, "expected 'source' or 'generator_specification', found neither"),
        ("dataset_generators/x.yaml", NAMED + "definition: {}\n", "'dataset' is missing"),
        ("generator.yaml", NAMED + "definition: {}\n", "'synthesizers' is missing"),
    ],
)
def test_missing_field_is_reported_for_the_kind_of_the_file(
    file: str, text: str, message: str, tmp_path: Path
) -> None:
    write(tmp_path, {file: text})
    with pytest.raises(SpecError) as caught:
        read(BaseModel, tmp_path / file, env={})
    assert message in "\n".join(issue.message for issue in caught.value.issues)


def test_unrelated_files_are_skipped(tmp_path: Path) -> None:
    write(tmp_path, {"models/config.yaml": "layers: 3\n", "tasks/main.yaml": "- name: install\n"})
    assert all(report.skipped for report in validate_paths([tmp_path], env={}))
