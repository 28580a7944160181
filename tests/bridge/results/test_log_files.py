"""Writing and reading result logs as streams."""

from __future__ import annotations

import errno
import gzip
import json
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from tests.bridge.results.logs import frame, sample, text_of_log, whole

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import SampleEvidence, TaskResultLog
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.results.json_pieces import JsonPiece, JsonSyntaxError, pieces
from aigo_bridge.results.log_files import mapped, open_for_replacing, scratch_folder
from aigo_bridge.results.reading import LogReader, SamplePart, read_log
from aigo_bridge.results.writing import write_log

SUFFIXES = [".json", ".json.gz", ".json.zst", ".jsonl", ".jsonl.gz", ".jsonl.zst"]
ODD_TEXTS = ["é\n\u2028😀", "a" * 3000, '}, {"sample_id":', "]}", '"\\', "\x00"]


def typed(*samples: dict[str, Any]) -> list[SampleEvidence]:
    return [SampleEvidence.model_validate(one) for one in samples]


@pytest.mark.parametrize("suffix", SUFFIXES)
class TestRoundTrip:
    def test_written_logs_can_be_read(self, tmp_path: Path, suffix: str) -> None:
        path = tmp_path / f"a{suffix}"
        samples = [sample(index, text) for index, text in enumerate(ODD_TEXTS)]

        write_log(path, typed(*samples), finish=frame())

        log = read_log(path)
        assert list(log.raw_samples()) == samples
        assert list(log) == list(log.samples()) == typed(*samples)
        assert log.frame().model_dump(mode="json") == whole(samples=[]) or suffix.startswith(".jsonl")
        loaded = log.load().model_dump(mode="json")
        assert loaded == whole(samples=samples)

    @pytest.mark.parametrize("count", [0, 1])
    def test_log_with_no_sample_or_one_sample_is_read_back(
        self, tmp_path: Path, suffix: str, count: int
    ) -> None:
        path = tmp_path / f"a{suffix}"
        samples = [sample("only")][:count]

        write_log(path, typed(*samples), finish=frame())

        assert list(read_log(path).raw_samples()) == samples
        assert read_log(path).load().model_dump(mode="json") == whole(
            **({"samples": samples} if samples else {})
        )

    def test_plain_encoded_and_typed_samples_may_be_mixed(self, tmp_path: Path, suffix: str) -> None:
        path = tmp_path / f"a{suffix}"
        samples = [sample(index) for index in range(5)]
        shared = orjson.Fragment(orjson.dumps(samples[4]["trials"]))
        given_samples: list[Any] = [
            *typed(samples[0]),
            samples[1],
            orjson.Fragment(orjson.dumps(samples[2])),
            json.dumps(samples[3], indent=1).encode(),
            {**samples[4], "trials": shared},
        ]

        write_log(path, given_samples, finish=frame())

        assert list(read_log(path).raw_samples()) == samples

    def test_metrics_are_computed_after_the_last_sample(self, tmp_path: Path, suffix: str) -> None:
        seen: list[int] = []

        def samples() -> Iterator[dict[str, Any]]:
            for index in range(3):
                seen.append(index)
                yield sample(index)

        def finish() -> TaskResultLog:
            return frame(failures={"num_errors": 0, "num_total": len(seen)})

        path = tmp_path / f"a{suffix}"
        write_log(path, samples(), finish=finish)

        evidence = read_log(path).frame().evidence
        assert evidence is not None
        assert evidence.failures is not None
        assert evidence.failures.num_total == 3

    def test_equal_logs_have_equal_bytes(self, tmp_path: Path, suffix: str) -> None:
        for name in "ab":
            write_log(tmp_path / f"{name}{suffix}", [sample(1)], finish=frame())
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()

    def test_truncated_file_yields_its_complete_samples_then_an_error(
        self, tmp_path: Path, suffix: str
    ) -> None:
        path = tmp_path / f"a{suffix}"
        samples = [sample(index, str(index) * 40) for index in range(20)]
        write_log(path, samples, finish=frame())
        plain = path.with_name("plain.json" if ".jsonl" not in suffix else "plain.jsonl")
        write_log(plain, samples, finish=frame())
        cut = plain.read_bytes()[: plain.stat().st_size // 2]
        path.write_bytes(compressed(cut, suffix))

        found: list[Any] = []
        with pytest.raises(EvidenceError, match=r"cut off.* at byte \d+") as error:
            found.extend(read_log(path).raw_samples())

        assert found == samples[: len(found)]
        assert len(found) >= 8
        assert f"at byte {len(cut)}" in str(error.value)
        with pytest.raises(EvidenceError):
            read_log(path).frame()


def compressed(data: bytes, suffix: str) -> bytes:
    if suffix.endswith(".gz"):
        return gzip.compress(data)
    return zstandard.compress(data) if suffix.endswith(".zst") else data


class TestWriting:
    @pytest.mark.parametrize("name", ["log.txt", "log", "log.gz", "log.json.bz2"])
    def test_unknown_file_extension_is_rejected(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(UsageError, match=r"found file name 'log"):
            write_log(tmp_path / name, [], finish=frame())
        (tmp_path / name).write_bytes(b"{}")
        with pytest.raises(UsageError, match=r"found file name 'log"):
            read_log(tmp_path / name)

    def test_a_missing_file_is_reported_with_any_name(self, tmp_path: Path) -> None:
        for name in ("log", "log.txt", "log.json"):
            with pytest.raises(EvidenceError, match="the file does not exist"):
                read_log(tmp_path / name).frame()

    def test_an_exception_leaves_only_the_old_file(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        path.write_text("old")

        def samples() -> Iterator[dict[str, Any]]:
            yield sample(1)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            write_log(path, samples(), finish=frame())

        assert path.read_text() == "old"
        assert [file.name for file in tmp_path.iterdir()] == ["a.json"]

    @pytest.mark.parametrize("suffix", SUFFIXES)
    def test_a_full_disk_leaves_only_the_old_file(
        self, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / f"a{suffix}"
        path.write_text("old")

        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, "no space left on device")

        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="no space"):
            write_log(path, [sample(1)], finish=frame())

        assert path.read_text() == "old"
        assert len(list(tmp_path.iterdir())) == 1

    def test_only_a_scratch_folder_does_not_wait_for_the_disk(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        flushed: list[int] = []
        monkeypatch.setattr("os.fsync", flushed.append)
        with scratch_folder("test-") as folder:
            write_log(folder / "a.json", [sample(1)], finish=frame())
            assert flushed == []

        write_log(tmp_path / "a.json", [sample(1)], finish=frame())
        assert len(flushed) == 2  # file and folder

    @pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="the system has no such advice")
    def test_a_large_file_is_stored_while_it_is_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        advise, stored = os.posix_fadvise, list[tuple[int, int]]()

        def noted(file: int, start: int, length: int, advice: int) -> None:
            stored.append((start, start + length))
            advise(file, start, length, advice)

        monkeypatch.setattr("os.posix_fadvise", noted)
        text = b"0123456789abcdef" * (5 << 20)
        with open_for_replacing(tmp_path / "a.json") as file:
            file.write(text[: 50 << 20])
            file.write(text[50 << 20 :])
        assert (tmp_path / "a.json").read_bytes() == text
        assert [start for start, _ in stored] == [0, *(end for _, end in stored[:-1])]
        assert stored[-1][1] >= len(text) - (32 << 20)
        # Space that was reserved for more text is free again.
        assert (tmp_path / "a.json").stat().st_blocks * 512 < len(text) + (1 << 20)

    def test_symbolic_link_is_kept(self, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        target = tmp_path / "folder" / "target.json"
        target.write_text("old")
        link = tmp_path / "link.json"
        link.symlink_to(target)

        write_log(link, [], finish=frame())

        assert link.is_symlink()
        assert json.loads(target.read_text()) == whole()

    def test_written_file_has_default_permissions(self, tmp_path: Path) -> None:
        (tmp_path / "plain").touch()
        write_log(tmp_path / "a.json", [], finish=frame())
        assert (tmp_path / "a.json").stat().st_mode == (tmp_path / "plain").stat().st_mode

    def test_samples_in_the_frame_are_rejected(self, tmp_path: Path) -> None:
        with pytest.raises(EvidenceError, match="the log already contains 1 sample"):
            write_log(tmp_path / "a.json", [], finish=frame(samples=[sample(1)]))

    def test_samples_without_evidence_are_rejected(self, tmp_path: Path) -> None:
        without = TaskResultLog.model_validate({**whole(), "evidence": None})
        with pytest.raises(EvidenceError, match="lacks evidence"):
            write_log(tmp_path / "a.json", [sample(1)], finish=without)

        write_log(tmp_path / "a.json", [], finish=without)
        assert json.loads((tmp_path / "a.json").read_text())["evidence"] is None

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_non_finite_metric_is_rejected(self, tmp_path: Path, value: float) -> None:
        log = frame(metrics=[{"values": {"a": value}, "metric_key": "mean"}])
        with pytest.raises(EvidenceError, match="expected a finite number") as error:
            write_log(tmp_path / "a.json", [], finish=log)
        assert error.value.issues[0].path == ("evidence", "metrics", 0, "values", "a")
        assert error.value.code == Code.UNFIT_RESULT
        assert not list(tmp_path.iterdir())

    def test_unusual_values_are_written_without_an_error(self, tmp_path: Path) -> None:
        """A lone surrogate or a big integer in one sample must not fail the whole run."""
        odd = [sample(1, "\ud800"), sample(2)]
        odd[1]["trials"][0]["sample"]["data"] = {"big": 2**80, "nan": float("nan"), "s": "\udfff"}
        expected = [odd[0], {**odd[1]}]

        for name, samples in (("plain", odd), ("typed", typed(*odd))):
            write_log(tmp_path / f"{name}.json", samples, finish=frame())
            read = list(read_log(tmp_path / f"{name}.json").raw_samples())
            assert read[0] == expected[0]
            assert read[1]["trials"][0]["sample"]["data"] == {"big": 2**80, "nan": None, "s": "\udfff"}

    def test_type_fields_are_written_even_if_unset(self, tmp_path: Path) -> None:
        evidence = SampleEvidence.build(
            "q", "a", {}, sample_id="1", message_format="latticeflow", sample_data={}, scorer_key="s"
        )
        built = SampleEvidence.build(None, None, {}, sample_id="1")
        write_log(tmp_path / "a.json", [evidence, built], finish=frame())
        assert [one.sample_id for one in read_log(tmp_path / "a.json")] == ["1", "1"]


class TestReading:
    @pytest.mark.parametrize("indent", [None, 0, 2])
    @pytest.mark.parametrize("frame_first", [True, False])
    def test_layout_and_key_order_do_not_change_the_log(
        self, tmp_path: Path, indent: int | None, frame_first: bool
    ) -> None:
        path = tmp_path / "a.json"
        samples = [sample(index, text) for index, text in enumerate(ODD_TEXTS * 2)]
        log = whole(samples=samples)
        keys = sorted(log, key=lambda key: (key == "evidence") == frame_first)
        path.write_text(
            json.dumps({key: log[key] for key in keys}, indent=indent, ensure_ascii=False), encoding="utf-8"
        )

        assert list(read_log(path).raw_samples()) == samples
        assert read_log(path).load().model_dump(mode="json") == log

    def test_samples_with_different_key_orders_are_read(self, tmp_path: Path) -> None:
        samples = [
            sample(1),
            {"errors": [], **sample(2)},
            sample(3),
            dict(reversed(sample(4).items())),
            sample(5),
        ]
        path = tmp_path / "a.json"
        path.write_text(text_of_log(samples))
        assert list(read_log(path).raw_samples()) == samples

    def test_nan_and_huge_integers_are_read(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        path.write_text(
            text_of_log([{**sample(1), "x": float("nan")}, {**sample(2), "x": 10**40}, sample(3)])
        )
        values = [one.get("x") for one in read_log(path).raw_samples()]
        assert str(values) == f"[nan, {10**40}, None]"

    def test_a_byte_order_mark_is_skipped(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        path.write_bytes(b"\xef\xbb\xbf" + text_of_log([sample(1)]).encode())
        assert len(list(read_log(path))) == 1

    def test_legacy_samples_have_one_trial(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        legacy = {key: value for key, value in sample("1").items() if key != "trials"}
        path.write_text(text_of_log([{**legacy, "sample": {"data": {"q": 1}}}]))

        (evidence,) = read_log(path)

        assert evidence.trials[0].sample is not None
        assert evidence.trials[0].sample.data == {"q": 1}
        assert read_log(path).load().evidence == TaskResultLog.model_validate_json(path.read_text()).evidence

    def test_frame_of_an_aigo_bridge_log_is_read_without_samples(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        write_log(path, [sample(index, '\\n],"metrics":') for index in range(5)], finish=frame())
        expected = read_log(path).frame()
        data = path.read_bytes()
        assert expected == frame(samples=[])

        path.write_bytes(
            data.replace(b'"sample_id"', b'"sample_id!')
        )  # no longer valid JSON, except for the frame
        assert read_log(path).frame() == expected
        path.write_bytes(data[:-2])
        with pytest.raises(EvidenceError, match="cut off"):
            read_log(path).frame()

    @pytest.mark.parametrize("metrics", ["[]", "[\n]"])
    def test_log_that_only_starts_like_an_aigo_bridge_log_is_read_in_full(
        self, tmp_path: Path, metrics: str
    ) -> None:
        path = tmp_path / "a.json"
        rest = json.dumps({key: value for key, value in whole().items() if key != "evidence"}, indent=0)
        text = f'{{"evidence":{{"samples":[\n{json.dumps(sample(1))}\n],"metrics":{metrics},"errors":[\n]}},{rest[1:]}'
        path.write_text(text)

        assert read_log(path).frame() == TaskResultLog.model_validate(
            {**whole(metrics=[], samples=[], errors=[])}
        )

    def test_samples_of_runs_are_read_by_run(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        runs = [
            {"index": index, "metrics": [], "samples": [sample(index), sample(10 + index)]}
            for index in range(2)
        ]
        log = whole(runs=runs, samples=[sample("all")])
        path.write_text(json.dumps(log))

        reader = read_log(path)

        assert [one.sample_id for one in reader.samples()] == ["all"]
        assert [one.sample_id for one in reader.samples(run=1)] == [1, 11]
        assert reader.load().model_dump(mode="json") == log
        frame_evidence = reader.frame().evidence
        assert frame_evidence is not None
        assert [run.samples for run in frame_evidence.runs or []] == [[], []]

    def test_invalid_sample_is_reported_with_its_path(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        bad = sample(2)
        bad["trials"][0]["scores"][0]["values"] = 3
        path.write_text(text_of_log([sample(1), bad]))

        samples = iter(read_log(path))

        assert next(samples).sample_id == 1
        with pytest.raises(EvidenceError) as error:
            next(samples)
        (issue,) = error.value.issues
        assert issue.path == ("evidence", "samples", 1, "trials", 0, "scores", 0, "values")
        assert issue.file == str(path)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "cut off"),
            ("[]", "found a list, expected a result log"),
            ("null", "found null, expected a result log"),
            ('{"evidence": {"samples": [1]}}', "found a number, expected a sample"),
            ('{"evidence": {"runs": [{}}', "expected `,` or `\\]`"),
            ('{"evidence": {"samples": [{"a": 1,}]}}', "at byte"),
            ('{"evidence": 1 "x": 2}', "expected `,` or `}`"),
            ('{"evidence" 1}', "expected `:`"),
            ("{1: 2}", "expected a key"),
            ('{"a": }', "expected a value"),
            ('{"a": tru}', "at byte 6"),
            ("{} x", "more after the end"),
            ('{"a": "\xff"}', "UTF-8"),
            ("[" * 100_000, "found a list"),
            ('{"a": ' + "[" * 100_000, "cut off"),
            ('{"a": ' + "[" * 5000 + "]" * 5000 + "}", "nested too deeply|does not fit|found no such field"),
        ],
    )
    def test_a_damaged_file_is_an_evidence_error(self, tmp_path: Path, text: str, message: str) -> None:
        path = tmp_path / "a.json"
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(EvidenceError, match=message):
            read_log(path).load()

    def test_a_missing_file_and_a_folder_are_evidence_errors(self, tmp_path: Path) -> None:
        with pytest.raises(EvidenceError, match="the file does not exist"):
            list(read_log(tmp_path / "none.json"))
        (tmp_path / "folder.json").mkdir()
        with pytest.raises(EvidenceError, match="cannot read"):
            list(read_log(tmp_path / "folder.json"))

    @pytest.mark.parametrize("suffix", [".json.gz", ".json.zst"])
    def test_uncompressed_file_with_compressed_extension_is_reported(
        self, tmp_path: Path, suffix: str
    ) -> None:
        path = tmp_path / f"a{suffix}"
        path.write_text(text_of_log([]))
        with pytest.raises(EvidenceError, match="cannot decompress"):
            read_log(path).load()

    @pytest.mark.parametrize("suffix", [".json.gz", ".json.zst", ".jsonl.gz", ".jsonl.zst"])
    def test_truncated_compressed_file_is_reported(self, tmp_path: Path, suffix: str) -> None:
        path = tmp_path / f"a{suffix}"
        write_log(path, [sample(index, str(index)) for index in range(3000)], finish=frame())
        path.write_bytes(path.read_bytes()[:-200])
        with pytest.raises(EvidenceError, match=r"cut off|cannot decompress"):
            read_log(path).load()

    @pytest.mark.parametrize(
        ("lines", "message"),
        [
            ([b"{}"], "no line has `format_version`"),
            ([b"3"], "found a number, expected a sample"),
            ([b"{]"], "at byte 1"),
            ([b'{"format_version": 1}', b'{"format_version": 1}'], "second line"),
            ([b"{}", b'{"a'], "cut off at byte"),
            ([b'"\xff"'], "UTF-8"),
        ],
    )
    def test_damaged_jsonl_lines_are_reported(self, tmp_path: Path, lines: list[bytes], message: str) -> None:
        path = tmp_path / "a.jsonl"
        path.write_bytes(b"\n".join(lines) + (b"" if message.startswith("cut off") else b"\n"))
        with pytest.raises(EvidenceError, match=message):
            list(read_log(path).parts())

    def test_empty_lines_and_a_leading_frame_are_accepted(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        path.write_text(f"\n{json.dumps(whole())}\n\n{json.dumps(sample(1))}\n")
        assert read_log(path).load().model_dump(mode="json") == whole(samples=[sample(1)])


def test_memory_does_not_grow_with_the_number_of_samples(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    large = sample(0, "x" * 1_000_000)

    def peaks(count: int) -> tuple[int, int]:
        tracemalloc.start()
        try:
            write_log(path, (large for _ in range(count)), finish=frame())
            written = tracemalloc.get_traced_memory()[1]
            tracemalloc.reset_peak()
            assert sum(1 for _ in read_log(path).samples()) == count
            return written, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peaks(2)  # warm up caches
    few, many = peaks(6), peaks(60)

    assert path.stat().st_size > 100_000_000
    assert many[0] < 1.2 * few[0]
    assert many[1] < 1.2 * few[1]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.sampled_from(ODD_TEXTS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


class TestPieces:
    @given(value=VALUES, indent=st.sampled_from([None, 1]), ascii_only=st.booleans())
    def test_joined_pieces_equal_the_document(self, value: Any, indent: int | None, ascii_only: bool) -> None:
        text = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()

        assert assembled(list(pieces(text, opened=lambda path: len(path) < 3))) == value

    @given(
        rows=st.lists(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), max_size=6), data=st.data()
    )
    def test_truncated_document_yields_only_complete_elements(
        self, rows: list[Any], data: st.DataObject
    ) -> None:
        text = json.dumps(rows).encode()
        cut = data.draw(st.integers(0, len(text) - 1))

        found: list[Any] = []
        with pytest.raises(JsonSyntaxError) as error:
            found.extend(
                piece.value for piece in pieces(text[:cut], opened=lambda path: path == ()) if piece.path
            )

        assert found == rows[: len(found)]
        assert error.value.offset <= cut

    def test_offsets_point_to_the_values(self) -> None:
        text = ' {"ä": [ {"x": 1},\n {"x": 2} ] }'.encode()
        for piece in pieces(text, opened=lambda path: len(path) < 2):
            if not piece.opened:
                assert text[piece.offset :].startswith(b'{"x"')

    def test_element_with_similar_nested_endings_is_read_completely(self) -> None:
        rows = [{"a": 1}, {"a": [{"b": 1}, {"a": 2}]}, {"a": [[{"x": 0}, {"a": 3}]]}, {"a": 4}]
        found = pieces(json.dumps(rows).encode(), opened=lambda path: path == ())
        assert [piece.value for piece in found if piece.path] == rows

    def test_elements_of_growing_size_are_read(self) -> None:
        rows = [{"a": "x" * size, "b": [{"a": "]"}] * 5} for size in (1, 100, 5, 1 << 20, 3)]
        found = pieces(json.dumps(rows).encode(), opened=lambda path: path == ())
        assert [piece.value for piece in found if piece.path] == rows


def assembled(pieces: list[JsonPiece]) -> Any:
    root: list[Any] = []
    for piece in pieces:
        here: Any = root
        for part in (0, *piece.path)[:-1]:
            here = here[part]
        key = (0, *piece.path)[-1]
        value = type(piece.value)() if piece.opened else piece.value
        if isinstance(here, list):
            here.append(value)
        else:
            here[key] = value
    return root[0]


STRICT_AND_LENIENT = [
    {"x": 1},
    {"evidence": {"y": 1}},
    {"evidence": {"runs": [{"index": 0, "metrics": [], "samples": [sample("r")]}]}},
    {"evidence": {"runs": None, "errors": []}},
    {"evidence": {"metrics": [float("nan")]}},
]
"""What else may stand in a log; only the one with null is read at once."""


@pytest.mark.parametrize("more", STRICT_AND_LENIENT)
def test_unknown_fields_do_not_change_samples_and_frame(tmp_path: Path, more: dict[str, Any]) -> None:
    samples = [sample(index, text) for index, text in enumerate(ODD_TEXTS)]
    log = whole(samples=samples)
    log = {**log, **more, "evidence": {**log["evidence"], **more.get("evidence", {})}}
    path = tmp_path / "a.json"
    path.write_text(json.dumps(log))

    *first, last = [part for part in read_log(path).parts() if getattr(part, "run", None) is None]

    assert [part.value for part in first] == samples
    assert [part.path for part in first if isinstance(part, SamplePart)] == [
        ("evidence", "samples", index) for index in range(len(samples))
    ]
    evidence = {**log["evidence"], "samples": []}
    if evidence.get("runs"):
        evidence["runs"] = [{**run, "samples": []} for run in evidence["runs"]]
    assert repr(last.value | {"evidence": sorted(last.value["evidence"].items())}) == repr(
        {key: last.value[key] for key in last.value} | {"evidence": sorted(evidence.items())}
    )
    assert {key: repr(value) for key, value in last.value.items() if key != "evidence"} == {
        key: repr(value) for key, value in log.items() if key != "evidence"
    }


@pytest.mark.parametrize("bad", [b'"\xff"', b"1e", b'"\n"', b"[1 2]", b"{,}"])
def test_a_problem_inside_a_sample_is_reported_with_its_path(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "a.json"
    write_log(path, [sample(1), sample(2)], finish=frame())
    data = path.read_bytes().replace(b'"sample_id":2', b'"sample_id":' + bad, 1)
    path.write_bytes(data)

    found: list[Any] = []
    with pytest.raises(EvidenceError) as error:
        found.extend(read_log(path).raw_samples())

    assert found == [sample(1)]
    assert error.value.issues[0].path == ("evidence", "samples", 1)
    assert abs(int(str(error.value).split("at byte ")[1].split()[0].rstrip(":,.")) - data.index(bad)) < 12


@pytest.mark.parametrize("suffix", [".json.gz", ".json.zst"])
def test_damaged_compressed_log_yields_its_complete_samples(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    samples = [sample(index, f"{index * 7919 % 10007:05d}" * 200) for index in range(400)]
    write_log(path, samples, finish=frame())
    path.write_bytes(path.read_bytes()[:-2000])

    found: list[Any] = []
    with pytest.raises(EvidenceError, match=r"cut off|cannot decompress"):
        found.extend(read_log(path).raw_samples())

    assert found == samples[: len(found)]
    assert len(found) > 50


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_zip_bomb_is_rejected_without_filling_the_disk(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"r.tasklog.json{suffix}"
    text = b'{"x":"' + b"x" * 140_000_000
    path.write_bytes(gzip.compress(text, 1) if suffix == ".gz" else zstandard.compress(text))
    for read in (
        lambda: mapped(path),
        lambda: LogReader(path).frame(),
        lambda: list(LogReader(path).parts()),
    ):
        with pytest.raises(EvidenceError, match="looks like a zip bomb"):
            read()
