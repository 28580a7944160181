"""Results of lighteval 0.11, 0.12, 0.13 and the installed release are imported completely, compared with the
raw files."""

from __future__ import annotations

import json
import math
import zipfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships none
import pytest
from tests.adapters.lighteval.importing.results import imported, load
from tests.support.commands import REPOSITORY
from tests.support.forked import finished

from aigo_bridge.dtypes import Message, SolverTrace, TaskResultLog, Trace

GOLDEN = REPOSITORY / "tests" / "golden" / "lighteval"
RELEASES = sorted(path.stem for path in GOLDEN.glob("*.zip"))
Json = dict[str, Any]
Logs = dict[str, TaskResultLog]


def logs_of(folder: Path, out: Path) -> Logs:
    code, reports = imported(folder, out)
    assert code == 0, [report.lines for report in reports]
    logs = [load(report.output) for report in reports if report.output is not None]
    assert len(logs) == len(reports)
    return {log.specification.display_name: log for log in logs}


@pytest.fixture(scope="module", params=[*RELEASES, "installed"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the results of one release."""
    folder = tmp_path_factory.mktemp("lighteval")
    if request.param == "installed":
        script = REPOSITORY / "tests" / "golden" / "make_lighteval_results.py"
        program = "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
        done = finished(["-c", program, script, folder])
        assert done.returncode == 0, done.stderr[-2000:]
    else:
        with zipfile.ZipFile(GOLDEN / f"{request.param}.zip") as archive:
            archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def logs(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Logs:
    return logs_of(run, tmp_path_factory.mktemp("evidence"))


@pytest.fixture(scope="module")
def native(run: Path) -> Json:
    (path,) = run.rglob("results_*.json")
    found: Json = json.loads(path.read_text())
    return found


@pytest.fixture(scope="module")
def rows(run: Path) -> dict[str, list[Json]]:
    """Return the details as read by pyarrow, by task."""
    found = {}
    for path in run.rglob("details_*.parquet"):
        table = pq.read_table(path).to_pylist()
        found[table[0]["doc"]["task_name"]] = table
    return found


def by_name(logs: Logs, name: str) -> TaskResultLog:
    return next(log for task, log in logs.items() if name in task)


def finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def test_every_supported_release_has_golden_results() -> None:
    assert [release.rsplit(".", 1)[0] for release in RELEASES] == ["0.11", "0.12", "0.13"]


def test_every_task_has_a_result_and_averages_have_none(logs: Logs, native: Json) -> None:
    averages = {name for name in native["results"] if name == "all" or "_average" in name}
    assert len(averages) == 2
    assert set(logs) == set(native["results"]) - averages
    kept = by_name(logs, "group:one").specification.config["lighteval"]["averages"]
    assert set(kept) == averages
    assert kept["all"]["said"] == native["results"]["all"]["said"]
    assert set(by_name(logs, "several").specification.config["lighteval"]["averages"]) == {"all"}


def test_every_metric_is_imported_with_its_standard_error(logs: Logs, native: Json) -> None:
    for task, log in logs.items():
        assert log.evidence is not None
        expected = {k: v for k, v in native["results"][task].items() if math.isfinite(v)}
        metrics = log.evidence.metrics or []
        assert {k: v for metric in metrics for k, v in metric.values.items()} == expected
        odd = {name for name, value in native["results"][task].items() if not math.isfinite(value)}
        named = " ".join(error.message for error in log.evidence.errors)
        assert all(name in named for name in odd if not name.endswith("_stderr"))
        assert {m.metric_type for m in metrics if m.scorer_key in ("em", "said", "acc", "flag")} <= {"mean"}


def test_every_score_of_every_document_is_imported(logs: Logs, rows: dict[str, list[Json]]) -> None:
    assert set(logs) == set(rows)
    for task, log in logs.items():
        expected: dict[str, Json] = {}
        for native in rows[task]:
            mine = expected.setdefault(native["doc"]["id"], {})
            mine |= {k: v for k, v in native["metric"].items() if v is not None}
        assert log.evidence is not None
        samples = log.evidence.samples or []
        assert [s.sample_id for s in samples] == sorted(expected, key=int)
        for sample in samples:
            found = sample.scores if sample.scores is not None else sample.trials[0].scores
            assert found is not None
            got = {
                score.scorer_name: score.values
                if (score.metadata or {}).get("corpus_level")
                else score.values[str(score.scorer_name)]
                for score in found
            }
            assert got == {name: finite(value) for name, value in expected[str(sample.sample_id)].items()}


def test_documents_become_sample_data(logs: Logs, rows: dict[str, list[Json]]) -> None:
    for task, log in logs.items():
        docs = {native["doc"]["id"]: native["doc"] for native in rows[task]}
        for sample in (log.evidence and log.evidence.samples) or []:
            for trial in sample.trials:
                assert trial.sample is not None
                golds = trial.sample.data["golds"]
                data = {name: value for name, value in trial.sample.data.items() if name != "golds"}
                native = docs[str(sample.sample_id)]
                assert data == {name: value for name, value in native.items() if value is not None}
                index = native["gold_index"]
                assert golds == [
                    native["choices"][n] for n in (index if isinstance(index, list) else [index])
                ]


def test_traces_contain_questions_and_answers(logs: Logs, rows: dict[str, list[Json]]) -> None:
    for task, log in logs.items():
        spoken = {r["doc"]["id"]: r["model_response"] for r in rows[task] if r["model_response"]["text"]}
        for sample in (log.evidence and log.evidence.samples) or []:
            native = spoken.get(str(sample.sample_id))
            if native is None:
                continue
            assert len(sample.trials) == len(native["text"])
            for trial, text, reasoning in zip(
                sample.trials, native["text"], native["reasonings"], strict=True
            ):
                assert trial.solver is not None
                output = trial.solver.output
                assert isinstance(output, SolverTrace)
                trace = output.trace
                assert Trace.from_events(trace.events or []).items == trace.items
                messages = [item for item in trace.items if isinstance(item, Message)]
                said = [(m.role.value, getattr(m.content[0], "text", None)) for m in messages]
                asked = [(m["role"], m["content"]) for m in native["input"]]
                thought = [("assistant", reasoning)] if reasoning else []
                assert said == [*asked, *thought, ("assistant", text)]
                assert trace.get_last_assistant_text() == text
                raw: Any = output.raw_outputs[-1]
                assert raw.choices[0].message.content == text


def test_likelihoods_of_every_choice_are_imported(logs: Logs, rows: dict[str, list[Json]]) -> None:
    log = by_name(logs, "choice")
    native = {r["doc"]["id"]: r for r in rows[log.specification.display_name]}
    assert log.evidence is not None
    for sample in log.evidence.samples or []:
        expected = native[str(sample.sample_id)]
        solver = sample.trials[0].solver
        assert solver is not None
        assert isinstance(solver.output, SolverTrace)
        (raw,) = solver.output.raw_outputs
        assert [each["continuation"] for each in raw["log_likelihoods"]] == expected["doc"]["choices"]
        assert [each["log_likelihood"] for each in raw["log_likelihoods"]] == expected["model_response"][
            "logprobs"
        ]
        assert solver.output.trace.assistant_messages == []


def test_a_document_with_two_request_types_becomes_one_sample(logs: Logs) -> None:
    log = by_name(logs, "mixed")
    assert log.evidence is not None
    for sample in log.evidence.samples or []:
        (trial,) = sample.trials
        assert {score.scorer_name for score in trial.scores or []} == {"said", "acc"}
        assert trial.solver is not None
        assert isinstance(trial.solver.output, SolverTrace)
        assert len(trial.solver.output.raw_outputs) == 2
        assert len(trial.solver.output.trace.events or []) == 2


def test_several_answers_become_trials_with_a_joint_score(logs: Logs) -> None:
    log = by_name(logs, "samples")
    assert log.evidence is not None
    for sample in log.evidence.samples or []:
        assert [trial.index for trial in sample.trials] == [0, 1, 2]
        assert [trial.scores for trial in sample.trials] == [None, None, None]
        assert len(sample.scores or []) == 1
    trials = log.specification.run_config.trials_config
    assert trials is not None
    assert trials.num_trials == 3


def test_perplexities_keep_their_log_probabilities_and_weights(logs: Logs) -> None:
    log = by_name(logs, "perplexity")
    assert log.evidence is not None
    for sample in log.evidence.samples or []:
        scores = sample.trials[0].scores or []
        assert [set(score.values) for score in scores] == [{"logprobs", "weights"}] * 2
        solver = sample.trials[0].solver
        assert solver is not None
        assert isinstance(solver.output, SolverTrace)
        assert solver.output.raw_outputs == [{"logprobs": [-1.5, -2.25]}]


def test_a_non_finite_value_becomes_null_with_its_text(logs: Logs) -> None:
    log = by_name(logs, "odd")
    assert log.evidence is not None
    odd = {
        s.sample_id: score
        for s in log.evidence.samples or []
        for score in s.trials[0].scores or []
        if score.scorer_name == "nan"
    }
    assert odd["1"].values == {"nan": None}
    assert odd["1"].metadata == {"unscored": True, "values": {"nan": "NaN"}}
    assert odd["0"].values == {"nan": 1.0}
    assert log.status == "success"


def test_the_specification_contains_task_data_and_model(logs: Logs, native: Json) -> None:
    log = by_name(logs, "demo:gen")
    specification = log.specification
    assert specification.task.display_name == "demo:gen"
    assert specification.config["num_fewshots"] == 2
    kept = specification.config["lighteval"]
    assert kept["config_task"] == native["config_tasks"][specification.display_name]
    assert kept["config_general"] == native["config_general"]
    assert specification.evaluated_entity is not None
    assert specification.evaluated_entity.display_name == "org/table"
    definition = specification.task.definition
    assert definition.type == "benchmark_task"
    assert [scorer.type for scorer in definition.scorers] == ["em", "said"]
    assert log.execution.model_usage is not None
    assert log.execution.model_usage.num_samples == 5
    assert log.execution.ended_at >= log.execution.started_at > 1_600_000_000


def test_task_names_with_and_without_suites_give_the_same_task(tmp_path: Path) -> None:
    keys = set()
    for release in RELEASES:
        with zipfile.ZipFile(GOLDEN / f"{release}.zip") as archive:
            archive.extractall(tmp_path / release)
        log = by_name(logs_of(tmp_path / release, tmp_path / "out" / release), "demo:gen")
        keys.add((log.specification.task.key, log.specification.config["num_fewshots"]))
    assert len(keys) == 1
