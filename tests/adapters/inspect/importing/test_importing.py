"""Result files equal the typed import for every number of processes, format and context option."""

import gzip
import json
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard
from tests.support.inspect_logs import scripted as scripted_logs

from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.errors import UsageError
from aigo_bridge.results.reading import read_log
from aigo_inspect.importing.api import import_log
from aigo_inspect.importing.importing import ImportOptions, import_file, import_logs
from aigo_inspect.logs.reader import open_log


def written(path: Path, tmp_path: Path, **settings: Any) -> dict[str, Any]:
    result = import_file(path, tmp_path / "result", ImportOptions(**settings))
    assert result.exit_code == 0, result.reason
    assert result.output is not None
    data = result.output.read_bytes()
    if result.output.suffix == ".gz":
        data = gzip.decompress(data)
    elif result.output.suffix == ".zst":
        data = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()
    found: dict[str, Any] = orjson.loads(data)
    return found


@pytest.mark.parametrize("name", [*scripted_logs.TASKS, "edited", "agents.json"])
def test_a_written_file_equals_the_typed_import(logs: dict[str, Path], tmp_path: Path, name: str) -> None:
    found = TaskResultLog.model_validate(written(logs[name], tmp_path))
    assert found.model_dump() == import_log(logs[name]).model_dump()


@pytest.mark.parametrize("output_format", ["json.gz", "json.zst"])
def test_compressed_files_have_the_same_content(
    logs: dict[str, Path], tmp_path: Path, output_format: str
) -> None:
    assert written(logs["agents"], tmp_path, output_format=output_format) == written(logs["agents"], tmp_path)


def contexts(sample: dict[str, Any]) -> list[list[Any]]:
    events = sample["trials"][0]["solver"]["output"]["trace"]["events"]
    return [event["input_context"] for event in events if event["type"] == "model_call_event"]


@pytest.mark.parametrize("output_format", ["json", "json.gz", "json.zst"])
@pytest.mark.parametrize("name", ["agents", "trim", "summary", "noisy"])
def test_shortened_contexts_are_restored_when_read(
    logs: dict[str, Path], tmp_path: Path, name: str, output_format: str
) -> None:
    full = written(logs[name], tmp_path)["evidence"]["samples"]
    settings = ImportOptions(context="delta", output_format=output_format)  # type: ignore[arg-type]
    result = import_file(logs[name], tmp_path / "delta", settings)
    assert result.output is not None
    reader = read_log(result.output)
    assert list(reader.raw_samples()) == full
    assert reader.load().model_dump() == import_log(logs[name]).model_dump()


def test_shortened_contexts_reduce_the_file_size(logs: dict[str, Path], tmp_path: Path) -> None:
    full = written(logs["agents"], tmp_path)["evidence"]["samples"]
    delta = written(logs["agents"], tmp_path, context="delta")["evidence"]["samples"]
    assert sum(map(len, contexts(delta[0]))) < sum(map(len, contexts(full[0])))
    assert delta != full


def test_contexts_can_be_left_out(logs: dict[str, Path], tmp_path: Path) -> None:
    none = written(logs["agents"], tmp_path, context="none")["evidence"]["samples"]
    assert all(context == [] for context in contexts(none[0]))
    events = none[0]["trials"][0]["solver"]["output"]["trace"]["events"]
    calls = [event for event in events if event["type"] == "model_call_event"]
    assert [call["metadata"]["inspect"]["context"]["left_out"] for call in calls][:2] == [2, 9]


def test_dropped_data_is_counted_and_can_be_forbidden(logs: dict[str, Path], tmp_path: Path) -> None:
    result = import_file(logs["noisy"], tmp_path / "r", ImportOptions(max_loss=0))
    assert result.exit_code == 1
    assert "were dropped, 0 are allowed" in result.reason
    report = json.loads((tmp_path / "r.loss.json").read_text())
    assert report["dropped"]["event store: left out without --events all"] >= 1
    assert report["kept"]["sample"] == 1


def test_minimal_imports_keep_only_the_conversation(logs: dict[str, Path], tmp_path: Path) -> None:
    found = written(logs["noisy"], tmp_path, events="minimal")
    events = found["evidence"]["samples"][0]["trials"][0]["solver"]["output"]["trace"]["events"]
    names = {event["name"] for event in events if event["type"] == "custom"}
    assert names <= {"score", "sample_limit"}


def test_logs_in_folders_and_patterns_get_distinct_names(logs: dict[str, Path], tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.eval").write_bytes(logs["plain"].read_bytes())
    (tmp_path / "a" / "notes.json").write_text("{}")
    results = import_logs([tmp_path / "a", str(tmp_path / "*" / "*.eval")], tmp_path / "out", jobs=1)
    assert [result.output and result.output.name for result in results] == [
        "same.tasklog.json",
        "same-2.tasklog.json",
    ]
    with pytest.raises(UsageError, match="no logs at"):
        import_logs([tmp_path / "nothing*"], tmp_path / "out")
    with pytest.raises(UsageError, match="expected at least 1"):
        import_logs([logs["plain"]], tmp_path / "out", jobs=0)


def test_a_log_at_a_url_is_read(logs: dict[str, Path], tmp_path: Path) -> None:
    import fsspec  # type: ignore[import-untyped]  # has no types

    with fsspec.open("memory://logs/x.eval", "wb") as file:
        file.write(logs["plain"].read_bytes())
    (result,) = import_logs(["memory://logs/x.eval"], tmp_path, jobs=1)
    assert (result.samples, result.exit_code) == (1, 0)
    assert import_log(logs["plain"].as_uri()).status == "success"


def test_an_unreadable_log_gives_a_result_without_an_exception(tmp_path: Path) -> None:
    (tmp_path / "x.eval").write_bytes(b"nonsense")
    (result,) = import_logs([tmp_path / "x.eval"], tmp_path / "out")
    assert (result.exit_code, result.output) == (3, None)
    assert "is not an .eval log" in result.reason


def test_secrets_do_not_reach_the_files(
    logs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import zipfile

    monkeypatch.setenv("SOME_API_KEY", "value-of-the-key-123")
    secrets = [
        "sk-abcdefghijklmnopqrstuvwxyz012345",
        "AKIAABCDEFGHIJKLMNOP",
        "value-of-the-key-123",
        "ticket-4711",
    ]
    with open_log(logs["plain"]) as log:
        assert log._archive is not None
        parts = {name: log._archive.read(name) for name in log.members()}
    path = tmp_path / "leaky.eval"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data.replace(b"say hi", " ".join(secrets).encode()))
    result = import_file(path, tmp_path / "r", ImportOptions(patterns=("ticket-[0-9]+",)))
    assert result.output is not None
    text = result.output.read_text() + (tmp_path / "r.loss.json").read_text()
    assert not [secret for secret in secrets if secret in text]
    assert set(result.redacted) == {
        *("openai or anthropic key", "aws access key id", "value of SOME_API_KEY", "pattern ticket-[0-9]+")
    }
    plain = import_file(path, tmp_path / "p", ImportOptions(redact=False))
    assert plain.output is not None
    assert secrets[0] in plain.output.read_text()
    with pytest.raises(UsageError, match="not a regular expression"):
        ImportOptions(patterns=("(",)).redaction()


def test_a_written_sample_leaves_no_reference_cycles(logs: dict[str, Path], own_heap: None) -> None:
    """The garbage collector is off during an import, so a cycle in each sample would make memory grow with
    the log."""
    import gc

    from aigo_inspect.importing.writing import trial_pieces
    from aigo_inspect.mapping.samples import read_trials

    for name in ("agents", "summarised", "parallel tools"):
        with open_log(logs[name]) as log:
            for context in ("full", "delta"):
                gc.collect()
                gc.disable()
                try:
                    for trial in read_trials(log):
                        assert sum(len(piece) for piece in trial_pieces(trial, context)) > 1000
                    del trial
                    assert gc.collect() < 10
                finally:
                    gc.enable()
