"""An error during an import affects one log and is reported; the other logs are imported."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import REPOSITORY, Run

from aigo_bridge.access.file_kinds import remote_errors
from aigo_bridge.errors import EvidenceError
from aigo_inspect.logs.sources import find_logs, open_source

Load = Callable[[Path], dict[str, Any]]
HEADER = {"status": "success", "eval": {"task": "t", "dataset": {}, "config": {}}}


def write(path: Path, *, text: str = "x", states: int = 0) -> Path:
    """Write a log with one sample."""
    sample = {
        "id": 1,
        "epoch": 1,
        "input": text,
        "target": "t",
        "messages": [],
        "events": [{"event": "state", "timestamp": "2026-01-01T00:00:00+00:00", "changes": []}] * states,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(HEADER))
        archive.writestr("samples/1_epoch_1.json", json.dumps(sample))
    return path


def written(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("output_format", ["json", "json.zst", "parquet"])
def test_evidence_on_a_full_disk_is_named(tmp_path: Path, output_format: str) -> None:
    noise = "".join(chr(33 + n * n % 89) + str(n) for n in range(120_000))
    write(tmp_path / "a.eval", text=noise)
    write(tmp_path / "b.eval")

    done = subprocess.run(
        [
            str(Path(sys.executable).parent / "aigo-bridge"),
            "import",
            "a.eval",
            "b.eval",
            "--format",
            output_format,
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),  # as a full disk
    )

    ending = "tasklog" if output_format == "parquet" else f"tasklog.{output_format}"
    assert done.returncode == 3, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if "cannot be written" in line]
    assert line.startswith(f"a.eval: success, not imported; the evidence cannot be written: out/a.{ending}: ")
    assert "File too large" in line
    assert "Traceback" not in done.stderr
    assert written(tmp_path / "out") == sorted(["b.loss.json", f"b.{ending}"])


def test_an_unwritable_loss_report_is_reported(aigo: Run, tmp_path: Path) -> None:
    write(tmp_path / "a.eval")
    write(tmp_path / "b.eval")
    (tmp_path / "out" / "a.loss.json").mkdir(parents=True)

    done = aigo("import", "a.eval", "b.eval")

    assert done.code == 3
    assert "the loss report cannot be written: out/a.loss.json: Is a directory" in done.out
    assert written(tmp_path / "out") == ["a.loss.json", "a.tasklog.json", "b.loss.json", "b.tasklog.json"]


def test_folder_in_place_of_the_output_file_is_named(aigo: Run, tmp_path: Path) -> None:
    write(tmp_path / "a.eval")
    write(tmp_path / "b.eval")
    (tmp_path / "out" / "a.tasklog.json").mkdir(parents=True)

    done = aigo("import", "a.eval", "b.eval", "--json")

    assert done.code == 3
    first, second = done.json
    assert first["output"] is None
    assert first["reason"] == "the evidence cannot be written: out/a.tasklog.json: Is a directory"
    assert second["output"] == "out/b.tasklog.json"
    assert written(tmp_path / "out") == ["a.tasklog.json", "b.loss.json", "b.tasklog.json"]


def test_unwritable_evidence_does_not_affect_other_logs(aigo: Run, tmp_path: Path) -> None:
    examples = REPOSITORY / "examples" / "capitals"
    aigo("run", examples, "--model", f"scripted/{examples / 'answers.jsonl'}", "--out", "run")
    (log,) = (tmp_path / "run").glob("*.eval")
    write(tmp_path / "b.eval")
    (tmp_path / "out" / f"{log.stem}.tasklog.json").mkdir(parents=True)

    done = aigo("import", log, "b.eval")

    assert done.code == 3
    assert f"the evidence cannot be written: out/{log.stem}.tasklog.json: Is a directory" in done.out
    assert (tmp_path / "out" / "b.tasklog.json").is_file()


def test_aigo_bridge_runs_with_equal_names_keep_their_evidence(
    aigo: Run, tmp_path: Path, result_of: Load
) -> None:
    """Logs with equal names in several folders do not replace each other's evidence."""
    examples = REPOSITORY / "examples" / "capitals"
    aigo("run", examples, "--model", f"scripted/{examples / 'answers.jsonl'}", "--out", "run")
    (log,) = (tmp_path / "run").glob("*.eval")
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.eval").write_bytes(log.read_bytes())
    write(tmp_path / "c" / "x.eval")

    assert aigo("import", "a", "b", "c").code == 0

    found = [result_of(path) for path in sorted((tmp_path / "out").glob("*.tasklog.json"))]
    assert sorted(len(result["evidence"]["samples"]) for result in found) == [1, 4, 4]


def test_log_given_twice_is_imported_once(aigo: Run, tmp_path: Path) -> None:
    write(tmp_path / "logs" / "a.eval")
    (tmp_path / "logs" / "latest.eval").symlink_to("a.eval")
    assert len(find_logs([tmp_path / "logs", (tmp_path / "logs" / "a.eval").as_uri()])) == 1

    done = aigo(
        "import",
        "logs/a.eval",
        "./logs/a.eval",
        "logs",
        tmp_path / "logs" / "a.eval",
        "logs/*.eval",
        "--json",
    )

    assert done.code == 0
    assert [report["log"] for report in done.json] == ["logs/a.eval"]
    assert written(tmp_path / "out") == ["a.loss.json", "a.tasklog.json"]


def test_damaged_log_exits_with_3_for_every_max_loss(aigo: Run, tmp_path: Path) -> None:
    """The loss of a damaged log is unknown."""
    whole = write(tmp_path / "whole.eval", states=1)
    assert aigo("import", whole, "--max-loss", "0").code == 1
    assert aigo("import", whole, "--max-loss", "1").code == 0
    (tmp_path / "cut.eval").write_bytes(whole.read_bytes()[:-30])

    for allowed in ("0", "1"):
        assert aigo("import", "cut.eval", "--max-loss", allowed).code == 3
    assert aigo("import", whole, "cut.eval", "--max-loss", "0").code == 3


LIMITED = """
import resource
from aigo_inspect.importing.importing import import_logs

pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (200 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for result in import_logs(["big.json", "b.eval"], "out", jobs=1):
    print(result.exit_code, result.samples, result.reason)
"""


def test_log_larger_than_memory_does_not_affect_others(tmp_path: Path) -> None:
    with (tmp_path / "big.json").open("wb") as file:
        file.write(b'{"eval": {}, "samples": [')
        file.truncate(1 << 30)
    write(tmp_path / "b.eval")

    done = subprocess.run(
        [sys.executable, "-c", LIMITED], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    first, second = done.stdout.splitlines()
    assert first.startswith("3 0 memory ran out")
    assert second.startswith("0 1")


def test_an_unreadable_url_is_an_error_with_the_address(
    aigo: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    # No request leaves this machine, because credentials are checked first.
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    for engine in ((), ("--engine", "inspect"), ("--engine", "lighteval")):
        done = aigo("import", "s3://no-such-bucket/x.eval", *engine)
        assert done.code == 2
        assert "s3://no-such-bucket/x.eval cannot be looked at: Unable to locate credentials" in done.err


def test_unknown_url_scheme_or_silent_server_is_an_error_with_the_address(aigo: Run) -> None:
    for url in ("nobody://x/y.eval", "http://127.0.0.1:9/x.eval"):
        done = aigo("import", url)
        assert done.code == 2
        assert f"cannot look for logs at '{url}': " in done.err


def test_remote_errors_are_listed_without_importing_their_libraries() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from aigo_bridge.access.file_kinds import remote_errors as r; assert len(r()) == 3",
        ],
        check=False,
    )
    assert done.returncode == 0
    import aiohttp

    assert issubclass(aiohttp.ClientResponseError, remote_errors())


def test_a_read_error_does_not_crash_the_import(tmp_path: Path) -> None:
    """A closed file simulates a disk or network folder that disappears."""
    source = open_source(write(tmp_path / "a.eval"))
    os.close(source._fd)  # type: ignore[attr-defined]  # a local source
    try:
        with pytest.raises(EvidenceError, match="at byte 5: Bad file descriptor"):
            source.read_at(5, 10)
    finally:
        source._fd = -1  # type: ignore[attr-defined]  # closed above
