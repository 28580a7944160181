"""Peak memory of unusual but possible logs. Each is imported in a separate process."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from aigo_bridge.access.bounds import DEFAULT_BOUNDS, LogTooLargeError
from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.redaction.rules import redaction
from aigo_inspect.importing.api import import_log
from aigo_inspect.importing.importing import import_file
from aigo_inspect.logs.parsing import parse_json
from aigo_inspect.logs.reader import InspectLogReader, open_log
from aigo_inspect.logs.sources import BytesSource
from aigo_inspect.mapping.lenient import sample_of
from aigo_inspect.mapping.messages import items_from_message, logprobs_of
from aigo_inspect.mapping.traces import MappedSample

MB = 1_000_000
HEADER: dict[str, Any] = {
    "version": 2,
    "status": "success",
    "eval": {"run_id": "r", "task": "t", "dataset": {}, "config": {}, "model": "m"},
}
IMPORT = """
import resource, sys
from pathlib import Path
from aigo_inspect.importing.importing import import_file
result = import_file(sys.argv[1], Path(sys.argv[2]))
unit = 1 if sys.platform == "darwin" else 1024
print(result.exit_code, result.trials, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
"""


def peak(log: Path) -> tuple[int, int, int]:
    """Return the exit code, trials and peak memory in bytes of an import."""
    # A separate process, because a fork of a large process starts with the peak memory of its parent.
    command = [sys.executable, "-c", IMPORT, str(log), str(log.with_suffix(""))]
    spawn = [
        sys.executable,
        "-c",
        "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))",
        *command,
    ]
    done = subprocess.run(spawn, capture_output=True, text=True, check=True)
    code, trials, size = done.stdout.split()
    return int(code), int(trials), int(size)


@pytest.fixture(scope="module")
def least(tmp_path_factory: pytest.TempPathFactory) -> int:
    """Return the peak memory of a minimal import."""
    log = archive(tmp_path_factory.mktemp("least") / "log.eval", [sample("1")])
    code, _, size = peak(log)
    assert code == 0
    return size


def sample(sample_id: str, **parts: str) -> str:
    """Return a sample with some of its fields given as JSON."""
    fields = {"id": json.dumps(sample_id), "epoch": "1", "input": '"q"', "target": '"t"', "messages": "[]"}
    return "{" + ",".join(f'"{name}":{text}' for name, text in {**fields, **parts}.items()) + "}"


def archive(path: Path, samples: Iterable[str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as log:
        for number, text in enumerate(samples, 1):
            log.writestr(f"samples/{number}_epoch_1.json", text)
        log.writestr("header.json", json.dumps(HEADER))
    return path


def event(kind: str, number: int, **fields: Any) -> dict[str, Any]:
    time = "2026-01-01T00:00:00.000001+00:00"
    return {"uuid": f"u{number}", "timestamp": time, "working_start": 0.1, "event": kind, **fields}


def agent(turns: int, window: int) -> str:
    """Return a sample of a long-running agent whose calls contain only the last messages."""
    pool: list[dict[str, Any]] = []
    events = []
    for turn in range(turns):
        answer = {"id": f"a{turn}", "content": f"{turn} " + "think " * 20, "role": "assistant"}
        refs = [[max(0, len(pool) - window), len(pool)]]
        output = {"model": "m", "choices": [{"message": answer, "stop_reason": "stop"}]}
        given = {"tools": [], "tool_choice": "auto", "config": {}}
        pool.append({"id": f"u{turn}", "content": f"{turn} " + "asked " * 40, "role": "user"})
        refs[0][1] += 1
        events.append(event("model", turn, model="m", input=[], input_refs=refs, output=output, **given))
        pool.append(answer)
    return sample("1", events=json.dumps(events), events_data=json.dumps({"messages": pool, "calls": []}))


# Memory


def test_a_json_log_is_never_loaded_into_memory_completely(tmp_path: Path, least: int) -> None:
    one = {
        "id": 0,
        "epoch": 1,
        "input": "q",
        "target": "t",
        "messages": [],
        "metadata": {"a": "text " * 40_000},
    }
    text = json.dumps({**HEADER, "samples": [one | {"id": number} for number in range(300)]}, indent=2)
    (tmp_path / "log.json").write_text(text)
    code, trials, size = peak(tmp_path / "log.json")
    assert (code, trials) == (0, 300)
    assert len(text) > 60 * MB
    assert size - least < 50 * MB


def test_a_json_log_in_another_layout_is_never_parsed_completely(tmp_path: Path, least: int) -> None:
    texts = ",".join(f'"{number:x}"' for number in range(30_000))
    samples = ",".join(sample(str(number), metadata=f'{{"a":[{texts}]}}') for number in range(100))
    text = json.dumps(HEADER)[:-1] + f',"samples":[{samples}]}}'
    (tmp_path / "log.json").write_text(text)
    code, trials, size = peak(tmp_path / "log.json")
    assert (code, trials) == (0, 100)
    assert size - least < 1.5 * len(text) + 40 * MB


def test_many_small_messages_use_bounded_memory(tmp_path: Path, least: int) -> None:
    messages = ",".join(f'{{"role":"user","content":"{number:040}"}}' for number in range(100_000))
    code, _, size = peak(archive(tmp_path / "log.eval", [sample("1", messages=f"[{messages}]")]))
    assert code == 0
    assert size - least < 160 * MB


def test_unshared_contexts_are_never_all_in_memory(tmp_path: Path, least: int) -> None:
    text = agent(turns=4_000, window=60)
    log = archive(tmp_path / "log.eval", [text])
    code, _, size = peak(log)
    written = (tmp_path / "log.tasklog.json").stat().st_size
    assert code == 0
    assert written > 15 * len(text)
    assert size - least < 12 * len(text)


# Refused or kept unchanged


@pytest.mark.parametrize(
    "parts",
    [
        {"scores": "{" + ",".join(f'"{number:x}":{{"value":1}}' for number in range(20_000)) + "}"},
        {"messages": "[" + ",".join(['{"role":"user","content":"a"}'] * 20_000) + "]"},
        {"events": "[" + ",".join(['{"event":"info","data":1}'] * 20_000) + "]"},
        {"attachments": "{" + ",".join(f'"{number:x}":"a"' for number in range(20_000)) + "}"},
        {"events_data": '{"messages":[' + ",".join(['{"role":"user","content":"a"}'] * 20_000) + "]}"},
    ],
)
def test_an_implausibly_large_sample_is_skipped_and_reported(tmp_path: Path, parts: dict[str, str]) -> None:
    log = archive(tmp_path / "log.eval", [sample("1"), sample("2", **parts), sample("3")])
    result = import_file(log, tmp_path / "out")
    assert (result.exit_code, result.trials, len(result.damage)) == (3, 2, 1)
    assert "'smallest'" in result.damage[0].reason


def test_dense_tiny_objects_are_refused_and_dense_texts_are_accepted() -> None:
    small = b'{"a":1},' * 2_200_000
    with pytest.raises(LogTooLargeError, match="'density'"):
        DEFAULT_BOUNDS.check_document("x", b'{"a":[' + small[:-1] + b"]}")
    DEFAULT_BOUNDS.check_document("x", b'{"a":"' + small.replace(b'"', b'\\"') + b'"}')
    DEFAULT_BOUNDS.check_document(
        "x", b'{"a":["' + b'","'.join([small[:8_000].replace(b'"', b"")] * 3_000) + b'"]}'
    )
    token = b'{"token":"a","logprob":-0.1,"bytes":[97],"top_logprobs":[{"token":"a","logprob":-0.1,"bytes":[97]}]},'
    DEFAULT_BOUNDS.check_document("x", b"[" + token * 180_000 + b"0]")


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": ["a"] * 2_000},
        {"role": "assistant", "content": [{"type": "text"}] * 2_000},
        {"role": "assistant", "content": "", "tool_calls": [{}] * 2_000},
        {"role": "tool", "content": [{"a": 1}] * 2_000},
        {"role": "assistant", "content": [{"type": "text", "text": "a", "citations": [{}] * 2_000}]},
    ],
)
def test_messages_with_too_many_tiny_parts_are_kept_unchanged(message: dict[str, Any]) -> None:
    loss = LossReport()
    assert items_from_message(message, loss) == [{"type": "custom_task_input_message", "content": message}]
    assert sum(loss.changed.values()) == 1


def test_many_valid_message_parts_are_mapped() -> None:
    parts = [{"type": "text", "text": "a"}] * 2_000
    (item,) = items_from_message({"id": "m", "role": "user", "content": parts})
    assert item["content"] == [{"type": "input_text", "text": "a"}] * 2_000


# No work done twice


def map_events(natives: list[Any]) -> list[dict[str, Any]]:
    loss = LossReport()
    return MappedSample(sample_of({"events": natives}, loss), loss).events


def test_events_are_removed_from_their_list_when_mapped() -> None:
    call = event("model", 2, model="m", output={})
    natives = [event("info", 1, data=1), call]
    assert [mapped["type"] for mapped in map_events(natives)] == ["custom", "model_call_event"]
    assert natives == [None, None]


def test_a_nested_transcript_is_kept_if_its_event_is_invalid() -> None:
    nested = [event("info", 2, data="kept")]
    natives = [event("tool", 1, id="c", function="f", arguments={}, result="", events=nested, error=5)]
    (mapped,) = map_events(natives)
    assert (mapped["type"], mapped["data"]["events"][0]["data"]) == ("custom", "kept")


def test_log_probabilities_are_mapped_in_place() -> None:
    top = {"token": "b", "logprob": None, "bytes": None}
    token = {"token": "a", "logprob": -1.5, "bytes": [97], "top_logprobs": [top], "more": 1}
    loss = LossReport()
    found = logprobs_of({"logprobs": {"content": [token]}}, loss)
    assert found is not None
    assert found[0] is token
    assert found == [
        {
            "token": "a",
            "logprob": -1.5,
            "bytes": [97],
            "top_logprobs": [{"token": "b", "logprob": -9999.0, "bytes": []}],
            "inspect": {"more": 1},
        }
    ]


@pytest.mark.parametrize(
    "wrong", [{"bytes": 5}, {"bytes": ["a"]}, {"logprob": 10**400}, {"top_logprobs": [5]}]
)
def test_unmappable_log_probabilities_are_kept_unchanged(wrong: dict[str, Any]) -> None:
    tokens = [{"token": None, "logprob": None, "bytes": None}, {"token": "b", "logprob": -1.0, **wrong}]
    before = json.loads(json.dumps(tokens))
    assert logprobs_of({"logprobs": {"content": tokens}}, LossReport()) is None
    assert tokens == before


def test_log_probabilities_of_several_texts_are_kept_unchanged() -> None:
    content = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    logprobs = {"content": [{"token": "a", "logprob": -1.0, "bytes": None, "top_logprobs": None}]}
    message = {"id": "m", "role": "assistant", "content": content}
    output = {"choices": [{"message": message, "stop_reason": "stop", "logprobs": logprobs}]}
    (mapped,) = map_events([event("model", 1, model="m", output=output)])
    assert mapped["metadata"]["inspect"]["logprobs"] == {
        "content": [{"token": "a", "logprob": -1.0, "bytes": None, "top_logprobs": None}]
    }


def test_lone_surrogates_are_replaced_in_place() -> None:
    parsed = parse_json(b'{"\\ud800k":[{"a":"x\\udc00"}],"b":"\\ud83d\\ude00","c":["\\ud800"]}', "x")
    assert parsed.value == {"\\ud800k": [{"a": "x\\udc00"}], "b": "😀", "c": ["\\ud800"]}
    assert sum(parsed.changes.values()) == 3


# JSON logs in any layout

KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
LAYOUTS: dict[str, dict[str, Any]] = {
    "as Inspect writes it": {"indent": 2},
    "compact": {"separators": (",", ":")},
    "compact, sorted": {"separators": (",", ":"), "sort_keys": True},
    "four blanks": {"indent": 4, "ensure_ascii": False},
}


@pytest.mark.parametrize("not_finite", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sample_ids_are_redacted_and_secrets_counted_once(
    tmp_path: Path, layout: str, not_finite: bool
) -> None:
    samples = [
        {"id": sample_id, "epoch": epoch, "input": f"{KEY} é", "target": "t", "metadata": {"a": float("nan")}}
        for epoch in (1, 2)
        for sample_id in ("é😀", KEY, 3)
    ]
    for one in [] if not_finite else samples:
        del one["metadata"]
    text = json.dumps({**HEADER, "é": KEY, "samples": samples}, **LAYOUTS[layout])
    secrets = redaction(environment={})
    with InspectLogReader(BytesSource(text.encode()), redaction=secrets) as log:
        ids = [raw.id for raw in log.samples("sample")]
        assert log.header["é"] != KEY
        assert log.damage == []
        refs = [(ref.id_text, ref.epoch) for ref in log.written_refs()]
        assert refs[0] == ("é😀", 1)
        assert KEY not in dict(refs)
    assert ids == [name for name in ("é😀", "[redacted: openai or anthropic key]", 3) for _ in (1, 2)]
    assert sum(secrets.found.values()) == 1 + 6 + 2


def test_a_byte_order_mark_and_invalid_samples_do_not_stop_the_import(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_bytes(
        b"\xef\xbb\xbf" + json.dumps({**HEADER, "samples": [None, 5, json.loads(sample("1"))]}).encode()
    )
    with open_log(path) as log:
        assert [raw.id for raw in log.samples()] == ["1"]
        assert [item.member for item in log.damage] == ["samples[0]", "samples[1]"]


def test_a_json_sample_that_exceeds_a_bound_loses_only_itself(tmp_path: Path) -> None:
    many = sample("2", events="[" + ",".join(['{"event":"info","data":1}'] * 20_000) + "]")
    for name, text in {
        "lines.json": "{\n  "
        + json.dumps(HEADER)[1:-1]
        + ',\n  "samples": [\n    '
        + ",\n    ".join([sample("1"), many, sample("3")])
        + "\n  ]\n}",
        "compact.json": json.dumps(HEADER)[:-1]
        + ',"samples":['
        + ",".join([sample("1"), many, sample("3")])
        + "]}",
    }.items():
        (tmp_path / name).write_text(text)
        result = import_file(tmp_path / name, tmp_path / "out")
        assert (result.exit_code, result.trials, len(result.damage)) == (3, 2, 1)
        evidence = import_log(tmp_path / name).evidence
        assert evidence is not None
        assert len(evidence.samples or []) == 2


def test_parts_of_chunked_samples_are_located_once(tmp_path: Path) -> None:
    """Some ids contain slashes or start with another id.

    Searching again for each of the 3,000 ids would take a minute.
    """
    ids = ["a", "a_epoch_1", "b/c", "samples/a", *map(str, range(3_000))]
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as log:
        for sample_id in ids:
            folder = f"samples/{sample_id}_epoch_1"
            log.writestr(f"{folder}/sample.json", sample(sample_id))
            for name in ("messages", "events", "calls", "attachments"):
                log.writestr(f"{folder}/{name}/0.json", json.dumps([{"event": "info", "data": sample_id}]))
        log.writestr("header.json", json.dumps(HEADER))
    start = time.process_time()
    with open_log(tmp_path / "log.eval") as reader:
        found = {raw.id: [native["data"] for native in raw.data["events"]] for raw in reader.samples()}
        assert reader.damage == []
    assert found == {sample_id: [sample_id] for sample_id in ids}
    assert time.process_time() - start < 5
