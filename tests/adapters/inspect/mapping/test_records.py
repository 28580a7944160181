"""Current samples are parsed directly into records, all others through dictionaries, with the same records."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.inspect_logs.malformed import ODD_VALUES, changed

from aigo_bridge.access.bounds import Bounds
from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.log_import import LossReport
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.redaction.rules import NO_REDACTION, redaction
from aigo_inspect.importing.importing import ImportOptions, import_file
from aigo_inspect.importing.writing import trial_pieces
from aigo_inspect.logs.index import SampleRef, is_settled
from aigo_inspect.logs.reader import InspectLogReader, open_log
from aigo_inspect.mapping import samples as samples_module
from aigo_inspect.mapping.records import Constants, SampleRecord, parse_sample
from aigo_inspect.mapping.traces import MappedSample, map_raw

Written = tuple[bytes, dict[str, dict[str, int]]]
GOLDEN = sorted((Path(__file__).parents[3] / "golden" / "inspect").glob("*.eval"))
ODD = (
    *ODD_VALUES,
    *(12345678901234567890123, 1e300, False, 0, "max_tokens", "warning", "2026-01-31T04:24:10.592103+00:00"),
    *([[0, 1]], [[0, 3], [1, 2]], {"type": "text", "text": "x"}, [{"type": "text", "text": "hello"}]),
    *("\U0001f600", {"type": "timeout", "message": "late"}, [{"id": "x", "function": "f", "arguments": {}}]),
)


def written(log: InspectLogReader, ref: SampleRef, mapped: MappedSample, loss: LossReport) -> Written:
    trial = samples_module._trial(mapped, log, ref, loss)
    return b"".join(trial_pieces(trial)), loss.as_dict()


def strict(log: InspectLogReader, ref: SampleRef, data: bytes) -> Written | None:
    loss = LossReport()
    sample = parse_sample(data, log.redaction, Constants())
    if sample is None or not is_settled(ref, sample.fields["id"], sample.fields["epoch"]):
        return None
    size = log.sample_size(ref)
    mapped = MappedSample(sample, loss, size=size, bounds=log.bounds, header=log.header)
    return written(log, ref, mapped, loss)


def lenient(log: InspectLogReader, ref: SampleRef, data: bytes) -> Written:
    loss = LossReport()
    return written(log, ref, map_raw(log.parse_sample(ref, data), loss, header=log.header), loss)


def parsed(data: bytes, redaction: Redactor = NO_REDACTION) -> SampleRecord | None:
    return parse_sample(data, redaction, Constants())


def texts(path: Path) -> list[tuple[SampleRef, bytes]]:
    with open_log(path) as log:
        return [(ref, data) for ref in log.sample_refs() if (data := log.read_bytes(ref)) is not None]


def test_both_parsers_give_the_same_evidence(logs: dict[str, Path]) -> None:
    both = 0
    for path in [*logs.values(), *GOLDEN]:
        with open_log(path) as log:
            for ref, data in texts(path):
                found = strict(log, ref, data)
                if found is not None:
                    both += 1
                    assert found == lenient(log, ref, data), (path, ref)
    assert both > 25


def test_both_parsers_keep_the_metadata_of_an_output(logs: dict[str, Path]) -> None:
    """Output and event have a field of this name."""
    path = logs["plain"]
    ((ref, data), *_) = texts(path)
    sample = json.loads(data)
    (call, *_) = (event for event in sample["events"] if event["event"] == "model")
    call["output"]["metadata"] = {"note": "of the output"}
    call["metadata"] = {"note": "of the event"}
    changed_text = json.dumps(sample).encode()
    with open_log(path) as log:
        found = strict(log, ref, changed_text)
        assert found is not None
        assert found == lenient(log, ref, changed_text)
    assert b"of the output" in found[0]
    assert b"of the event" in found[0]


def test_current_samples_are_parsed_directly_into_records(logs: dict[str, Path]) -> None:
    """A new field in an Inspect release would make imports slow without notice. Add it to `records`."""
    general = {
        # Log probabilities, NaN scores, failed samples, marks, failed calls, and rare event types.
        *("media", "scores", "errors", "invalidated", "API retries", "working limit", "every kind"),
        "agents.json",
    }
    for name in logs.keys() - general:
        for ref, data in texts(logs[name]):
            assert parsed(data) is not None, (name, ref)


def test_unusual_events_are_parsed_through_dictionaries(logs: dict[str, Path]) -> None:
    ((_, data), *_) = texts(logs["plain"])
    sample = json.loads(data)

    def changed_sample(change: Callable[[], object]) -> object:
        kept = json.dumps(sample)
        change()
        found = parsed(json.dumps(sample).encode(), redaction(environment={}))
        sample.clear()
        sample.update(json.loads(kept))
        return found

    assert changed_sample(lambda: None) is not None
    assert changed_sample(lambda: sample.update(new_field=1)) is None
    assert changed_sample(lambda: sample.update(error="a text")) is None
    assert (
        changed_sample(lambda: sample["metadata"].update(key="sk-abcdefghijklmnopqrstuvwxyz012345")) is None
    )
    assert changed_sample(lambda: sample["events"].append({"event": "brand_new"})) is None
    for bad in (b"\xff", b"\\ud800", b"\x01"):
        broken = data.replace(b'"target":"', b'"target":"' + bad, 1)
        assert broken != data
        assert parsed(broken) is None
    assert parsed(b"[" * 5000) is None
    assert parsed(data.replace(b'"epoch":1', b'"epoch":NaN', 1)) is None


def test_invalid_text_and_secrets_in_messages_and_tools_are_detected(logs: dict[str, Path]) -> None:
    """Messages and tools are parsed one by one after the rest; errors and secrets in them must be detected."""
    secret = b"sk-abcdefghijklmnopqrstuvwxyz012345"
    ((ref, data), *_) = texts(logs["parallel tools"])
    for key in (b'"events_data":{"messages":[{"id":"', b'"tools":[{"name":"', b'"message":{"id":"'):
        for bad in (b"\xff", b"\xff " + secret, b"\\ud800", b"\\ud800 " + secret):
            broken = data.replace(key, key + bad, 1)
            assert broken != data, key
            with open_log(logs["parallel tools"], redaction=redaction(environment={})) as log:
                assert strict(log, ref, broken) is None, (key, bad)
                assert secret not in lenient(log, ref, broken)[0]


def test_invalid_patches_do_not_hide_secrets(logs: dict[str, Path]) -> None:
    """Secrets are only searched in UTF-8. An invalid byte in a patch must not hide them."""
    secret = b"sk-abcdefghijklmnopqrstuvwxyz012345"
    ((ref, data), *_) = texts(logs["parallel tools"])
    broken = data.replace(b'"changes":[{"op":"', b'"changes":[{"op":"\xff', 1)
    assert broken != data
    broken = broken.replace(b'"target":"', b'"target":"' + secret, 1)
    with open_log(logs["parallel tools"], redaction=redaction(environment={})) as log:
        assert strict(log, ref, broken) is None
        assert secret not in lenient(log, ref, broken)[0]


def test_bounds_on_events_and_context_are_enforced(logs: dict[str, Path], tmp_path: Path) -> None:
    result = import_file(logs["agents"], tmp_path / "r", ImportOptions(bounds=Bounds(events=3)))
    assert result.exit_code == 3
    assert "the bound 'events' is 3" in result.reason
    result = import_file(logs["agents"], tmp_path / "r", ImportOptions(bounds=Bounds(context_messages=2)))
    assert result.exit_code == 3
    assert "context_messages" in result.reason


@pytest.fixture(scope="module")
def samples(logs: dict[str, Path]) -> list[tuple[Path, SampleRef, bytes]]:
    found = [(path, ref, data) for path in logs.values() for ref, data in texts(path)]
    return [entry for entry in found if len(entry[2]) < 60_000 and parsed(entry[2]) is not None]


@given(st.data())
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_both_parsers_give_the_same_changed_sample(
    samples: list[tuple[Path, SampleRef, bytes]], data: st.DataObject
) -> None:
    path, ref, text = data.draw(st.sampled_from(samples), label="sample")
    generator = random.Random(data.draw(st.integers(0, 2**32), label="seed"))
    sample: Any = json.loads(text)
    for _ in range(generator.choice((1, 1, 2, 3))):
        key = generator.choice(("events", "events", "events", "messages", "events_data", "output", "scores"))
        if key in sample:
            sample[key] = changed(sample[key], generator, generator.choice(ODD))
    odd = json.dumps(sample, separators=(",", ":"), ensure_ascii=generator.random() < 0.5).encode()
    with open_log(path) as log:
        found = strict(log, ref, odd)
        if found is None:
            return
        try:
            assert found == lenient(log, ref, odd)
        except EvidenceError as error:
            pytest.fail(f"only the strict parser reads it: {error}")
