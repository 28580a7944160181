"""Damaged, hostile, incomplete and contradictory files of lm-evaluation-harness."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.extras.formats.lm_eval.results import (
    DATE,
    RELEASES,
    header,
    imported,
    load,
    row,
    unpacked,
    write,
)
from tests.support.commands import Run

from aigo_bridge.access.bounds import DEFAULT_BOUNDS
from aigo_bridge.engine.registry import load_logs, logs_at, native_files
from aigo_bridge.errors import UsageError
from aigo_bridge.results.validating import validate_log


def reasons(folder: Path, out: Path, **options: Any) -> list[str]:
    """Import a run of one task, check that the result is valid, and return the damage reasons."""
    code, (report,) = imported(folder, out, **options)
    assert code == (3 if report.damage else 0)
    if report.output is not None:
        assert validate_log(report.output) == []
        log = load(report)
        assert (log.status == "success") == (not report.damage)
    return [damage.reason for damage in report.damage]


def test_valid_run_is_imported_without_damage(tmp_path: Path) -> None:
    assert reasons(write(tmp_path / "run", header(0.5), [row(0), row(1, 0.0)]), tmp_path / "out") == []


@pytest.mark.parametrize("asked", ["", f"results_{DATE}.json", f"samples_demo_{DATE}.jsonl"])
def test_results_and_samples_files_are_matched(asked: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "run", header(0.5), [row(0), row(1, 0.0)])
    assert set(logs_at(str(folder / asked))) == {"lm-eval"}
    code, (report,) = imported(folder / asked, tmp_path / "out")
    assert (code, report.samples) == (0, 2)
    assert len(native_files("lm-eval", folder / f"results_{DATE}.json")) == 2


def test_only_the_named_samples_file_is_imported(tmp_path: Path) -> None:
    content = header()
    for table in ("results", "configs"):
        content[table]["other"] = content[table]["demo"]
    folder = write(tmp_path / "run", content, [row(0)])
    write(folder, None, [row(0)], task="other")
    code, reports = imported(folder, tmp_path / "all")
    assert (code, len(reports)) == (0, 2)
    code, reports = imported(folder / f"samples_other_{DATE}.jsonl", tmp_path / "one")
    assert [report.log.rpartition(" ")[2] for report in reports] == ["(other)"]


def test_metric_that_contradicts_the_samples_is_reported(tmp_path: Path) -> None:
    (reason,) = reasons(write(tmp_path / "run", header(0.75), [row(0), row(1, 0.0)]), tmp_path / "out")
    assert "'exact_match' is 0.75, its 2 documents result in 0.5" in reason


def test_missing_documents_are_reported(tmp_path: Path) -> None:
    content = header(1.0, **{"n-samples": {"demo": {"original": 5, "effective": 3}}})
    (reason,) = reasons(write(tmp_path / "run", content, [row(0), row(1)]), tmp_path / "out")
    assert reason == "the results cover 3 documents, but the samples file has 2"


def test_matching_digest_overrides_the_document_count(tmp_path: Path) -> None:
    """With `--samples`, the harness writes the total number of documents instead of the evaluated number."""
    folder = unpacked(RELEASES[-1], tmp_path / "run") / "first"
    (path,) = folder.rglob("results_*.json")
    content = json.loads(path.read_text())
    content["n-samples"]["tiny_choice"]["effective"] = 4
    path.write_text(json.dumps(content))
    code, (report,) = imported(folder, tmp_path / "out")
    assert (code, report.samples) == (0, 2)
    del content["task_hashes"]
    path.write_text(json.dumps(content))
    code, (report,) = imported(folder, tmp_path / "out")
    assert code == 3


def test_samples_of_another_run_are_detected_by_checksum(tmp_path: Path) -> None:
    release = RELEASES[-1]
    folder = unpacked(release, tmp_path / "run") / "all"
    (path,) = folder.rglob("samples_tiny_once_*.jsonl")
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[1], lines[0], *lines[2:]]) + "\n")
    code, reports = imported(folder, tmp_path / "out")
    assert code == 3
    damaged = [report for report in reports if report.damage]
    assert [str(report.damage[0]).rpartition(": ")[2] for report in damaged] == [
        "their digest differs (task_hashes)"
    ]


def test_missing_results_or_samples_file_is_reported(tmp_path: Path) -> None:
    (reason,) = reasons(write(tmp_path / "a", None, [row(0)]), tmp_path / "out")
    assert reason == "no results file: metrics and configuration are unknown"
    (reason,) = reasons(write(tmp_path / "b", header(), None), tmp_path / "out")
    assert reason == "no samples: the harness only writes them with --log_samples"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            b'{"results": {"demo": {}}, "configs": {}, "versions": {}, "results": {}}',
            "'results' occurs twice",
        ),
        (
            b'{"results": {}, "configs": {}, "versions": {"a": ' + b"[" * 400 + b"]" * 400 + b"}}",
            "levels deep",
        ),
        (b'{"results": {}, "configs": {}, "versions": ' + b"[" * 100_000, "not JSON"),
        (b'{"results": {"demo": 5}, "configs": {}, "versions": {}', "not JSON"),
        (
            b'{"results": [], "configs": {}, "versions": {}}',
            "'results' is missing or is not an object",
        ),
    ],
)
def test_samples_are_imported_if_the_results_file_is_unreadable(
    data: bytes, expected: str, tmp_path: Path
) -> None:
    folder = write(tmp_path / "run", data, [row(0)])
    code, (report,) = imported(folder, tmp_path / "out")
    assert code == 3
    assert expected in report.damage[0].reason
    assert report.samples == 1
    assert load(report).evidence is not None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"doc_id": 1, "doc": {"q": 1}, "resps": [["a"', "no JSON"),
        (json.dumps(row(1)).encode()[:-1] + b', "exact_match": 0.0}', "'exact_match' occurs twice"),
        (
            json.dumps({**row(1), "doc": {"deep": None}}).replace("null", "[" * 300 + "]" * 300).encode(),
            "deep",
        ),
        (b"[" * 200_000, "no JSON"),
        (b'{"answer": 1}', "'doc_id' is missing"),
        (b"\xff\xfe" + '{"doc_id": 1}'.encode("utf-16-le"), "no JSON"),
        (json.dumps(row(1, resps="yes")).encode(), "'resps' is str"),
        (json.dumps(row(1, arguments={"gen_args_0": {"x": 1}})).encode(), "expected arg_0"),
        (json.dumps(row(1, arguments=7)).encode(), "'arguments' is int"),
        (json.dumps(row(1, resps=[["a"], ["b"]])).encode(), "1 requests have 2 lists of answers"),
        (b"x" * 3_000, "no JSON"),
    ],
)
def test_invalid_line_is_skipped_and_reported(line: bytes, expected: str, tmp_path: Path) -> None:
    data = json.dumps(row(0)).encode() + b"\n" + line + b"\n" + json.dumps(row(2)).encode() + b"\n"
    (reason,) = reasons(write(tmp_path / "run", header(), data), tmp_path / "out")
    assert expected in reason


def test_line_over_the_size_limit_is_rejected(tmp_path: Path) -> None:
    data = json.dumps(row(0, resps=[["y" * 5_000]])).encode()
    bounds = DEFAULT_BOUNDS.changed({"string_bytes": 1_000})
    (reason,) = reasons(write(tmp_path / "run", header(), data), tmp_path / "out", bounds=bounds)
    assert reason.startswith("line 1 has more than 1,000 bytes (raise the bound 'string_bytes'")
    bounds = DEFAULT_BOUNDS.changed({"member_bytes": 2_000})
    (reason,) = reasons(tmp_path / "run", tmp_path / "out", bounds=bounds)
    assert "the limit is 2,000 (raise the bound 'member_bytes'" in reason


def test_non_finite_metrics_are_reported_as_errors(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", header(float("nan")), [row(0, float("nan")), row(1)])
    code, (report,) = imported(folder, tmp_path / "out")
    log = load(report)
    assert (code, log.status) == (0, "success")
    assert log.evidence is not None
    assert not log.evidence.metrics
    (error,) = log.evidence.errors or []
    assert error.message == "metric 'exact_match' is NaN, not a finite number"
    (score,) = (log.evidence.samples or [])[0].trials[0].scores or []
    assert score.values == {"exact_match": None}
    assert score.metadata == {"unscored": True, "values": {"exact_match": "NaN"}}


def test_document_without_a_score_is_failed_instead_of_zero(tmp_path: Path) -> None:
    second = row(1, metrics=[])
    del second["exact_match"]
    code, (report,) = imported(write(tmp_path / "run", header(), [row(0), second]), tmp_path / "out")
    assert (code, report.failed) == (0, 1)
    evidence = load(report).evidence
    assert evidence is not None
    assert [len(sample.trials[0].errors) for sample in evidence.samples or []] == [0, 1]


@pytest.mark.parametrize("scores", [{"acc": None, "f1": 0.5}, {"f1": 0.5, "acc": float("nan")}, {"f1": 0.5}])
def test_metric_without_value_is_unscored_and_the_other_scores_are_kept(
    scores: dict[str, Any], tmp_path: Path
) -> None:
    names = ["acc", "f1"]
    lines = [row(0, metrics=names, acc=1.0, f1=0.5), row(1, metrics=names, **scores)]
    _, (report,) = imported(write(tmp_path / "run", header(), lines), tmp_path / "out")
    evidence = load(report).evidence
    assert evidence is not None
    (trial,) = (evidence.samples or [])[1].trials
    found = {score.scorer_key: score for score in trial.scores or []}
    assert (trial.errors, [score.values for score in found.values()]) == ([], [{"acc": None}, {"f1": 0.5}])
    assert (found["acc"].metadata or {})["unscored"] is True


def test_documents_with_duplicate_ids_are_numbered(tmp_path: Path) -> None:
    code, (report,) = imported(write(tmp_path / "run", header(), [row(0), row(0)]), tmp_path / "out")
    assert code == 0
    assert report.loss.changed == {"document with a duplicate id: numbered": 1}
    assert [sample.sample_id for sample in load(report).evidence.samples] == ["0", "0-2"]  # type: ignore[union-attr]


def test_path_traversal_in_names_stays_in_the_output_folder(tmp_path: Path) -> None:
    name = "../../../elsewhere"
    content = header()
    for table in ("results", "configs"):
        content[table] = {name: content[table]["demo"]}
    content["model_name"] = "../../model"
    code, (report,) = imported(write(tmp_path / "run", content, None), tmp_path / "deep" / "out")
    assert code == 3
    assert report.output is not None
    assert report.output.parent == tmp_path / "deep" / "out"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "run"]


def test_function_in_a_task_is_imported_as_text(tmp_path: Path) -> None:
    content = header()
    code = f"!function os.system('touch {tmp_path / 'ran'}')"
    content["configs"]["demo"] |= {"process_results": code, "doc_to_text": "{{ self.__class__ }}" + code}
    done, (report,) = imported(write(tmp_path / "run", content, [row(0)]), tmp_path / "out")
    assert done == 0
    assert not (tmp_path / "ran").exists()
    assert (load(report).specification.config or {})["lm_eval"]["task"]["process_results"] == code


def test_secrets_are_redacted_in_imported_runs(tmp_path: Path) -> None:
    key = "sk-" + "aB3" * 10
    content = header()
    content["config"]["model_args"] = {"model": "m", "api_key": "my-own-password-77"}
    folder = write(tmp_path / "run", content, [row(0, resps=[[f"the key is {key}"]], filtered_resps=["x"])])
    _, (report,) = imported(folder, tmp_path / "out")
    assert report.output is not None
    text = report.output.read_text()
    assert key not in text
    assert "my-own-password-77" not in text
    assert report.redacted == {"openai or anthropic key": 3, "value of api_key": 1}
    _, (report,) = imported(folder, tmp_path / "all", redact=False)
    assert report.output is not None
    assert key in report.output.read_text()


def test_chat_messages_are_imported_with_their_roles(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "be short"}, {"role": "user", "content": "hi", "type": "text"}]
    arguments = {"gen_args_0": {"arg_0": [json.dumps(chat)], "arg_1": {}}}
    _, (report,) = imported(
        write(tmp_path / "run", header(), [row(0, arguments=arguments)]), tmp_path / "out"
    )
    trial = load(report).evidence.samples[0].trials[0]  # type: ignore[union-attr,index]
    assert trial.solver is not None
    roles = [item.role for item in trial.solver.output.trace.items]  # type: ignore[union-attr]
    assert [str(getattr(role, "value", role)) for role in roles] == ["system", "user", "assistant"]


def test_parquet_output_and_recomputation_are_rejected(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", header(), [row(0)])
    with pytest.raises(UsageError, match="found --format parquet"):
        imported(folder, tmp_path / "out", output_format="parquet")
    code, (report,) = imported(folder, tmp_path / "out", recompute=lambda plan: None)
    assert code == 3
    assert "not written by aigo-bridge" in report.reason


def test_folder_with_logs_of_several_engines_is_recognized(tmp_path: Path) -> None:
    write(tmp_path / "run", header(), [row(0)])
    (tmp_path / "run" / "results_2026-05-05T01-01-01.json").write_text(
        '{"config_general": {}, "results": {}}'
    )
    engines = logs_at(str(tmp_path / "run"))
    assert {name: len(files) for name, files in engines.items()} == {"lighteval": 1, "lm-eval": 2}
    assert "lm-evaluation-harness" in load_logs("lm-eval").expected


def test_import_command_imports_an_lm_eval_folder(aigo: Run, tmp_path: Path) -> None:
    folder = write(tmp_path / "run", header(0.5), [row(0), row(1, 0.0)])
    done = aigo("import", folder, "--out", tmp_path / "out", "--provenance")
    assert done.code == 0, done.err
    assert "2 samples in 2 trials" in done.out
    assert (tmp_path / "out" / f"demo_{DATE}.loss.json").exists()
    assert (tmp_path / "out" / f"demo_{DATE}.provenance.json").exists()
    done = aigo("import", folder, "--engine", "inspect", "--out", tmp_path / "out")
    assert done.code == 2


@pytest.mark.parametrize("name", ["samples_tiny_choice", "results"])
def test_files_with_corrupted_bytes_are_handled(name: str, tmp_path: Path) -> None:
    folder = unpacked(RELEASES[-1], tmp_path / "run") / "first"
    (path,) = (path for path in folder.rglob("*.json*") if path.name.startswith(name))
    whole = path.read_bytes()
    rng = random.Random(name)
    codes = set()
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 2, 20))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(bytes(data[: rng.randrange(len(data))]) if rng.random() < 0.2 else bytes(data))
        try:
            code, reports = imported(folder, tmp_path / "out")
        except UsageError:
            continue
        codes.add(code)
        for report in reports:
            if report.output is not None:
                assert validate_log(report.output) == []
                assert (load(report).status == "success") == (not report.damage)
    assert 3 in codes


def test_files_of_releases_before_0_4_3_are_imported(tmp_path: Path) -> None:
    """The samples file is one JSON list without a date, and filters have no names."""
    content = header(0.5)
    content["configs"]["demo"]["filter_list"] = [{"name": "strict"}, {"name": "loose"}]
    content["results"]["demo"] = {"exact_match,strict": 0.5, "exact_match,loose": 1.0}
    del content["model_name"]
    old = []
    for strict, number in ((1.0, 0), (0.0, 1), (1.0, 0), (1.0, 1)):
        line = row(number, strict, arguments=[[f"question {number}", {"until": []}]])
        old.append({key: value for key, value in line.items() if key not in ("filter", "metrics")})
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "results.json").write_text(json.dumps(content))
    (folder / "pretrained=org__m_demo.jsonl").write_text(json.dumps(old, indent=2))
    code, (report,) = imported(folder, tmp_path / "out")
    assert (code, report.samples) == (0, 2)
    log = load(report)
    assert log.evidence is not None
    assert log.specification.evaluated_entity is not None
    assert log.specification.evaluated_entity.display_name == "org/m"
    assert [
        {score.scorer_name: score.values[str(score.scorer_name)] for score in sample.trials[0].scores or []}
        for sample in log.evidence.samples or []
    ] == [
        {"exact_match,strict": 1.0, "exact_match,loose": 1.0},
        {"exact_match,strict": 0.0, "exact_match,loose": 1.0},
    ]
    (folder / "pretrained=org__m_demo.jsonl").write_text(json.dumps(old, indent=2)[:-40])
    code, (report,) = imported(folder, tmp_path / "cut")
    assert code == 3
    assert "the samples are not JSON" in report.damage[0].reason


OLD: dict[str, Any] = {
    "results": {
        "arc_easy": {"acc": 0.7, "acc_stderr": 0.01, "acc_norm": 0.65, "acc_norm_stderr": 0.02},
        "wikitext": {"word_perplexity": 12.5, "byte_perplexity": 1.5},
    },
    "versions": {"arc_easy": 0, "wikitext": 1},
    "config": {"model": "gpt2", "model_args": "pretrained=org/m", "num_fewshot": 5, "limit": None},
}


@pytest.mark.parametrize("name", ["results.json", "m-arc.json"])
@pytest.mark.parametrize("order", [("results", "versions", "config"), ("config", "results", "versions")])
def test_results_of_releases_before_0_4_are_imported(
    name: str, order: tuple[str, ...], aigo: Run, tmp_path: Path
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / name).write_text(json.dumps({part: OLD[part] for part in order}, indent=2))
    done = aigo("import", "logs", "--out", "out", "--json")
    assert done.code == 0, done.out + done.err
    assert [report["samples"] for report in done.json] == [0, 0]
    arc, wikitext = (json.loads((tmp_path / report["output"]).read_text()) for report in done.json)
    assert validate_log(tmp_path / done.json[0]["output"]) == []
    assert (arc["status"], arc["errors"]) == ("success", [])
    assert [metric["values"] for metric in arc["evidence"]["metrics"]] == [
        {"acc": 0.7, "acc_stderr": 0.01},
        {"acc_norm": 0.65, "acc_norm_stderr": 0.02},
    ]
    assert arc["specification"]["config"]["num_fewshots"] == 5
    assert arc["specification"]["evaluated_entity"]["display_name"] == "org/m"
    assert "model_usage" not in arc["execution"]
    assert [next(iter(metric["values"])) for metric in wikitext["evidence"]["metrics"]] == [
        "word_perplexity",
        "byte_perplexity",
    ]
    text = aigo("import", "logs", "--out", "again").out
    assert "releases of the harness before 0.4 do not write samples" in text


def test_large_results_file_before_0_4_is_recognized(tmp_path: Path) -> None:
    results = {f"hendrycksTest-{number}": {"acc": 0.5, "acc_stderr": 0.1} for number in range(3000)}
    (tmp_path / "big.json").write_text(json.dumps({**OLD, "results": results}))
    assert set(logs_at(str(tmp_path / "big.json"))) == {"lm-eval"}
