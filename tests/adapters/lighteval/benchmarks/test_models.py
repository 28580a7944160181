"""Tasks with likelihood metrics: a backend gives the values of the lighteval pipeline, and other models are
refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.lighteval.benchmarks.conftest import Splits, native, rows_of, run
from tests.support import tiny_model

from aigo_bridge.errors import UsageError

LIKELIHOODS = ("arc:challenge", "arc:easy", "truthfulqa:mc", "winogrande", "sciq", "swag", "logiqa")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a model that accepts prompts of the length of these tasks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiny_model, "CONTEXT", 1024)
        return tiny_model.save_tiny_model(tmp_path_factory.mktemp("model"), chat=False)


@pytest.fixture(scope="module")
def own(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the same model as loaded by lighteval."""
    from lighteval.models.transformers.transformers_model import (
        TransformersModel,
        TransformersModelConfig,
    )

    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lighteval.models.transformers.transformers_model._get_model_sha", lambda *_, **__: "")
        model = TransformersModel(
            TransformersModelConfig(model_name=str(folder), batch_size=2, cache_dir=str(cache))
        )
    # A run releases the tokenizer of the model at its end.
    model.cleanup = lambda: None
    return model


@pytest.mark.parametrize("task", [*LIKELIHOODS, "mmlu:abstract_algebra", "commonsenseqa"])
def test_likelihood_metrics_match_lighteval(
    task: str, folder: Path, own: Any, tmp_path: Path, data_dir: Callable[[Splits], Path]
) -> None:
    splits = rows_of(task)
    expected, docs = native(task, splits, own)

    (outcome,) = run(task, tmp_path / "out", f"transformers/{folder},batch_size=1", data_dir(splits))

    assert outcome.num_failed == 0, outcome.first_errors
    numbers = {row.name: row.value for row in outcome.metrics if not row.name.endswith("_stderr")}
    assert numbers == pytest.approx(dict(expected.results))
    assert outcome.result is not None
    samples = json.loads(outcome.result.read_text("utf-8"))["evidence"]["samples"]
    assert len(samples) == len(docs)
    for sample in samples:
        (trial,) = sample["trials"]
        values = {name: value for score in trial["scores"] for name, value in score["values"].items()}
        measured = expected.metrics[trial["sample"]["data"]["query"]]
        if not task.startswith(
            "wikitext"
        ):  # its metrics cover all documents; each document has the inputs of the metrics
            assert values == pytest.approx(dict(measured))


def test_chat_models_are_refused_for_likelihood_tasks(
    tmp_path: Path, scripted: Callable[[Mapping[str, str]], str], data_dir: Callable[[Splits], Path]
) -> None:
    with pytest.raises(UsageError, match=r"'winogrande' is measured by log-likelihoods .* transformers/"):
        run("winogrande", tmp_path / "out", scripted({"a": "b"}), data_dir(rows_of("winogrande")))
    assert not (tmp_path / "out").exists()


def test_perplexity_tasks_are_refused_for_every_model(
    folder: Path, tmp_path: Path, scripted: Callable[[Mapping[str, str]], str]
) -> None:
    for model in (scripted({"a": "b"}), f"transformers/{folder}"):
        with pytest.raises(UsageError, match="uses perplexities, which no backend"):
            run("wikitext:103:document_level", tmp_path / "out", model)


def test_a_prompt_that_lighteval_would_truncate_fails_its_sample(
    folder: Path, tmp_path: Path, data_dir: Callable[[Splits], Path]
) -> None:
    rows = [
        *rows_of("winogrande")["validation"],
        {"sentence": "long " * 400 + "_ end", "option1": "a", "option2": "b", "answer": "1"},
    ]

    (outcome,) = run("winogrande", tmp_path / "out", f"transformers/{folder}", data_dir({"validation": rows}))

    assert outcome.num_failed == 1
    (first,) = outcome.first_errors
    sample_id, message = first.sample_id, first.error.message
    assert sample_id == "3"
    assert "the model accepts 1024 in total" in message
    assert {row.num_scored for row in outcome.metrics} == {3}
