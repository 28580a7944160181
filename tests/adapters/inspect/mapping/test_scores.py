"""Scores and message parts of an unexpected shape are counted without a crash, and the output is readable."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from tests.support.inspect_logs.malformed import zipped

from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.results.reading import read_log
from aigo_inspect.importing.importing import ImportOptions, import_file
from aigo_inspect.mapping.parts import answer_part, input_part, tool_result
from aigo_inspect.mapping.scores import aggregated_scores

ODD: tuple[Any, ...] = (5, True, 1.5, ["x"], {"a": 1})


def reduced(value: Any, **more: Any) -> dict[str, Any]:
    return {"scorer": "s", "reducer": "mean", "samples": [{"sample_id": 1, "value": value}], **more}


@pytest.mark.parametrize("reducer", [["mean"], {"name": "mean"}, 5, None, ""])
def test_a_reducer_may_have_any_shape(reducer: Any) -> None:
    loss = LossReport()
    found = aggregated_scores([reduced(1, reducer=reducer), reduced(2)], loss)
    first, second = found["1"]
    assert list(first["values"].values()) == [1]
    assert second["values"] == {"s_mean": 2}
    assert first.get("metadata", {}).get("reducer") == (reducer or None)
    assert loss.dropped == {}


@pytest.mark.parametrize("samples", [5, "abc", True, {"sample_id": 1}])
def test_reductions_of_an_unexpected_shape_are_dropped_and_counted(samples: Any) -> None:
    loss = LossReport()
    entries: list[Any] = [reduced(1, samples=samples), "x", reduced(3)]
    assert aggregated_scores(entries, loss)["1"][0]["values"] == {"s": 3}
    assert loss.dropped == {"scores reduced over epochs, of an unexpected shape": 2}


def test_a_reduced_score_without_a_sample_id_is_dropped_and_counted() -> None:
    loss = LossReport()
    entry = reduced(1, samples=[{"value": 1}, None, 7, {"sample_id": 0, "value": 2}])
    assert list(aggregated_scores([entry], loss)) == ["0"]
    assert loss.dropped == {"reduced score of an unexpected shape, or without a sample": 3}


@pytest.mark.parametrize("name", ODD)
def test_a_non_text_file_name_is_written_as_json(name: Any) -> None:
    loss = LossReport()
    part = {"type": "document", "document": "data:text/plain;base64,eA==", "filename": name}
    assert input_part(part, loss)["filename"] == json.dumps(name, separators=(",", ":"))
    assert sum(loss.changed.values()) == 1
    in_result = tool_result([part], LossReport())[0]
    assert isinstance(in_result, dict)
    assert isinstance(in_result["filename"], str)


def test_a_text_file_name_is_unchanged() -> None:
    loss = LossReport()
    assert input_part({"type": "document", "document": "d", "filename": "a.pdf"}, loss)["filename"] == "a.pdf"
    assert "filename" not in input_part({"type": "document", "document": "d", "filename": ""}, loss)
    assert not loss.changed


@pytest.mark.parametrize("kind", [[], ["text"], {}, 5, None])
def test_a_message_part_without_a_type_is_kept_as_json(kind: Any) -> None:
    part = {"type": kind, "text": "x"}
    assert json.loads(input_part(part, LossReport())["text"]) == part
    answer = answer_part(part, LossReport(), None)
    assert json.loads(unquote(answer["file_url"].partition(",")[2])) == part


@pytest.mark.parametrize("citations", ODD)
def test_invalid_citations_do_not_lose_the_message(citations: Any) -> None:
    found = answer_part({"type": "text", "text": "x", "citations": citations}, LossReport(), None)
    assert found["text"] == "x"
    assert len(found["annotations"]) == 1


@pytest.mark.parametrize("output_format", ["json", "parquet"])
def test_a_log_with_many_unusual_values_is_imported_and_read_back(output_format: Any, tmp_path: Path) -> None:
    header = {
        "status": "success",
        "eval": {"task": "t", "dataset": {}, "config": {"epochs": 2}},
        "results": {"scores": []},
    }
    content = [{"type": "document", "document": "d", "filename": odd} for odd in ODD]
    messages = [{"role": "user", "content": content}, {"role": "assistant", "content": "x"}]
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        archive.writestr(
            "reductions.json", json.dumps([reduced(1, reducer=odd) for odd in ODD] + [reduced(1, samples=5)])
        )
        for epoch in (1, 2):
            sample = {
                "id": 1,
                "epoch": epoch,
                "input": "i",
                "target": "t",
                "messages": messages,
                "events": [],
            }
            archive.writestr(f"samples/1_epoch_{epoch}.json", json.dumps(sample))

    result = import_file(tmp_path / "log.eval", tmp_path / "out", ImportOptions(output_format=output_format))

    assert (result.exit_code, result.trials) == (3, 2)
    assert [item.reason for item in result.damage] == [
        f"entry {len(ODD)}: expected a list of scores, found int"
    ]
    assert result.loss.kept["reduced score"] == len(ODD)
    assert result.loss.dropped["scores reduced over epochs, of an unexpected shape"] == 1
    assert result.output is not None
    if output_format == "json":
        evidence = read_log(result.output).load().evidence
        assert evidence is not None
        ((sample_evidence,),) = [evidence.samples or []]
        assert len(sample_evidence.scores or []) == len(ODD)
    else:
        written = json.loads((result.output / "result.json").read_bytes())
        assert len(written["reduced_scores"]["1"]) == len(ODD)


@pytest.mark.parametrize("output_format", ["json", "parquet"])
def test_only_written_reduced_scores_count_as_kept(output_format: Any, tmp_path: Path) -> None:
    """Reduced scores of an unreadable sample are in no file, so they do not count as kept."""
    whole = {"id": 1, "epoch": 1, "input": "i", "target": "t", "messages": [{"role": "user", "content": "q"}]}
    entry = reduced(1, samples=[{"sample_id": 1, "value": 1}, {"sample_id": 2, "value": 1}])
    head = {"version": 2, "status": "success", "eval": {"task": "t", "config": {"epochs": 2}}}
    members = {"header.json": head, "reductions.json": [entry], "samples/1_epoch_1.json": whole}
    parts = {name: json.dumps(value).encode() for name, value in members.items()}
    (tmp_path / "log.eval").write_bytes(zipped({**parts, "samples/2_epoch_1.json": b"{"}))
    result = import_file(tmp_path / "log.eval", tmp_path / "out", ImportOptions(output_format=output_format))
    assert result.exit_code == 3
    assert result.loss.kept["reduced score"] == (1 if output_format == "json" else 2)
