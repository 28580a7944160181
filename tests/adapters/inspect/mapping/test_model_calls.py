"""An unknown token count stays unknown. It is never 0 and never part of a sum."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # has no types
import pytest
from tests.adapters.inspect.mapping.test_events import HEADER, Json, imported, model_of, sample_of
from tests.adapters.inspect.mapping.test_records import lenient, strict, texts

from aigo_inspect.exporting.log import export_log
from aigo_inspect.importing.api import import_log
from aigo_inspect.importing.importing import ImportOptions, import_file
from aigo_inspect.logs.reader import open_log
from aigo_inspect.mapping.model_calls import ODD_COUNT, model_usage

USAGE = {"input_tokens": 5, "output_tokens": 3, "total_tokens": 8}
ODD: tuple[Any, ...] = ("many", [5], True, "12", 2.5, -5, -1.0, {"n": 5}, 1e300)


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize("name", ["input_tokens", "input_tokens_cache_read", "input_tokens_cache_write"])
def test_invalid_prompt_counts_are_omitted(name: str, value: Any) -> None:
    assert model_usage({**USAGE, name: value}) == {"num_completion_tokens": 3}


def test_invalid_token_counts_are_unknown() -> None:
    assert model_usage({**USAGE, "output_tokens": "x"}) == {"num_prompt_tokens": 5}
    assert model_usage({"input_tokens": "x", "output_tokens": None}) is None
    assert model_usage({}) is model_usage(None) is model_usage(5) is None
    assert model_usage({"input_tokens": 0, "output_tokens": 2.0}) == {
        "num_prompt_tokens": 0,
        "num_completion_tokens": 2,
    }
    cached = {"input_tokens_cache_read": 3, "input_tokens_cache_write": None}
    assert model_usage({**USAGE, **cached}) == {"num_prompt_tokens": 8, "num_completion_tokens": 3}


def with_usage(value: Any, *, epoch: int = 1) -> Json:
    usage = {**USAGE, "input_tokens": value}
    sample = sample_of(epoch=epoch, model_usage={"m": usage})
    model_of(sample)["output"]["usage"] = usage
    sample["output"] = model_of(sample)["output"]
    return sample


@pytest.mark.parametrize("value", ODD)
def test_both_parsers_omit_and_report_an_invalid_count(value: Any, tmp_path: Path) -> None:
    result = imported(tmp_path, with_usage(value))
    assert result.loss.changed[ODD_COUNT] == 2  # of the call, and of the sample
    assert result.output is not None
    log = json.loads(result.output.read_bytes())
    output = log["evidence"]["samples"][0]["trials"][0]["solver"]["output"]
    call = next(event for event in output["trace"]["events"] if event["type"] == "model_call_event")
    assert call["usage"] == {"num_completion_tokens": 3}
    assert call["metadata"]["inspect"]["usage"]["input_tokens"] == value
    assert [raw["usage"] for raw in output["raw_outputs"]] == [{"num_completion_tokens": 3}]
    assert "total_tokens" not in output["trace"]["metadata"]
    path = tmp_path / "log.eval"
    with open_log(path) as reader:
        ((ref, data),) = texts(path)
        assert strict(reader, ref, data) == lenient(reader, ref, data)


@pytest.mark.parametrize("negative", ["tokens_before", "tokens_after"])
def test_invalid_compaction_sizes_are_counted(negative: str, tmp_path: Path) -> None:
    sample = sample_of()
    compaction: Json = {"event": "compaction", "uuid": "e9", "span_id": "s", "type": "trim"}
    compaction |= {"timestamp": sample["events"][0]["timestamp"], "working_start": 0.5}
    sample["events"].insert(2, compaction | {"tokens_before": 9, "tokens_after": 4, negative: -1})
    result = imported(tmp_path, sample)
    assert result.loss.changed[ODD_COUNT] == 1
    assert result.output is not None
    (found,) = [
        event
        for event in json.loads(result.output.read_bytes())["evidence"]["samples"][0]["trials"][0]["solver"]["output"]["trace"]["events"]
        if event["type"] == "compaction"
    ]  # fmt: skip
    assert negative not in found
    assert found["metadata"]["inspect"][negative] == -1


def usage_of_log(path: Path) -> tuple[Any, Any]:
    usage = import_log(path).execution.model_usage
    assert usage is not None
    return usage.num_prompt_tokens, usage.num_completion_tokens


def log_of(tmp_path: Path, change: Callable[[Json], object], *samples: Json) -> Path:
    header = json.loads(json.dumps(HEADER))
    header["eval"]["model"] = "m"
    change(header)
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        for sample in samples:
            archive.writestr(f"samples/1_epoch_{sample['epoch']}.json", json.dumps(sample))
    return path


def test_log_totals_are_unknown_if_a_part_is_unknown(tmp_path: Path) -> None:
    nothing = log_of(tmp_path, lambda header: None, with_usage(5), with_usage("many", epoch=2))
    assert usage_of_log(nothing) == (None, 6)
    assert usage_of_log(log_of(tmp_path, lambda header: None, with_usage(5), with_usage(6, epoch=2))) == (
        11,
        6,
    )

    def told(header: Json) -> None:
        header["stats"] = {"model_usage": {"m": {**USAGE, "output_tokens": "many"}}}

    path = log_of(tmp_path, told, with_usage(5))
    assert usage_of_log(path) == (5, None)
    assert import_file(path, tmp_path / "out").loss.changed[ODD_COUNT] == 1


def test_tables_have_null_for_unknown_token_sums(tmp_path: Path) -> None:
    path = log_of(tmp_path, lambda header: None, with_usage(5), with_usage("many", epoch=2))
    result = import_file(path, tmp_path / "tables", ImportOptions(output_format="parquet"))
    assert result.output is not None
    samples = pq.read_table(result.output / "samples.parquet").to_pylist()
    assert [(row["prompt_tokens"], row["completion_tokens"]) for row in samples] == [(5, 3), (None, 3)]


def test_an_exported_log_invents_no_token_count(tmp_path: Path) -> None:
    result = imported(tmp_path, with_usage("many"))
    assert result.output is not None
    log = export_log(result.output, tmp_path / "logs")
    with zipfile.ZipFile(log) as archive:
        sample = json.loads(archive.read("samples/1_epoch_1.json"))
    assert "usage" not in model_of(sample)["output"]
    assert import_log(log).model_dump() == import_log(tmp_path / "log.eval").model_dump()
