"""Any file gives readable evidence or a reason, never a traceback, a hang or gigabytes of memory."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.inspect_logs import malformed

from aigo_bridge.access.bounds import Bounds
from aigo_bridge.errors import UsageError
from aigo_bridge.importing.log_import import ImportReport
from aigo_bridge.results.reading import read_log
from aigo_inspect.importing.importing import ImportOptions, import_file
from aigo_inspect.logs.reader import open_log

EXAMPLES = int(os.environ.get("AIGO_FUZZ_EXAMPLES", "15"))
FUZZED = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)


@pytest.fixture(scope="module")
def parts(logs: dict[str, Path]) -> dict[str, bytes]:
    with open_log(logs["agents"]) as log:
        assert log._archive is not None
        return {name: log._archive.read(name) for name in log.members()}


def imported(data: bytes, folder: Path, name: str = "log.eval") -> ImportReport:
    """Import a log and read the result."""
    path = folder / name
    path.write_bytes(data)
    start = time.process_time()
    result = import_file(path, folder / "result")
    assert time.process_time() - start < 10
    assert (result.exit_code == 0) == (not result.damage)
    if result.output is not None:
        evidence = read_log(result.output).load().evidence
        assert evidence is not None
        assert len(evidence.samples or []) == result.samples
    else:
        assert result.reason
    return result


def test_damaged_files_give_their_readable_samples(parts: dict[str, bytes], tmp_path: Path) -> None:
    found = {name: imported(data, tmp_path) for name, data in malformed.broken(parts).items()}
    # All four samples are imported: damage to the directory, the header or other members loses none.
    for name in (
        *("without its last byte", "without its end", "with bytes in front", "with bytes behind", "twice"),
        *("folders and climbing names", "a symbolic link", "no header", "neither header nor journal"),
        *(
            "a directory of billions of bytes",
            "a directory behind the file",
            "an empty header",
            "half a header",
        ),
        *("a header that is a list", "a count that is wrong"),
    ):
        assert found[name].trials >= 4, (name, found[name].reason)
    assert found["an encrypted member"].trials >= 3
    assert found["cut at 0.9"].trials >= 2
    for name in ("empty", "one byte", "a page", "zeros", "gzip", "bzip2", "an empty zip"):
        assert (found[name].exit_code, found[name].output) == (3, None), name
    assert "is compressed with gzip" in found["gzip"].reason
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "log.eval",
        "result.loss.json",
        "result.tasklog.json",
    ]


def test_a_folder_with_the_name_of_a_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.eval").mkdir()
    result = import_file(tmp_path / "x.eval", tmp_path / "result")
    assert result.exit_code == 3
    assert "is a folder" in result.reason


def test_unusual_json_logs_give_their_readable_samples(parts: dict[str, bytes], tmp_path: Path) -> None:
    found = {n: imported(data, tmp_path, "log.json") for n, data in malformed.odd_documents(parts).items()}
    for name in ("json behind a mark", "json and more", "json cut at 0.999", "json twice"):
        assert found[name].trials >= 3, (name, found[name].reason)
    assert found["json with a comma too many"].trials >= 3
    assert found["json cut at 0.001"].output is None


def test_unusual_samples_are_imported_or_reported(parts: dict[str, bytes], tmp_path: Path) -> None:
    found = {name: imported(data, tmp_path) for name, data in malformed.odd_samples(parts).items()}
    for name in (
        "NaN everywhere",
        "a number beyond floats",
        "a byte order mark",
        "nul characters",
        "latin-1",
    ):
        assert (found[name].trials, found[name].damage) == (4, ()), name
    for name in ("empty samples", "null samples", "deep and open"):
        assert (found[name].trials, len(found[name].damage)) == (0, 4), name


@pytest.mark.parametrize("member", ["header.json", "sample"])
def test_any_value_of_any_type_is_accepted_everywhere(
    parts: dict[str, bytes], tmp_path: Path, member: str
) -> None:
    name = next(key for key in parts if key == member or key.startswith(f"{member}s/"))
    given = json.loads(parts[name])
    for seed in range(EXAMPLES):
        generator = random.Random(seed)
        changed = given
        for _ in range(generator.choice((1, 1, 5))):
            changed = malformed.changed(changed, generator, generator.choice(malformed.ODD_VALUES))
        result = imported(malformed.zipped({**parts, name: json.dumps(changed).encode()}), tmp_path)
        assert result.trials >= 3, (seed, result.reason)


@FUZZED
@given(
    st.binary(max_size=2000),
    st.sampled_from([b"", b"PK\x03\x04", b'{"eval":{},"samples":[', b"\xef\xbb\xbf{"]),
)
def test_any_bytes_give_evidence_or_a_reason(tmp_path: Path, data: bytes, start: bytes) -> None:
    imported(start + data, tmp_path)


@FUZZED
@given(st.data())
def test_any_damage_to_a_log_gives_evidence_or_a_reason(
    parts: dict[str, bytes], tmp_path: Path, data: st.DataObject
) -> None:
    log = bytearray(malformed.zipped(parts))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(log)))
        length = data.draw(st.integers(0, 300))
        log[at : at + length] = data.draw(st.binary(max_size=300))
    imported(bytes(log), tmp_path)


MEASURED = """
import json, re, resource, sys, time
from pathlib import Path
from aigo_inspect.importing.importing import import_file
for path in sorted(Path(sys.argv[1]).glob("*.eval")):
    before = resource.getrusage(resource.RUSAGE_SELF)
    result = import_file(path, Path(sys.argv[1]) / "result")
    after = resource.getrusage(resource.RUSAGE_SELF)
    status = Path("/proc/self/status")
    # On Linux not ru_maxrss: that of a new process starts with its parent's.
    peak = re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1] if status.exists() else after.ru_maxrss
    print(json.dumps([path.stem, result.exit_code, int(peak) >> 10, after.ru_utime - before.ru_utime, result.reason]))
"""


def test_a_zip_bomb_is_refused_within_one_second_and_200_megabytes(tmp_path: Path) -> None:
    bombs = malformed.bombs()
    for name, data in bombs.items():
        assert len(data) < 4 << 20
        (tmp_path / f"{name}.eval").write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path)], capture_output=True, text=True, check=True
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(bombs)
    for name, code, megabytes, seconds, reason in found:
        assert (code, bool(reason)) == (3, True), name
        assert megabytes < 200, name
        assert seconds < 1, name


def test_too_much_damage_stops_the_import(parts: dict[str, bytes], tmp_path: Path) -> None:
    samples = {f"samples/{number}_epoch_1.json": b"{" for number in range(50)}
    path = tmp_path / "log.eval"
    path.write_bytes(malformed.zipped({"header.json": parts["header.json"], **samples}))
    result = import_file(path, tmp_path / "result", ImportOptions(bounds=Bounds(damaged=10)))
    assert len(result.damage) == 12
    assert "more than 10 parts are unreadable" in result.damage[-1].reason


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        ({"string_bytes": 50}, "string_bytes"),
        ({"smallest": 100_000, "events": 1}, "events"),
        ({"growth": 0.0, "growth_from": 10}, "growth"),
        ({"context_messages": 5}, "context_messages"),
    ],
)
def test_every_bound_can_be_set_and_is_named_in_the_error(
    logs: dict[str, Path], tmp_path: Path, bound: dict[str, float], message: str
) -> None:
    result = import_file(logs["agents"], tmp_path / "result", ImportOptions(bounds=Bounds(**bound)))  # type: ignore[arg-type]
    assert result.exit_code == 3
    assert message in result.reason


def test_bounds_are_set_by_name() -> None:
    bounds = Bounds().changed({"events": 5.0, "ratio": 10})
    assert (bounds.events, bounds.ratio, bounds.members) == (5, 10.0, Bounds().members)
    assert isinstance(bounds.events, int)
    with pytest.raises(UsageError, match=r"found bound 'event', expected one of member_bytes, ratio"):
        Bounds().changed({"event": 5})
    with pytest.raises(UsageError, match="expected a number from 0"):
        Bounds().changed({"events": -1})
