"""A metric type is one class and one row, which reading, validation, computation and export use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.commands import Run
from tests.support.metric_example import AT_LEAST, AtLeastMetric
from tests.support.recipes import single_turn

from aigo_bridge.exporting import native
from aigo_bridge.metrics.registry import METRIC_TYPES, register
from aigo_bridge.spec import task
from aigo_bridge.spec.metric import METRICS

METRIC = {"type": "at_least", "field": "is_correct", "bound": 1}


@pytest.fixture
def at_least() -> Iterator[None]:
    register(AT_LEAST)
    yield
    del METRICS["at_least"], METRIC_TYPES[AtLeastMetric]
    task.rebuild()


@pytest.fixture
def written(at_least: None, tmp_path: Path) -> Path:
    (tmp_path / "rows.jsonl").write_text(
        '{"question": "One?", "text": "a"}\n{"question": "Two?", "text": "b"}\n'
    )
    return with_metric(tmp_path / "task.yaml")


def with_metric(path: Path, **fields: Any) -> Path:
    scorer = {
        "type": "string_equals",
        "ground_truth": "{{ sample.text }}",
        "metrics": [{**METRIC, **fields}],
    }
    path.write_text(yaml.safe_dump(single_turn(scorer, key="reached", question="question")))
    return path


def test_every_metric_that_a_scorer_may_have_can_be_computed() -> None:
    assert set(METRIC_TYPES) == set(METRICS.values())


def test_every_metric_has_a_native_form_or_a_reason() -> None:
    assert set(native.METRICS) == set(METRICS)
    assert all(bool(form.code) != bool(form.reason) for form in native.METRICS.values())


@pytest.mark.parametrize("spec", METRICS.values())
def test_score_fields_are_the_field_options_of_the_metric(spec: Any) -> None:
    names = {name for name in spec.model_fields if "field" in name}
    assert set(spec.score_fields) == names


@pytest.mark.engine
@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_new_metric_type_is_computed(engine: str, aigo: Run, written: Path, tmp_path: Path) -> None:
    rules = tmp_path / "model.rules"
    rules.write_text('{"default": true, "reply": "a"}\n')
    command = ("run", written, "--engine", engine, "--model", f"scripted/{rules}", "--out", tmp_path / "out")
    run = aigo(*command, "--json")
    assert run.code == 0, run.err
    (result,) = (tmp_path / "out").glob("*.tasklog.json")
    (metric,) = json.loads(result.read_bytes())["evidence"]["metrics"]
    assert (metric["metric_type"], metric["values"]) == ("at_least", {"is_correct_at_least": 0.5})


def test_new_metric_type_is_validated(aigo: Run, written: Path) -> None:
    assert aigo("validate", written).code == 0
    wrong = aigo("validate", with_metric(written, bound=float("inf"), field="is_corect"))
    assert wrong.code == 1
    assert "'bound': no number reaches it" in wrong.out + wrong.err
    assert "the scorer does not return score 'is_corect'" in wrong.out + wrong.err
    unknown = aigo("validate", with_metric(written, bond=1))
    assert "known keys: key, name, field, type, bound" in unknown.out + unknown.err
    strict = aigo("validate", with_metric(written), "--dialect", "aigo-3.17")
    assert "'type': 'at_least' is an aigo-bridge extension" in strict.out + strict.err


def test_new_metric_type_is_shown_by_explain(aigo: Run, written: Path) -> None:
    assert "field: is_correct, bound: 1" in aigo("explain", written).out


@pytest.mark.engine
def test_new_metric_type_is_a_gap_in_native_export(aigo: Run, written: Path, tmp_path: Path) -> None:
    export = aigo("export", written, "--to", "inspect", "--native", "--out", tmp_path / "out")
    assert "at_least)" in export.out + export.err
    assert "no native equivalent" in export.out + export.err
