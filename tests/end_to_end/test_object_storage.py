"""Complete jobs in object storage with the S3 protocol on 127.0.0.1, including network failures and killed processes."""

from __future__ import annotations

import io
import itertools
import json
import re
import signal
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.conformance.sharding import normalised
from tests.support.commands import ENVIRONMENT, REPOSITORY, Run
from tests.support.forked import start
from tests.support.lakes import make_log
from tests.support.running import wait_until
from tests.support.storage import BUCKET, KEY_ID, S3, SECRET, faulty, reached, s3_server

EXAMPLES = REPOSITORY / "examples" / "capitals"
MODEL = f"scripted/{EXAMPLES / 'answers.jsonl'}"
TASK = f"s3://{BUCKET}/tasks/capitals/task.yaml"
RESULT = "capitals.tasklog.json"

pytestmark = [pytest.mark.engine, pytest.mark.slow]


@pytest.fixture(scope="module")
def server() -> Iterator[S3]:
    """S3 server."""
    with s3_server() as s3:
        yield s3


@pytest.fixture
def s3(server: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """S3 storage with one task, as seen by this process."""
    for key in server.names():
        server.remove(key)
    server.put_folder("tasks/capitals", EXAMPLES)
    with reached(server.address, monkeypatch):
        yield server


def contents(s3: S3) -> Iterator[tuple[str, bytes]]:
    """Return all objects with unpacked archives."""
    for key in s3.names():
        content = s3.get(key)
        yield key, content
        if content[:2] == b"PK":
            import zipfile_zstd  # type: ignore[import-untyped]  # noqa: F401  # teaches `zipfile` Zstandard; has no types

            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                yield from ((f"{key}/{name}", archive.read(name)) for name in archive.namelist())


def test_task_is_run_and_read_in_object_storage(s3: S3, aigo: Run, tmp_path: Path) -> None:
    here = aigo("run", EXAMPLES / "task.yaml", "--model", MODEL, "--out", "here", "--json")
    out = f"s3://{BUCKET}/out"
    there = aigo("run", TASK, "--model", MODEL, "--out", out, "--json")
    assert there.code == here.code, there.err
    assert there.json["metrics"] == here.json["metrics"]
    assert there.json["result"] == f"{out}/{RESULT}"
    taken = s3.take("out", tmp_path / "there")
    assert normalised(taken / RESULT) == normalised(tmp_path / "here" / RESULT)
    assert len(list(taken.glob("*.eval"))) == 1

    assert aigo("validate", f"{out}/{RESULT}", TASK).out.count("valid")
    shown = aigo("stats", f"{out}/{RESULT}")
    assert f"{out}/{RESULT}: 4 samples" in shown.out
    reported = aigo("report", out, "--out", f"s3://{BUCKET}/pages/all.html")
    assert reported.out.split() == ["report", f"s3://{BUCKET}/pages/all.html"]
    assert s3.get("pages/all.html").startswith(b"<!doctype html>")
    imported = aigo("import", f"{out}/*.eval", "--out", f"s3://{BUCKET}/imported")
    assert imported.code == 0, imported.err
    (evidence,) = [key for key in s3.names("imported/") if key.endswith(".tasklog.json")]
    assert aigo("import", *taken.glob("*.eval"), "--out", "imported").code == 0
    assert normalised(s3.take("imported", tmp_path / "far") / Path(evidence).name) == normalised(
        tmp_path / "imported" / Path(evidence).name
    )
    compared = aigo("compare", f"{out}/{RESULT}", f"s3://{BUCKET}/{evidence}")
    assert compared.code == 0, compared.err
    assert aigo("sql", "select count(*) as n from samples", f"{out}/*.tasklog.json").out.split()[-1] == "4"

    evidence_folder = f"s3://{BUCKET}/for-aigo"
    exported = aigo("export", out, "--to", "aigo", "--out", evidence_folder)
    assert exported.code == 0, exported.err
    assert aigo("export", "here", "--to", "aigo", "--out", "for-aigo").code == 0
    stored = s3.take("for-aigo", tmp_path / "stored")
    for folder in (stored, tmp_path / "for-aigo"):
        names = [path.name for path in folder.rglob("*") if path.is_file()]
        assert len(names) == 7
        assert {"README.md", "run.yaml", "task_result_log.json"} <= set(names)
    for place in (evidence_folder, f"{evidence_folder}/run.yaml"):
        (read,) = aigo("stats", place, "--json").json
        assert read["result"].startswith(f"{evidence_folder}/run.yaml#capitals-")
    one = aigo("verify", evidence_folder, "--json")
    assert one.code == 0, one.err

    again = aigo("run", TASK, "--model", MODEL, "--out", out, "--resume")
    assert "the earlier run is complete" in again.err
    assert not (tmp_path / "s3:").exists()
    leaks = [
        (key, text)
        for key, content in contents(s3)
        for text in (SECRET, KEY_ID, ".aigo-bridge-storage-")
        if text.encode() in content
    ]
    assert leaks == []


def test_shards_in_storage_are_merged_over_a_failing_network(s3: S3, aigo: Run, tmp_path: Path) -> None:
    whole = aigo("run", EXAMPLES / "task.yaml", "--model", MODEL, "--out", "whole")
    faults = itertools.cycle(["error", None, None, "cut", None, None, "slow-down", None, None, None])
    with (
        faulty(s3.address, lambda method, path, number: next(faults)) as address,
        pytest.MonkeyPatch.context() as patch,
        reached(address, patch),
    ):
        patch.setenv(
            "AWS_MAX_ATTEMPTS", "1"
        )  # the library waits longer between its tries than all else takes
        for number in (2, 1, 3):
            part = ("--shard", f"{number}/3", "--out", f"s3://{BUCKET}/shards")
            done = aigo("run", TASK, "--model", MODEL, *part)
            assert done.code == 0, done.err
        refused = aigo("run", TASK, "--model", MODEL, *part)
        assert refused.code == 2
        assert f"s3://{BUCKET}/shards/shard-3-of-3' already contains this shard" in refused.err
        again = aigo("run", TASK, "--model", MODEL, *part, "--resume")
        assert (again.code, "is complete" in again.err) == (0, True), again.err
        merged = aigo("merge", f"s3://{BUCKET}/shards", "--out", f"s3://{BUCKET}/merged")
        assert merged.code == 0, merged.err
        reported = aigo("report", f"s3://{BUCKET}/merged", "--out", f"s3://{BUCKET}/pages/all.html")
        assert reported.code == 0, reported.err
        imported = aigo("import", f"s3://{BUCKET}/shards/**/*.eval", "--out", f"s3://{BUCKET}/imported")
        assert imported.code == 0, imported.err
    assert merged.code == whole.code, merged.err
    assert s3.get("pages/all.html").endswith(b"</html>\n")
    assert len([key for key in s3.names("imported/") if key.endswith(".tasklog.json")]) == 3
    taken = s3.take("merged", tmp_path / "merged")
    assert normalised(taken / RESULT) == normalised(tmp_path / "whole" / RESULT)
    assert not [key for key in s3.names() if "lease" in key]

    s3.remove("shards/shard-2-of-3/shard.json")
    missing = aigo("merge", f"s3://{BUCKET}/shards", "--out", f"s3://{BUCKET}/other")
    assert (missing.code, "missing: shard 2 of 3" in missing.err) == (2, True), missing.err
    assert s3.names("other") == []


@pytest.mark.timeout(300)
def test_shards_of_a_cluster_run_are_resumed_from_storage(
    s3: S3, aigo: Run, command: Run, tmp_path: Path
) -> None:
    """Workers share a local copy; only data lost from the storage is requested again."""
    here = aigo("run", EXAMPLES / "task.yaml", "--model", MODEL, "--out", "here")
    words = ["run", TASK, "--model", MODEL, "--on", "ray", "--workers", "1", "--pieces", "2"]
    words += ["--out", f"s3://{BUCKET}/ray"]
    done = command("aigo-bridge", *words)
    assert done.code == here.code, done.err
    pieces = {key: s3.get(key) for key in s3.names("ray/pieces/")}
    assert {key.split("/")[2] for key in pieces} == {"shard-1-of-2", "shard-2-of-2"}
    for key in s3.names("ray/"):
        if "shard-1-" not in key:
            s3.remove(key)
    again = command("aigo-bridge", *words, "--resume")
    assert again.code == done.code, again.err
    taken = s3.take("ray", tmp_path / "there")
    assert normalised(taken / RESULT) == normalised(tmp_path / "here" / RESULT)
    assert [key for key in s3.names("ray/pieces/") if "shard-1-" in key and s3.get(key) != pieces[key]] == []
    leaks = [
        (key, text)
        for key, content in contents(s3)
        for text in (SECRET, KEY_ID, ".aigo-bridge-storage-")
        if text.encode() in content
    ]
    assert leaks == []


def test_a_killed_run_is_resumed_from_storage(s3: S3, aigo: Run, tmp_path: Path) -> None:
    rows = [json.dumps({"n": f"<{n}>"}) for n in range(40)]
    s3.put("slow/rows.jsonl", "\n".join(rows))
    s3.put(
        "slow/task.yaml",
        'key: slow\ndisplay_name: Slow\ndescription: ""\ndefinition:\n  dataset: {key: rows}\n'
        "  solver: {type: single_turn_solver, input_builder: {type: chat_completion, "
        'input_messages: [{role: user, content: "{{ sample.n }}"}]}}\n'
        '  scorers: [{type: string_equals, ground_truth: "yes", metrics: [{type: mean, field: is_correct, name: a}]}]\n',
    )
    (tmp_path / "slow.jsonl").write_text('{"default": true, "reply": {"text": "yes", "delay": 0.5}}\n')
    (tmp_path / "fast.jsonl").write_text('{"default": true, "reply": {"text": "yes"}}\n')
    model = tmp_path / "model.jsonl"
    model.symlink_to(tmp_path / "slow.jsonl")
    words = [
        "run",
        f"s3://{BUCKET}/slow/task.yaml",
        "--model",
        "scripted/model.jsonl",
        "--max-connections",
        "1",
    ]
    words += ["--out", f"s3://{BUCKET}/killed"]
    process = start(["aigo-bridge", *words], cwd=tmp_path, env={**ENVIRONMENT, **s3.environment})
    try:

        def answers() -> int:
            return sum(s3.get(key).count(b'"answer"') for key in s3.names("killed/.answers"))

        wait_until(process, lambda: answers() >= 2)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    kept = answers()
    assert s3.names("killed/slow.tasklog.json") == []
    faults = itertools.cycle([None, None, "cut", None, "error", None, None, "slow-down", None])
    with (
        faulty(s3.address, lambda method, path, number: next(faults)) as address,
        pytest.MonkeyPatch.context() as patch,
        reached(address, patch),
    ):
        patch.setenv("AWS_MAX_ATTEMPTS", "1")
        done = aigo(*words, "--resume", "--json")
    assert done.code == 0, done.err
    assert "another process writes there, or was killed" in done.err
    assert done.json["samples"]["scored"] == 40
    assert 2 <= kept < 40
    assert not [key for key in s3.names("killed/") if "answers" in key or "lease" in key]
    assert len(json.loads(s3.get("killed/slow.tasklog.json"))["evidence"]["samples"]) == 40


def test_lake_in_storage_is_complete_after_killed_imports_and_compactions(
    s3: S3, aigo: Run, tmp_path: Path
) -> None:
    for name in ("a", "b", "c"):
        s3.put(f"logs/{name}.eval", make_log(tmp_path / f"{name}.eval", run=name).read_bytes())
    lake = f"s3://{BUCKET}/lake"
    words = ["import", f"s3://{BUCKET}/logs/**", "--format", "parquet", "--out", lake, "--jobs", "1"]

    def killed(words: list[str], prefix: str, most: int) -> None:
        """Kill a command after a given number of objects."""
        process = start(["aigo-bridge", *words], cwd=tmp_path, env={**ENVIRONMENT, **s3.environment})
        try:
            wait_until(process, lambda: len([key for key in s3.names("lake/") if prefix in key]) >= most)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()

    killed(words, ".parquet", 2)
    killed(words, "lake/logs/part-", 1)
    faults = itertools.cycle([None, "error", None, None, "cut", None, None, None, "slow-down", None])
    with (
        faulty(s3.address, lambda method, path, number: next(faults)) as address,
        pytest.MonkeyPatch.context() as patch,
        reached(address, patch),
    ):
        patch.setenv("AWS_MAX_ATTEMPTS", "1")
        done = aigo(*words)
    assert done.code == 0, done.err
    assert aigo(*words).err == f"{lake}: 0 imported, 3 there already\n"
    killed(["lake", "compact", lake], "/by_task=sums/", 2)
    verified = aigo("lake", "verify", lake)
    assert verified.code == 0, verified.err
    compacted = aigo("lake", "compact", lake)
    assert compacted.code == 0, compacted.err
    assert aigo("lake", "verify", lake).code == 0
    counted = aigo("sql", "SELECT count(*) AS n FROM samples", lake)
    assert counted.code == 0, counted.err
    assert counted.out.split()[-1] == "6"
    # The evidence has the address of the log, not of local copies.
    evidence = DeltaTable(str(s3.take("lake/evidence", tmp_path / "evidence"))).to_pyarrow_table(
        columns=["line"]
    )
    sources = set(re.findall(r'"source_uri":"([^"]*)"', "".join(evidence.column("line").to_pylist())))
    assert sources == {f"s3://{BUCKET}/logs/{name}.eval" for name in ("a", "b", "c")}


def test_unsupported_storage_addresses_are_refused(s3: S3, aigo: Run, tmp_path: Path) -> None:
    out = f"s3://{BUCKET}/out"
    refusals = [
        (("view", out), "expected a local path"),
        (("init", out), "expected a local path"),
        (("upgrade", TASK, "--write"), "expected a local path"),
        (("run", TASK, "--model", f"scripted/{TASK}"), "must be local"),
        (("run", TASK, "--model", MODEL, "--out", "ftp://host/x"), "begins with s3://, gs://"),
        (("run", TASK, "--model", MODEL, "--out", "s3:/bucket/x"), "looks like an address"),
        (("run", TASK, "--model", MODEL, "--out", "s3://elsewhere/x"), "bucket 'elsewhere' does not exist"),
        (("run", f"s3://{BUCKET}/tasks/nothing.yaml", "--model", MODEL), f"s3://{BUCKET}/tasks/nothing.yaml"),
        (("stats", f"{out}/nothing.tasklog.json"), f"{out}/nothing.tasklog.json"),
        (("validate", f"{out}/nothing"), f"{out}/nothing"),
        (("merge", f"{out}/nothing", "--out", "here"), "is not a folder"),
        (("run", "gs://bucket/task.yaml", "--model", MODEL), "run: pip install 'gcsfs"),
        (
            ("attest", f"{out}/x.tasklog.json", "--key", f"{out}/key.pem"),
            "private keys must be local files",
        ),
    ]
    for words, expected in refusals:
        done = aigo(*words)
        assert done.code != 0, words
        assert expected in done.err, (words, done.err)
        assert "Traceback" not in done.err
    assert sorted(s3.names()) == sorted(f"tasks/capitals/{path.name}" for path in EXAMPLES.iterdir())
    assert not [path.name for path in tmp_path.iterdir() if ":" in path.name]


def test_task_in_storage_cannot_read_outside_its_folder(s3: S3, aigo: Run) -> None:
    s3.put("tasks/secret.yaml", "type: string_equals\n")
    text = (EXAMPLES / "task.yaml").read_text()
    for include in ("../secret.yaml", f"s3://{BUCKET}/tasks/secret.yaml", "/etc/passwd"):
        s3.put("tasks/capitals/task.yaml", text + f"tags: !include {include}\n")
        done = aigo("validate", TASK)
        assert done.code != 0, include
        assert f"{TASK}:" in done.err + done.out


def test_task_reads_rows_from_an_allowed_storage(
    s3: S3, aigo: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rows = (EXAMPLES / "capitals.jsonl").read_text().splitlines()
    s3.put("data/rows.jsonl", "\n".join(rows[:2]))
    text = (EXAMPLES / "task.yaml").read_text()
    (tmp_path / "task.yaml").write_text(text)
    (tmp_path / "capitals.yaml").write_text(
        f"key: capitals\ndisplay_name: C\nsource: {{type: url, url: 's3://{BUCKET}/data/rows.jsonl'}}\n"
    )
    words = ("run", "task.yaml", "--model", MODEL, "--json")
    place = f"s3://{BUCKET}/data"

    refused = aigo(*words)
    assert refused.code == 2
    assert f"--allow-url {place}" in refused.err
    assert not (tmp_path / "out").exists()
    assert aigo(*words, "--allow-url", f"s3://{BUCKET}/dat").code == 2
    assert "must be downloaded" in aigo("explain", "task.yaml", "--allow-url", place).err

    first = aigo(*words, "--allow-url", place)
    assert first.code == 0, first.err
    assert first.json["samples"]["scored"] == 2
    s3.put("data/rows.jsonl", "\n".join(rows))
    second = aigo(*words, "--allow-url", place)
    assert second.json["samples"]["scored"] == len(rows)

    s3.remove("data/rows.jsonl")
    gone = aigo(*words, "--allow-url", place)
    assert gone.code == 2
    assert f"'{place}/rows.jsonl' does not exist" in gone.err
    assert SECRET not in gone.err + second.err + first.out


def test_storage_address_as_project_default_is_refused(s3: S3, aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "aigo-bridge.toml").write_text(f'[run]\nout = "s3://{BUCKET}/out"\n')
    done = aigo("run", EXAMPLES / "task.yaml", "--model", MODEL)
    assert done.code == 2
    assert "addresses cannot be defaults" in done.err
    assert s3.names("out") == []


def test_output_that_cannot_be_uploaded_is_kept_locally(
    s3: S3, aigo: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("aigo_scale.storage.objects.TRIES", 1)

    def fault(method: str, path: str, number: int) -> str | None:
        return "error" if method == "PUT" and path.partition("?")[0].endswith((".json", ".eval")) else None

    with faulty(s3.address, fault) as address, reached(address, monkeypatch):
        done = aigo("run", TASK, "--model", MODEL, "--out", f"s3://{BUCKET}/out")
    assert done.code == 1
    assert "some files were not uploaded" in done.err
    assert "[AB811]" in done.err
    (kept,) = tmp_path.glob("aigo-bridge-unsent-*/s3/bucket/out")
    assert (kept / RESULT).is_file()
    assert s3.names(f"out/{RESULT}") == []
