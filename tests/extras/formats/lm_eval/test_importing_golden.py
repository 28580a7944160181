"""Complete import of lm-evaluation-harness files, compared with their plain JSON content."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tests.extras.formats.lm_eval.results import RELEASES, imported, load, unpacked

from aigo_bridge.dtypes import SampleTrialEvidence, SolverTrace, TaskResultLog
from aigo_bridge.results.validating import validate_log

Json = dict[str, Any]


def output_of(trial: SampleTrialEvidence) -> SolverTrace:
    assert trial.solver is not None
    assert isinstance(trial.solver.output, SolverTrace)
    return trial.solver.output


def test_at_least_20_files_of_two_releases_are_covered(tmp_path: Path) -> None:
    files = [path for release in RELEASES for path in unpacked(release, tmp_path / release).rglob("*.json*")]
    assert len(files) >= 20
    assert len(RELEASES) >= 2


@pytest.fixture(scope="module", params=RELEASES)
def logs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[TaskResultLog, Json, list[Json]]]:
    """Return each result log with its results file and its sample lines."""
    folder = unpacked(request.param, tmp_path_factory.mktemp("lm_eval"))
    code, reports = imported(folder, tmp_path_factory.mktemp("evidence"))
    assert code == 0, [report.lines for report in reports]
    joined = []
    for report in reports:
        assert report.output is not None
        assert not report.damage
        assert validate_log(report.output) == []
        results, _, task = report.log.rpartition(" (")
        content = json.loads(Path(results).read_text())
        folder_of = Path(results).parent
        (samples,) = (
            path for path in folder_of.glob("*.jsonl")
            if task[:-1] in path.name and path.name.startswith(("samples", "pretrained"))
        )  # fmt: skip
        text = samples.read_text()
        lines = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]
        joined.append((load(report), content, lines))
    assert len(joined) >= 6
    return joined


def test_all_documents_and_scores_are_imported(logs: list[tuple[TaskResultLog, Json, list[Json]]]) -> None:
    for log, _, lines in logs:
        assert log.evidence is not None
        samples = {sample.sample_id: sample for sample in log.evidence.samples or []}
        assert set(samples) == {str(line["doc_id"]) for line in lines}
        for line in lines:
            sample = samples[str(line["doc_id"])]
            first = sample.trials[0]
            assert first.sample is not None
            assert {key: first.sample.data[key] for key in line["doc"]} == line["doc"]
            assert first.sample.data["target"] == line["target"]
            scores = {score.scorer_name: score for score in [*(sample.scores or []), *(first.scores or [])]}
            for metric in line.get("metrics", []):
                suffix = "" if line["filter"] == "none" else f",{line['filter']}"
                if metric == "bypass":
                    assert metric not in scores
                    continue
                assert scores[metric + suffix].values == {metric + suffix: line[metric]}
                is_corpus = (scores[metric + suffix].metadata or {}).get("corpus_level", False)
                assert is_corpus == isinstance(line[metric], list)


def test_imported_prompts_and_answers_equal_the_samples_file(
    logs: list[tuple[TaskResultLog, Json, list[Json]]],
) -> None:
    for log, content, lines in logs:
        config = content["configs"][log.specification.display_name]
        assert log.evidence is not None
        samples = {sample.sample_id: sample for sample in log.evidence.samples or []}
        for line in lines:
            trials = samples[str(line["doc_id"])].trials
            arguments = line["arguments"]
            calls = (
                [list(part.values()) for part in arguments.values()]
                if isinstance(arguments, dict)
                else arguments
            )
            if config["output_type"] != "generate_until":
                assert len(trials) == 1
                raw: list[Any] = list(output_of(trials[0]).raw_outputs)
                numbers = [value for output in raw for value in output["logprobs"]]
                stored = [answers[0] for answers in line["resps"]]
                assert numbers == [float(value[0] if isinstance(value, list) else value) for value in stored]
                continue
            answers = [output_of(trial).trace.get_last_assistant_text() for trial in trials]
            assert answers == line["resps"][0]
            assert output_of(trials[0]).trace.get_last_user_text() == calls[0][0]


def test_imported_metrics_equal_the_results_file(logs: list[tuple[TaskResultLog, Json, list[Json]]]) -> None:
    seen: set[str] = set()
    for log, content, _ in logs:
        task = log.specification.display_name
        stored = {
            name.removesuffix(",none"): value
            for name, value in content["results"][task].items()
            if isinstance(value, float) and "_stderr" not in name and not name.startswith("bypass")
        }
        assert log.evidence is not None
        metrics = {metric.scorer_name: metric for metric in log.evidence.metrics or []}
        assert {name: metric.values[str(name)] for name, metric in metrics.items()} == stored
        seen |= set(stored)
        for name, metric in metrics.items():
            base, _, filter_name = str(name).partition(",")
            stderr = content["results"][task].get(f"{base}_stderr,{filter_name or 'none'}")
            if isinstance(stderr, float) and math.isfinite(stderr):
                assert metric.values[f"{name}_stderr"] == stderr
            else:
                assert list(metric.values) == [name]
    assert {"acc", "acc_norm", "mcc", "bleu", "perplexity", "word_perplexity", "bits_per_byte"} <= seen
    assert {"exact_match", "exact_match,strict", "exact_match,words"} <= seen


def test_task_run_and_model_are_imported(logs: list[tuple[TaskResultLog, Json, list[Json]]]) -> None:
    for log, content, _ in logs:
        specification = log.specification
        task = specification.display_name
        about = (specification.config or {})["lm_eval"]
        assert about["task"] == content["configs"][task]
        assert about["versions"] == content["versions"][task]
        assert (specification.config or {})["num_fewshots"] == content["n-shot"][task]
        assert about["config"]["model_args"] == "pretrained=org/table,dtype=float"
        assert specification.evaluated_entity is not None
        assert specification.evaluated_entity.display_name == "org/table"
        assert log.execution.started_at == int(content["date"])
    assert "tiny" in {
        group for log, _, _ in logs for group in (log.specification.config or {})["lm_eval"]["groups"]
    }
