"""A `.json` log with invalid JSON or an unexpected layout gives every complete sample."""

from __future__ import annotations

import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.access.bounds import DEFAULT_BOUNDS, Bounds, LogTooLargeError
from aigo_bridge.errors import EvidenceError
from aigo_inspect.importing.api import import_log
from aigo_inspect.importing.importing import import_file
from aigo_inspect.logs.json_salvage import pieces
from aigo_inspect.logs.reader import InspectLogReader
from aigo_inspect.logs.sources import BytesSource

pytestmark = pytest.mark.usefixtures("own_heap")
LAYOUTS = pytest.mark.parametrize("indent", [None, 1, 2, 4])


def sample(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "epoch": 1,
        "input": f"{number} {{",
        "target": "t",
        "messages": [{"role": "user", "content": 'he said "{" and "id":1,"epoch":1,"input":'}],
        # An object inside a sample that looks like a sample.
        "metadata": {
            "a": {"id": 8, "epoch": 1, "input": "", "target": ""},
            "b": [{"id": 9, "epoch": 1, "input": ""}],
        },
        **more,
    }


def document(*samples: Any, **more: Any) -> dict[str, Any]:
    return {
        "version": 2,
        "status": "success",
        "eval": {"run_id": "r", "task": "mine", "dataset": {}, "config": {}},
        "plan": {"name": "plan", "steps": []},
        "results": {"total_samples": len(samples), "completed_samples": len(samples), "scores": []},
        "stats": {"started_at": "2026-01-01T00:00:00+00:00"},
        "samples": list(samples),
        **more,
    }


def text_of(value: Any, indent: int | None) -> str:
    return json.dumps(value, indent=indent, separators=(",", ":") if indent is None else None)


def read(text: str | bytes, bounds: Bounds = DEFAULT_BOUNDS) -> tuple[list[Any], InspectLogReader]:
    """Return the sample ids, and the log after reading all samples."""
    log = InspectLogReader(BytesSource(text.encode() if isinstance(text, str) else text), bounds=bounds)
    return [raw.id for raw in log.samples()], log


def without_quote(text: str, behind: str, word: str) -> str:
    """Return `text` without the quote before the first `word` after a position."""
    at = text.index(f'"{word}"', text.index(behind))
    return text[:at] + text[at + 1 :]


@LAYOUTS
def test_a_missing_quote_loses_one_sample(indent: int | None) -> None:
    text = text_of(document(*map(sample, range(5))), indent)
    second = text_of("2 {", None)
    ids, log = read(without_quote(text, second, "role"))
    assert ids == [0, 1, 3, 4]
    assert log.header["eval"]["task"] == "mine"
    assert any(item.member == "samples[2]" for item in log.damage)


@LAYOUTS
def test_an_invalid_sample_does_not_lose_other_samples(indent: int | None) -> None:
    odd = [None, sample(0), "text", [1, {"a": 1}], sample(1), {}, 5, sample(2), None]
    for text in (text_of(document(*odd), indent), text_of(document(*odd), indent)[:-1]):
        ids, log = read(text)
        assert ids == [0, 1, 2]
        damaged = {item.member for item in log.damage}
        assert {f"samples[{n}]" for n in (0, 2, 3, 5, 6, 8)} <= damaged


@LAYOUTS
@pytest.mark.parametrize(
    ("member", "inside"),
    [("eval", "task"), ("plan", "steps"), ("results", "completed_samples"), ("stats", "started_at")],
)
def test_a_corrupt_header_field_does_not_affect_others(indent: int | None, member: str, inside: str) -> None:
    text = without_quote(text_of(document(sample(0), sample(1)), indent), f'"{member}"', inside)
    ids, log = read(text)
    assert ids == [0, 1]
    assert any(item.member == member for item in log.damage)
    assert (log.header["status"], log.header["version"]) == ("success", 2)
    whole = {"plan", "results", "stats"} - {member}
    assert all(log.header.get(name) for name in whole)
    assert log.header["eval"].get("task") == (None if member == "eval" else "mine")


@LAYOUTS
def test_a_damaged_log_is_not_reported_as_unfinished(indent: int | None, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    text = text_of(document(sample(0)), indent)
    path.write_text(without_quote(text, '"results"', "completed_samples"))
    kinds = {error.error_type for error in import_log(path).errors}
    assert kinds == {"DamagedLog"}
    path.write_text(without_quote(text, "{", "status"))
    log = import_log(path)
    assert {error.error_type for error in log.errors} == {"DamagedLog"}
    assert log.status == "failure"


@LAYOUTS
def test_a_corrupt_key_before_the_samples_loses_no_sample(indent: int | None) -> None:
    ids, log = read(without_quote(text_of(document(sample(0), sample(1)), indent), "{", "samples"))
    assert ids == [0, 1]
    assert log.damage


@LAYOUTS
def test_a_truncated_json_log_gives_only_complete_samples(indent: int | None) -> None:
    text = text_of(document(*map(sample, range(4))), indent)
    for share in range(1, 40):
        try:
            ids, log = read(text[: len(text) * share // 40])
        except EvidenceError:
            assert share < 10
            continue
        assert ids == list(range(len(ids)))
        assert log.damage
        assert len(ids) >= 4 * share // 40 - 2


@pytest.mark.parametrize("samples", [{"a": 1}, "abc", 5, True])
@LAYOUTS
def test_samples_that_are_not_a_list_are_damage(samples: Any, indent: int | None, tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(text_of({**document(), "samples": samples}, indent))
    result = import_file(tmp_path / "log.json", tmp_path / "out")
    assert result.exit_code == 3
    assert "expected a list of samples" in result.reason


@LAYOUTS
def test_a_header_without_samples_is_not_damaged(indent: int | None) -> None:
    """Inspect can return only headers, with `samples` null or missing."""
    for text in (text_of({**document(), "samples": None}, indent), text_of({"eval": {}}, indent)):
        ids, log = read(text)
        assert (ids, log.damage) == ([], [])


@pytest.mark.parametrize("eval_part", [{}, {"eval": 5}, {"eval": None}])
@LAYOUTS
def test_samples_without_a_header_are_a_log_but_a_status_is_not(
    eval_part: dict[str, Any], indent: int | None
) -> None:
    with pytest.raises(EvidenceError, match=r"not an Inspect log: .*'eval'"):
        read(text_of({"status": "success", **eval_part}, indent))
    ids, log = read(text_of({"status": "success", **eval_part, "samples": [sample(0)]}, indent))
    assert ids == [0]
    assert "only data from its samples is available" in str(log.damage[0])


def test_text_between_two_samples_is_damage() -> None:
    """In the layout of Inspect, lines separate samples. A missing brace must not hide a sample."""
    text = text_of(document(sample(0), sample(1), sample(2)), 2)
    ids, log = read(text.replace('    {\n      "id": 1', '   x{\n      "id": 1'))
    assert ids == [0, 2]
    assert log.damage


@given(st.data())
def test_any_changed_byte_loses_at_most_the_affected_samples(data: st.DataObject) -> None:
    """One byte affects one sample, or the two samples next to it.

    No sample is invented or changed without a report.
    """
    indent = data.draw(st.sampled_from([None, 2]))
    text = bytearray(text_of(document(*map(sample, range(4))), indent).encode())
    begin = text.index(b'"samples"') + 20
    at = data.draw(st.integers(begin, len(text) - 10))
    text[at] = data.draw(st.sampled_from(b'"{}[],:x\\ '))
    ids, log = read(bytes(text))
    known = [found for found in ids if found in range(4)]
    assert len(known) >= 2
    assert len(set(known)) == len(known)
    assert len(ids) - len(known) <= 1  # the byte can be in an id
    if len(known) < 3:
        assert log.damage


def fresh(text: bytes, limit: float, bounds: Bounds = DEFAULT_BOUNDS) -> tuple[list[Any], InspectLogReader]:
    start = time.process_time()
    found = read(text, bounds)
    assert time.process_time() - start < limit
    return found


HEAD = b'{"version":2,"status":"success","eval":{"task":"t"},'
ONE = json.dumps(sample(1)).encode()


def test_a_long_text_with_many_keys_before_an_error_is_parsed_quickly() -> None:
    """Each byte is parsed once or twice, for any number of restart positions."""
    keys = b",".join(b'"k%d":%d' % (n, n) for n in range(60))
    ids, log = fresh(
        HEAD + b'"big":"' + b"y" * 40_000_000 + b'",' + keys + b', oops "samples":[' + ONE + b"]}", 5
    )
    assert ids == [1]
    assert len(log.header["big"]) == 40_000_000


@pytest.mark.parametrize(
    "repeated",
    [
        b'{"id":1,"epoch":1,"input":',
        b'{"id":1,"epoch":1,"input":{},',
        b'{"id":1,"epoch":1,"input":"yyyyyyyyyyyyyyyyyyyy ',
        b'{"id":1,"epoch":1,"input":x},',
        b"[]",
        b'"',
    ],
)
def test_hostile_restart_positions_are_parsed_quickly(repeated: bytes) -> None:
    text = HEAD + b'"samples":[' + repeated * (4_000_000 // len(repeated))
    try:
        ids, log = fresh(text, 5, Bounds(damaged=1_000))
    except LogTooLargeError:
        return
    assert ids == []
    assert log.damage


def test_too_many_tiny_rows_are_refused() -> None:
    with pytest.raises(LogTooLargeError, match="smallest"):
        fresh(b'{\n  "eval": {},\n  "samples": [\n' + b"\n    x," * 300_000, 5)


def test_an_id_of_megabytes_uses_bounded_memory() -> None:
    text = json.dumps(document(sample(0) | {"id": 'i"\\' * 1_000_000}), indent=2).encode()
    tracemalloc.start()
    ids, log = fresh(text, 5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [len(found) for found in ids] == [3_000_000]
    assert (log.damage, peak < 20 * len(text)) == ([], True)


@pytest.mark.parametrize("filling", [b"y", b'\\"y'])
def test_a_text_above_the_bound_is_refused_at_every_position(filling: bytes) -> None:
    bounds = Bounds(string_bytes=1_000)
    for front in (b"", b'"a":"b",' * 999):
        for behind in (b"}", b',"a":"b"' * 999 + b"}", b" oops"):
            with pytest.raises(LogTooLargeError, match="string_bytes"):
                read(HEAD + front + b'"big":"' + filling * (1_100 // len(filling)) + b'"' + behind, bounds)
    ids, _ = read(HEAD + b'"big":"' + b"y" * 900 + b'","samples":[]}', bounds)
    assert ids == []


def test_members_of_a_corrupt_json_log_are_located() -> None:
    text = b'{"version": 2, "eval": {"a": [1, "]"]}, "samples": [{"id": 1}, 7], "error": {"message" oops'
    found = pieces(text, 10)
    assert [(name, text[a:b]) for name, (a, b) in found.members] == [
        ("version", b"2"),
        ("eval", b'{"a": [1, "]"]}'),
        ("error", b'{"message" oops'),
    ]
    assert [text[a:b] for a, b in found.samples] == [b'{"id": 1}', b"7"]
