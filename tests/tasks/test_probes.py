"""Findings of `aigo-bridge probe` about shipped tasks are exactly those explained in their READMEs.

Answers are scripted. Judges are not probed, because a script cannot represent a judge.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import TASKS, Run
from tests.support.scripted_results import scripted_result

from aigo_trust.probing.registry import PERTURBATIONS

pytestmark = pytest.mark.engine

JUDGE = "openai$gpt-4-1-mini"
FEW = ("gsm8k", "squad-v2", "winogrande")
"""Tasks that are probed with every run of the tests."""
REST = (
    "arc", "bbq", "booking-dialogue", "boolq", "commonsenseqa", "ctf-small", "drop", "handoff-small", "hellaswag", "ifeval", "math-500",
    "mmlu", "mmlu-pro", "piqa", "repair-small", "truthfulqa-mc", "wmt14", "xsum",
)  # fmt: skip
HOSTED = ("booking-dialogue", "ctf-small", "handoff-small", "repair-small")
"""Tasks whose answers come about on an engine alone, or that several models talk in."""
UNPROBED = {
    "data-quality": "does not evaluate a model",
    "governance-controls": "a system task",
    "hp-trivia": "a judge alone",
    "humaneval": "code that a model wrote",
    "mbpp": "code that a model wrote",
    "mt-bench": "a judge alone",
    "rag-hotpotqa": "a judge alone",
    "safety-refusal": "judges alone",
    "simpleqa": "a judge alone",
    "singleturn-generic-input": "string_equals alone, whose documentation explains",
    "tool-use": "function calls",
    "truthfulqa-generation": "a judge alone",
    "uniqueness-task": "does not evaluate a model",
}
"""Tasks about whose scorers a probe with scripted answers says nothing of its own."""

SECTION = re.compile(r"^Probe findings[^\n]*\n\n(.*)\Z", re.MULTILINE | re.DOTALL)
NAMES = {perturbation.name for perturbation in PERTURBATIONS}


def findings(aigo: Run, name: str, folder: Path) -> set[str]:
    """Return the perturbations that fail for a scorer of a task."""
    log = folder / f"{name}.tasklog.json"
    if name in HOSTED:
        arguments: list[Any] = ["run", f"aigo_tasks/{name}", "-o", folder]
        arguments += ["--model", f"scripted/{TASKS / name / 'answers.jsonl'}"]
        if (TASKS / name / "judge.jsonl").exists():
            arguments += ["--model-map", f"{JUDGE}=scripted/{TASKS / name / 'judge.jsonl'}"]
        assert aigo(*arguments).code == 0
    else:
        scripted_result(TASKS / name, log)
    done = aigo("probe", f"aigo_tasks/{name}", log, "--limit", 100, "--json")
    assert done.code in (0, 1, 3), done.err
    assert done.json["totals"]["probed"] > 40
    return {row["perturbation"] for row in done.json["by_scorer"] if row["failed"]}


def explained(name: str) -> set[str]:
    """Return the perturbations that a task's README explains, from the names of its bullets."""
    section = SECTION.search((TASKS / name / "README.md").read_text("utf-8"))
    bullets = re.findall(r"^- ((?:`[a-z-]+`(?:, )?)+):", section.group(1), re.MULTILINE) if section else []
    return {named for bullet in bullets for named in re.findall(r"`([a-z-]+)`", bullet)}


@pytest.mark.parametrize("name", FEW)
def test_findings_are_explained_in_the_task_description(aigo: Run, name: str, tmp_path: Path) -> None:
    assert findings(aigo, name, tmp_path) == explained(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", REST)
def test_findings_about_every_task_are_explained(aigo: Run, name: str, tmp_path: Path) -> None:
    assert findings(aigo, name, tmp_path) == explained(name)


def test_every_task_is_probed_or_has_a_reason() -> None:
    folders = {path.parent.name for path in TASKS.glob("*/task.yaml")}

    assert {*FEW, *REST, *UNPROBED} == folders
    assert not {name for name in UNPROBED if (TASKS / name / "README.md").exists() and explained(name)}
    assert all(explained(name) <= NAMES for name in (*FEW, *REST))
    assert {name for name in (*FEW, *REST) if not explained(name)} == {
        "booking-dialogue",
        "ctf-small",
        "wmt14",
    }
