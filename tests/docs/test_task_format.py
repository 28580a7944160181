"""Task format pages are complete and correct: they match the classes that read task files, and their examples run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from tests.conformance.ledger import LEDGER
from tests.docs.field_tables import TASK_FORMAT, Writer, marked, stale
from tests.support.commands import Run
from tests.support.pages import Block, Page, Section

from aigo_bridge.spec.wording import tag_of_model

Load = Callable[[Path], dict[str, Any]]
PAGES = TASK_FORMAT.pages
SECTIONS = [section for page in PAGES for section in page.sections]
YAML = [block for page in PAGES for block in page.blocks if block.kind == "yaml"]
ROW = {
    key: value
    for page in PAGES
    for block in page.blocks
    if block.kind == "json"
    for key, value in json.loads(block.text).items()
}
ASK = {
    "type": "single_turn_solver",
    "input_builder": {
        "type": "chat_completion",
        "input_messages": [{"role": "user", "content": "{{ sample.question }}"}],
    },
}
SCORER = {"type": "string_equals", "ground_truth": "{{ sample.answer }}"}


def examples(chapter: str) -> list[tuple[Section, dict[str, Any]]]:
    """Return the YAML examples of a chapter with their sections."""
    return [
        (section, yaml.safe_load(block.text))
        for section in SECTIONS
        if section.chapter == chapter
        for block in section.blocks
        if block.kind == "yaml"
    ]


(COUNTING,) = next(each for section, each in examples("Scorers") if section.title == "`python` scorer")[
    "scorers"
]
SOLVERS = [
    each["solver"]
    for chapter in ("Solvers", "Input builders", "Message builders", "Post-processors")
    for _, each in examples(chapter)
]


def blocks_under(title: str) -> tuple[Block, ...]:
    """Return the code blocks of the section with this title."""
    (found,) = [section for section in SECTIONS if section.title == title]
    return found.blocks


def named(section: Section, what: str) -> set[str]:
    """Return the names in the sentence that begins with **what**:."""
    (sentence,) = re.findall(
        rf"\*\*{what}\*\*(?: of all)?: (.*?)(?:\. |\.?\n\n|\.\n)", section.prose, re.DOTALL
    )
    return set(re.findall(r"`([\w@^.-]+)`", sentence))


def whole_file(example: dict[str, Any], key: str) -> dict[str, Any]:
    """Return a part of a task, dataset or generator as a complete file."""
    head: dict[str, Any] = {"key": key, "display_name": "Part", "description": ""}
    if {"source", "generator_specification"} & set(example) or "synthesizers" in example.get(
        "definition", ()
    ):
        return {**head, **example}
    whole = {"dataset": {"key": "rows"}, "solver": ASK, "scorers": [SCORER]}
    if {"definition", "config_spec"} & set(example):
        return {**head, "definition": whole, **example}
    if "solver" in example:
        whole["scorers"] = []
    if "metrics" in example:
        example = {"scorers": [{**COUNTING, **example}]}
    return {**head, "definition": {**whole, **example}}


def test_the_tables_are_current() -> None:
    assert stale(TASK_FORMAT) == {}, "make field-tables"


def test_outdated_table_is_found() -> None:
    (page,) = [each for each in PAGES if each.path.name == "solvers.md"]
    old = page.text.replace("| `max_iterations` | integer | `10` |", "| `max_iterations` | integer | `5` |")
    assert old != page.text
    assert Writer(TASK_FORMAT, Page(page.path, old), PAGES).text == page.text


def test_every_class_has_a_table() -> None:
    assert set(TASK_FORMAT.classes) - set(marked(PAGES)) == set()


def test_every_field_table_is_under_the_type_name() -> None:
    wrong = {
        name: section.title
        for name, section in marked(PAGES).items()
        if (model := TASK_FORMAT.classes.get(name))
        and (word := tag_of_model(model))
        and f"`{word}`" not in section.title
    }
    assert wrong == {}


def test_every_kind_of_solver_scorer_metric_source_and_parameter_has_an_example() -> None:
    chapters = ("Solvers", "Scorers", "Metrics", "Parameters", "Datasets")
    without = [
        section.title
        for section in SECTIONS
        if section.chapter in chapters and section.title.startswith("`") and not section.blocks
    ]
    assert without == []


COMPUTING = ("Scorers", "Metrics", "Aggregators", "Filters")
"""Chapters whose every kind comes to a number or a verdict."""

COUNTED = {
    "`string_equals`",
    "`model_as_a_judge_classifier`",
    "`model_as_a_judge_scorer`",
    "`labeler_via_model`",
    "`python` scorer",
    "`python_all_samples`",
    "`function_call_coverage`",
    "`mean`",
    "`min`",
    "`max`",
    "`frequency`",
    "`weighted_average`",
    "`python` metric",
    "`mean` aggregator",
    "`min` aggregator",
    "`max` aggregator",
}
"""Sections whose formula is no publication's: it compares, counts or averages as it says, or is the author's."""


def formula(section: Section) -> str:
    """Return the only line that begins with **Formula**:, or an empty text."""
    lines = re.findall(r"^\*\*Formula\*\*: (.+)$", section.prose, re.MULTILINE)
    return lines[0] if len(lines) == 1 else ""


def test_every_scorer_metric_aggregator_and_rule_has_its_formula() -> None:
    sections = [
        section for section in SECTIONS if section.chapter in COMPUTING and section.title.startswith("`")
    ]
    assert {section.chapter for section in sections} == {*COMPUTING}
    (rules,) = [section for section in SECTIONS if section.title == "Action rules"]
    assert [section.title for section in (*sections, rules) if not formula(section)] == []


def test_every_aggregator_is_described() -> None:
    without = [
        section.title
        for section in SECTIONS
        if section.chapter == "Aggregators"
        and section.title.startswith("`")
        and len(section.prose.partition("<!-- fields")[0].split()) < 8
    ]
    assert without == []


def test_every_published_formula_names_its_source() -> None:
    without = {
        section.title
        for section in SECTIONS
        if section.chapter in ("Scorers", "Metrics", "Aggregators")
        and formula(section)
        and "](https://" not in formula(section)
    }
    assert without == COUNTED


def test_page_links_the_engines_of_each_type() -> None:
    assert "../feature-matrix.md#by-name" in PAGES[0].links


def test_every_example_is_valid(aigo: Run, tmp_path: Path) -> None:
    """Each example is a separate file, next to the rows that two of them name."""
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    (tmp_path / "documents").mkdir()
    for number, block in enumerate(YAML):
        name = f"part-{number}"
        text = yaml.safe_dump(whole_file(yaml.safe_load(block.text), name), sort_keys=False)
        (tmp_path / f"{name}.yaml").write_text(text)

    done = aigo("validate", *tmp_path.glob("*.yaml"))

    assert done.code == 0, done.err


def test_engine_gaps_are_in_the_section_of_their_type() -> None:
    gaps = {
        word
        for gap in LEDGER
        for feature in gap.features
        for word in re.findall(r"(?:scorers|solvers): (\w+)", feature)
    }
    said = {section.title.strip("`") for section in SECTIONS if "**Engines**:" in section.prose}
    assert said == gaps


def evidence(
    aigo: Run,
    folder: Path,
    load: Load,
    definition: dict[str, Any],
    models: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the evidence of a task with the page's row; the model answers Oslo, other models as given."""
    definition = {"dataset": {"key": "rows"}, "solver": ASK, "scorers": [SCORER], **definition}
    task = {"key": "t", "display_name": "T", "description": "", "definition": definition}
    (folder / "t.yaml").write_text(yaml.safe_dump(task, sort_keys=False))
    (folder / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    for name, reply in {"m": "Oslo", **models}.items():
        (folder / f"{name}.jsonl").write_text(json.dumps({"default": True, "reply": reply}) + "\n")
    mapped = [word for name in models for word in ("--model-map", f"{name}=scripted/{name}.jsonl")]
    done = aigo("run", "t.yaml", "--model", "scripted/m.jsonl", *mapped, "--out", "out")
    assert done.code == 0, done.err + done.out
    found: dict[str, Any] = load(folder / "out" / "t.tasklog.json")["evidence"]
    return found


def test_solver_examples_produce_an_answer(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    """One run file runs the tasks of all examples."""
    keys = [f"t{number}" for number in range(len(SOLVERS))]
    for key, solver in zip(keys, SOLVERS, strict=True):
        task = {
            "key": key,
            "display_name": "T",
            "description": "",
            "definition": {"dataset": {"key": "rows"}, "solver": solver, "scorers": []},
        }
        (tmp_path / f"{key}.yaml").write_text(yaml.safe_dump(task, sort_keys=False))
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    for name, reply in {"m": "Oslo", "guest": "And Peru?"}.items():
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"default": True, "reply": reply}) + "\n")
    specifications = [{"key": key, "task_key": key, "model_key": "scripted$m-jsonl"} for key in keys]
    run = {
        "models": [{"$provider": "scripted/m.jsonl"}],
        "tasks": [{"$ref": f"{key}.yaml"} for key in keys],
        "evaluation": {
            "key": "e",
            "display_name": "E",
            "description": "",
            "task_specifications": specifications,
        },
    }
    (tmp_path / "run.yaml").write_text(json.dumps(run))

    done = aigo("run", "run.yaml", "--model-map", "guest=scripted/guest.jsonl", "--out", "out")

    assert done.code == 0, done.err + done.out
    for key in keys:
        found = result_of(tmp_path / "out" / f"{key}.tasklog.json")["evidence"]
        assert found["samples"]
        assert all(trial["solver"] for sample in found["samples"] for trial in sample["trials"]), key


EXAMPLE_VALUES = re.compile(
    r"^\*\*Example values\*\*(?:, for the answer `Oslo`)?(.*?): (`\w+` .*)\.$", re.MULTILINE
)


def example_values(section: Section) -> dict[str, Any]:
    """Return the values shown on the page by name: `words` 1, `is_unique` true, `guess` "geography"."""
    ((_, values),) = EXAMPLE_VALUES.findall(section.prose)
    return {
        name: json.loads(value) for name, value in re.findall(r'`(\w+)` ("[^"]*"|[^ ,]+)(?:, |$)', values)
    }


def as_shown(value: Any) -> Any:
    """Return a value with the digits shown on the page."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


(JUDGES_SECTION,) = [section for section in SECTIONS if section.title == "Judges"]
JUDGES = {
    each["scorers"][0]["type"]: reply
    for section, each in examples("Scorers")
    for reply in re.findall(r" and the reply `(.*)` of the judge: ", section.prose)
}


def test_scorers_return_the_documented_values(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    """Scores, default metrics and metadata of every scorer except `code_exec`, which needs a sandbox."""
    sections = {each["scorers"][0]["type"]: section for section, each in examples("Scorers")}
    scorers = [
        each["scorers"][0] for _, each in examples("Scorers") if each["scorers"][0]["type"] != "code_exec"
    ]
    for scorer in scorers:
        field = next((name for name in ("model_key", "judge_model_key") if name in scorer), None)
        if field is not None:
            scorer[field] = scorer["type"]

    found = evidence(aigo, tmp_path, result_of, {"scorers": scorers}, JUDGES)

    for score in found["samples"][0]["trials"][0]["scores"]:
        kind, values = score["scorer_key"], score["values"]
        section = sections[kind]
        if named(section, "Scores"):
            assert set(values) == named(section, "Scores"), kind
        metrics = {name for each in found["metrics"] if each["scorer_key"] == kind for name in each["values"]}
        assert metrics == {
            made for name in named(section, "Usual metrics") for made in _filled(name, values)
        }, kind
        assert {name: as_shown(value) for name, value in values.items()} == example_values(section), kind
        if "**Metadata**" in section.prose:
            assert named(section, "Metadata") <= set(score["metadata"]), kind
        if kind in JUDGES and kind != "rag_checker":
            assert named(JUDGES_SECTION, "Metadata") <= set(score["metadata"]), kind


def _filled(name: str, values: Mapping[str, Any]) -> list[str]:
    """Replace `SCORE_mean` for every numeric score and `label_LABEL` for the label."""
    if "SCORE" in name:
        return [
            name.replace("SCORE", each) for each, value in values.items() if isinstance(value, int | float)
        ]
    return [name.replace("LABEL", str(values.get("label")))]


def test_metrics_have_the_documented_values(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    sections = [section for section, _ in examples("Metrics")]
    metrics = [
        {**metric, "key": f"m{number}"}
        for number, section in enumerate(sections)
        for metric in yaml.safe_load(section.blocks[0].text)["metrics"]
    ]

    found = evidence(aigo, tmp_path, result_of, {"scorers": [{**COUNTING, "metrics": metrics}]})

    values = {metric["metric_key"]: metric["values"] for metric in found["metrics"]}
    for number, section in enumerate(sections):
        computed = values[f"m{number}"]
        assert set(computed) == named(section, "Values"), section.title
        shown = {name: as_shown(value) for name, value in computed.items()}
        assert shown == example_values(section), section.title
    assert len(values) == len(sections)


def test_trials_and_rules_work_as_documented(aigo: Run, tmp_path: Path, result_of: Load) -> None:
    (trials,) = [yaml.safe_load(block.text) for block in blocks_under("Trials")]
    (actions,) = [yaml.safe_load(block.text) for block in blocks_under("Action rules")]

    found = evidence(aigo, tmp_path, result_of, {**trials, **actions})

    (sample,) = found["samples"]
    names = {"is_correct", "always", "share", "is_correct.min", "is_correct.max", "is_correct.pass@2"}
    assert set(sample["scores"][0]["values"]) == names
    assert not sample.get("action_records")
