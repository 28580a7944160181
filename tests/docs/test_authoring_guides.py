"""Guides about tasks and plug-ins: settings, names and commands match the program."""

from __future__ import annotations

import re
import tomllib

import yaml
from tests.support.commands import REPOSITORY
from tests.support.pages import page

from aigo_bridge.cli import VERBS
from aigo_bridge.plugins import KINDS, group_of
from aigo_bridge.spec.datasets import DatasetSpec, HuggingFaceSource

GUIDES = REPOSITORY / "docs" / "guides"
PLUGIN = page(GUIDES / "write-a-plugin.md")
BENCHMARK = page(GUIDES / "rewrite-a-benchmark.md")


def test_plugin_guide_has_every_group_of_entry_points() -> None:
    table = re.findall(r"^\| [^|`]+ \| `(aigo_bridge\.\w+)`", PLUGIN.text, re.MULTILINE)
    assert sorted(table) == sorted(group_of(kind) for kind in KINDS)


def test_plugin_guide_declares_the_scorer_of_the_example() -> None:
    (block,) = [each.text for each in PLUGIN.blocks if each.kind == "toml"]
    example = tomllib.loads((REPOSITORY / "tests/support/plugin/pyproject.toml").read_text("utf-8"))[
        "project"
    ]
    shown = tomllib.loads(block)["project"]
    for group, points in shown.pop("entry-points").items():
        assert points.items() <= example["entry-points"][group].items()
    assert shown.items() <= example.items()


def test_benchmark_guide_converts_the_shown_task() -> None:
    harness, dataset, _ = (yaml.safe_load(each.text) for each in BENCHMARK.blocks if each.kind == "yaml")
    source = DatasetSpec.model_validate({"key": "gsm8k", "display_name": "GSM8K", **dataset}).source
    assert isinstance(source, HuggingFaceSource)
    assert (source.path, source.split) == (harness["dataset_path"], harness["test_split"])
    assert source.load_dataset_kwargs["name"] == harness["dataset_name"]


def test_benchmark_guide_names_tasks_and_commands_that_exist() -> None:
    assert {*re.findall(r"`aigo-bridge (\w+)", BENCHMARK.text)} <= {*VERBS}
    names = re.findall(r"`aigo_tasks/([\w./-]+)`", BENCHMARK.text)
    assert names
    assert [each for each in names if not (REPOSITORY / "tasks" / "aigo_tasks" / each).exists()] == []
