"""Handmade results in the layout of lighteval 0.13, in which tests can change any field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # ships none
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships none

from aigo_bridge.access.bounds import DEFAULT_BOUNDS
from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.importing.log_import import ImportOptions, ImportReport
from aigo_lighteval.importing.importing import run_import

Json = dict[str, Any]
DATE = "2026-01-02T03-04-05.000678"
MODEL = "org/model"


def doc(number: int = 0, **fields: Any) -> Json:
    """Return a document as stored by lighteval."""
    return {
        "query": f"question {number}",
        "choices": ["yes", "no"],
        "gold_index": 0,
        "instruction": None,
        "images": None,
        "specific": None,
        "unconditioned_query": None,
        "original_query": None,
        "id": str(number),
        "task_name": "demo|0",
        "fewshot_samples": [],
        "sampling_methods": ["GENERATIVE"],
        "fewshot_sorting_class": None,
        "generation_size": 16,
        "stop_sequences": ["\n"],
        "use_logits": False,
        "num_samples": 1,
        "generation_grammar": None,
        **fields,
    }


def response(*texts: str, **fields: Any) -> Json:
    """Return a response as stored by lighteval."""
    return {
        "input": [{"role": "user", "content": "question"}],
        "input_tokens": [],
        "text": list(texts),
        "output_tokens": [],
        "text_post_processed": list(texts),
        "reasonings": [],
        "logprobs": [],
        "argmax_logits_eq_gold": [],
        "logits": None,
        "unconditioned_logprobs": None,
        "truncated_tokens_count": 0,
        "padded_tokens_count": 0,
        **fields,
    }


def row(number: int = 0, text: str = "yes", metric: Json | None = None, **fields: Any) -> Json:
    """Return a row of details; `fields` are those of the response."""
    return {
        "doc": doc(number),
        "metric": {"em": 1.0} if metric is None else metric,
        "model_response": response(text, **fields),
    }


def results_json(task: str = "demo|0", metrics: Json | None = None, **parts: Any) -> Json:
    """Return the content of a results file."""
    return {
        "config_general": {
            "lighteval_sha": "?",
            "num_fewshot_seeds": 1,
            "max_samples": None,
            "job_id": "0",
            "start_time": 23996.5,
            "end_time": 23999.0,
            "total_evaluation_time_secondes": "2.5",
            "model_config": {"model_name": MODEL, "system_prompt": None},
            "model_name": MODEL,
        },
        "results": {
            task: {"em": 1.0, "em_stderr": 0.1} if metrics is None else metrics,
            "all": {"em": 1.0},
        },
        "versions": {},
        "config_tasks": {
            task: {
                "name": task.split("|")[-2] if "|" in task else task,
                "hf_repo": "org/data",
                "hf_subset": "default",
                "metrics": [
                    {"metric_name": "em", "category": "GENERATIVE", "corpus_level_fn": "mean"},
                ],
                "num_fewshots": 0,
            }
        },
        "summary_tasks": {task: {"hashes": {}, "truncated": 0}},
        "summary_general": {"hashes": {}},
        **parts,
    }


def details_path(root: Path, task: str = "demo|0", date: str = DATE, model: str = MODEL) -> Path:
    """Return the path of a task's details."""
    return root / "details" / model / date / f"details_{task}_{date}.parquet"


def results_path(root: Path, date: str = DATE, model: str = MODEL) -> Path:
    """Return the path of a run's results."""
    return root / "results" / model / f"results_{date}.json"


def write_details(path: Path, rows: list[Json], **options: Any) -> Path:
    """Write rows in the format of lighteval."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows)
    pq.write_table(table, path, **options)
    return path


def write_results(path: Path, content: Json) -> Path:
    """Write a results file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def write_run(
    root: Path, rows: list[Json] | None = None, content: Json | None = None, **options: Any
) -> Path:
    """Write a run of one task."""
    write_details(details_path(root), rows if rows is not None else [row(n) for n in range(3)], **options)
    write_results(results_path(root), content or results_json())
    return root


def imported(location: Path | str, out: Path, **options: Any) -> tuple[int, list[ImportReport]]:
    """Return the exit code and reports of an import."""
    reports: list[ImportReport] = []
    options["bounds"] = DEFAULT_BOUNDS.changed(options.get("bounds", {}))
    code = run_import([str(location)], out, ImportOptions(**options), reports.append)
    return code, reports


def the_log(location: Path | str, out: Path, **options: Any) -> TaskResultLog:
    """Return the only result log of a location, validated with the AI GO types."""
    _, (report,) = imported(location, out, **options)
    assert report.output is not None, report.lines
    return load(report.output)


def load(path: Path) -> TaskResultLog:
    """Return a result log, validated with the AI GO types."""
    return TaskResultLog.model_validate_json(path.read_bytes())
