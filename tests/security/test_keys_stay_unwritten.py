"""A key echoed by a server or by other code is in no written or printed byte."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import REPOSITORY, Run
from tests.support.endpoint import Endpoint, Raw, completion

KEY = 'sk-live/Zq9x-7tH2_pLw"8vN'
"""With characters that JSON, addresses and pages spell otherwise than they are."""
OTHER = "0123-other-secret-9876"
"""Of another provider, and sent to nobody."""
PARTS = ("Zq9x-7tH2", "other-secret", base64.b64encode(b"Zq9x-7tH2_pLw")[2:14].decode())


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch, endpoint: Endpoint, tmp_path: Path) -> dict[str, str]:
    """Local server whose key is in the environment."""
    environment = {
        "LOCAL_BASE_URL": endpoint.url,
        "LOCAL_API_KEY": KEY,
        "OTHER_SERVICE_TOKEN": OTHER,
        # Inspect's trace files and buffers are below these.
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return environment


def contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Return all bytes below a folder, with archives and columns decompressed."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        data = path.read_bytes()
        yield str(path), data
        if zipfile.is_zipfile(path):
            yield from members(path)
        elif path.suffix == ".parquet":
            import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships none

            yield str(path), json.dumps(pq.read_table(path).to_pylist(), default=str).encode()


def members(path: Path) -> Iterator[tuple[str, bytes]]:
    import inspect_ai._util.zipfile  # noqa: F401  # teaches zipfile Zstandard

    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
        for name in archive.namelist():
            yield f"{path}:{name}", archive.read(name)


def assert_unwritten(folder: Path, *shown: str) -> None:
    found = [name for name, data in contents(folder) for part in PARTS if part.encode() in data]
    assert found == []
    assert [text for text in shown for part in PARTS if part in text] == []


def write_task(folder: Path, question: str = "{{ sample.q }}") -> None:
    (folder / "rows.jsonl").write_text("".join(json.dumps({"q": f"q{n}"}) + "\n" for n in range(8)))
    (folder / "task.yaml").write_text(
        f"""
key: t
display_name: T
description: ""
definition:
  dataset: {{key: rows}}
  solver:
    type: single_turn_solver
    input_builder: {{type: chat_completion, input_messages: [{{role: user, content: {json.dumps(question)}}}]}}
  scorers:
    - {{type: string_equals, ground_truth: "yes"}}
"""
    )


def echo(body: Any) -> Any:
    """Refuse a request with the key in varying messages."""
    asked = json.dumps(body)
    basic = base64.b64encode(f"me:{KEY}".encode()).decode()
    if "q0" in asked:
        return 401, {"error": {"message": f"Incorrect API key provided: {KEY}", "key": KEY}}
    if "q1" in asked:
        text = (
            json.dumps({"error": {"message": f"{OTHER} or {KEY}"}})
            .replace("/", "\\/")
            .replace("-", "\\u002d")
        )
        return Raw((text.encode(),), status=403)
    if "q2" in asked:
        page = f"<html><body>denied: {KEY.replace(chr(34), '&quot;')} {OTHER}</body></html>"
        return Raw((page.encode(),), status=400, headers={"Content-Type": "text/html"})
    if "q3" in asked:
        return 422, {"detail": [{"loc": ["header", "authorization"], "input": f"Basic {basic}"}]}
    if "q4" in asked:
        return Raw(
            (f"no such deployment ?key={KEY.replace('/', '%2F').replace(chr(34), '%22')}".encode(),),
            status=404,
        )
    if "q5" in asked:
        # Long enough to be cut somewhere.
        return 400, {"error": {"message": "x" * 190 + KEY + "y" * 200}}
    if "q6" in asked:
        return 200, completion(f"your key is {KEY}, theirs is {OTHER}")
    return 200, completion(f"{base64.b64encode(OTHER.encode()).decode()}")


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_keys_echoed_by_a_server_are_removed(
    command: Run, endpoint: Endpoint, keys: dict[str, str], tmp_path: Path, engine: str
) -> None:
    write_task(tmp_path)
    endpoint.answer = echo

    done = command(
        "aigo-bridge",
        "run",
        "task.yaml",
        "--model",
        "openai-api/local/m",
        "--engine",
        engine,
        *([] if engine == "inspect" else ["--json"]),
    )

    assert done.code == 1, done.err
    assert f"Bearer {KEY}" in {headers["authorization"] for headers in endpoint.headers}
    assert "[secret]" in done.out
    assert_unwritten(tmp_path, done.out, done.err)
    evidence = (tmp_path / "out" / "t.tasklog.json").read_text()
    assert "Incorrect API key provided: [secret]" in evidence
    assert "your key is [secret], theirs is [secret]" in evidence


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_keys_of_model_files_are_removed(
    aigo: Run, endpoint: Endpoint, keys: dict[str, str], tmp_path: Path, engine: str
) -> None:
    write_task(tmp_path)
    (tmp_path / "m.yaml").write_text(
        f"""
key: m
display_name: M
secrets: {{K: $LOCAL_API_KEY}}
config:
  connection_type: custom_connection
  url: {endpoint.url}/chat/completions
  api_key: << secrets.K >>
  model_key: m
  adapter: {{key: latticeflow$openai_chat_completion}}
"""
    )
    endpoint.answer = echo

    done = aigo("run", "task.yaml", "--model", "m.yaml", "--engine", engine)

    assert done.code == 1, done.err
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"
    assert_unwritten(tmp_path, done.out, done.err)


def test_keys_in_inspect_benchmarks_are_removed(
    aigo: Run, endpoint: Endpoint, keys: dict[str, str], tmp_path: Path
) -> None:
    """Also for models created by the task and text written by its code."""
    (tmp_path / "own.py").write_text(
        """
import os
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.solver import generate, solver


@solver
def asks_another():
    async def solve(state, generate):
        state.metadata["seen"] = os.environ["OTHER_SERVICE_TOKEN"]
        if state.input_text == "q6":
            return await generate(state)
        output = await get_model("openai-api/local/own").generate(state.input_text)
        state.output = output
        return state
    return solve


@scorer(metrics=[accuracy()])
def tells():
    async def score(state, target):
        return Score(value="C", explanation=os.environ["LOCAL_API_KEY"])
    return score


@task
def t():
    return Task([Sample(f"q{n}") for n in range(8)], solver=asks_another(), scorer=tells())
"""
    )
    endpoint.answer = echo

    done = aigo("run", "inspect:own.py", "--model", "openai-api/local/m")

    assert done.code == 1, done.err
    (tmp_path / "own.py").unlink()
    assert_unwritten(tmp_path, done.out, done.err)
    assert "Incorrect API key provided: [secret]" in (tmp_path / "out" / "t.tasklog.json").read_text()


LONG = "sk-proj-" + base64.urlsafe_b64encode(bytes(range(7, 124))).decode()
"""Longer than a line: a coloured traceback has it in pieces."""


def test_keys_split_over_traceback_lines_are_removed(
    aigo: Run,
    command: Run,
    endpoint: Endpoint,
    keys: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In logs of own runs and in evidence of foreign logs."""
    monkeypatch.setenv("LOCAL_API_KEY", LONG)
    (tmp_path / "own.py").write_text(
        """
import os
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.solver import generate, solver


@solver
def fails():
    async def solve(state, generate):
        raise ValueError(f"refused: {os.environ['LOCAL_API_KEY']}")
    return solve


@task
def asks():
    return Task([Sample("q")], solver=generate())


@task
def breaks():
    return Task([Sample("q")], solver=fails())
"""
    )
    endpoint.answer = lambda _: (401, {"error": {"message": f"Incorrect API key provided: {LONG}"}})
    model = ("--model", "openai-api/local/m")

    shown = [aigo("run", f"inspect:own.py@{task}", *model) for task in ("asks", "breaks")]
    assert [done.code for done in shown] == [1, 1]
    foreign = command("inspect", "eval", "own.py", *model, "--log-dir", "foreign", "--display", "none")
    assert "Traceback" in (foreign.out + foreign.err) or foreign.code in (0, 1)
    assert aigo("import", "foreign", "--out", "evidence").code in (0, 3)

    written = [tmp_path / "out", tmp_path / "evidence"]
    pieces = [LONG[at : at + 20].encode() for at in range(0, len(LONG) - 20, 5)]
    assert [
        name for folder in written for name, data in contents(folder) if any(p in data for p in pieces)
    ] == []
    assert not any(piece.decode() in done.out + done.err for done in shown for piece in pieces)


def test_keys_in_lighteval_tasks_are_removed(
    aigo: Run, endpoint: Endpoint, keys: dict[str, str], tmp_path: Path
) -> None:
    rows = [{"question": f"q{n}", "answer": f"{n} #### {n}"} for n in range(8)]
    (tmp_path / "rows").mkdir()
    for split in ("train", "test"):
        (tmp_path / "rows" / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    endpoint.answer = echo

    done = aigo("run", "lighteval:gsm8k", "--data-dir", "rows", "--model", "openai-api/local/m")

    assert done.code == 1, done.err
    assert_unwritten(tmp_path, done.out, done.err)
    (result,) = (tmp_path / "out").glob("*.tasklog.json")
    assert "Incorrect API key provided: [secret]" in result.read_text()


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_keys_in_rows_and_answers_are_removed(
    aigo: Run, keys: dict[str, str], tmp_path: Path, engine: str
) -> None:
    """Without a server that echoes them."""
    write_task(tmp_path, f"{{{{ sample.q }}}} {KEY}")
    (tmp_path / "a.jsonl").write_text(json.dumps({"default": True, "reply": f"{OTHER} {KEY}"}) + "\n")

    done = aigo("run", "task.yaml", "--model", "scripted/a.jsonl", "--engine", engine)

    assert done.code == 0, done.err
    for name in ("task.yaml", "a.jsonl"):
        (tmp_path / name).unlink()
    assert_unwritten(tmp_path, done.out, done.err)


@pytest.mark.parametrize("form", ["eval", "json"])
def test_keys_in_logs_of_inspect_eval_are_removed(
    command: Run, keys: dict[str, str], tmp_path: Path, form: str
) -> None:
    write_task(tmp_path, f"{{{{ sample.q }}}} {KEY}")
    (tmp_path / "a.jsonl").write_text(json.dumps({"default": True, "reply": f"{OTHER} {KEY}"}) + "\n")
    task = ("aigo_bridge/task", "-T", "task=task.yaml", "--model", "scripted/a.jsonl")

    done = command("inspect", "eval", *task, "--log-format", form, "--log-dir", "logs", "--display", "none")

    assert done.code == 0, done.err
    assert_unwritten(tmp_path / "logs")
    assert len(list((tmp_path / "logs").glob(f"*.{form}"))) == 1


def test_a_finished_log_with_a_key_is_rewritten(tmp_path: Path) -> None:
    """Inspect's output is redacted while it is written, and checked again when it is complete."""
    import inspect_ai._util.zipfile  # noqa: F401  # teaches zipfile Zstandard

    from aigo_bridge.redaction.secrets import KNOWN
    from aigo_inspect.models.secrets import clean_log

    path = tmp_path / "a.eval"
    members = {
        "header.json": {"status": "success"},
        "samples/1_epoch_1.json": {"input": f"it is {KEY}", "n": 2.5},
    }
    with zipfile.ZipFile(path, "w", 93) as log:
        for name, content in members.items():
            log.writestr(name, json.dumps(content))
    before = path.read_bytes()

    assert not clean_log(path)
    assert path.read_bytes() == before
    KNOWN.learn([KEY])
    assert clean_log(path)

    with zipfile.ZipFile(path) as log:
        assert {info.filename: info.compress_type for info in log.infolist()} == dict.fromkeys(members, 93)
        assert json.loads(log.read("header.json")) == members["header.json"]
        assert json.loads(log.read("samples/1_epoch_1.json")) == {"input": "it is [secret]", "n": 2.5}


def test_ordinary_values_are_not_redacted(aigo: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables with names like secrets whose values are words, numbers, field names or file names."""
    capitals = REPOSITORY / "examples" / "capitals"
    ordinary = {
        "USE_TOKEN": "true",
        "TEST_KEY": "1",
        "API_KEY": "test",
        "COUNTRY_SECRET": "Australia",
        "FIELD_KEY": "solver_output",
        "TOKEN_BUDGET": "100000000000",
        "DATA_KEY": str(capitals / "capitals.jsonl"),
    }
    for name, value in ordinary.items():
        monkeypatch.setenv(name, value)

    shown = aigo("run", capitals, "--model", f"scripted/{capitals / 'answers.jsonl'}")

    assert shown.code == 0, shown.err
    text = (tmp_path / "out" / "capitals.tasklog.json").read_text()
    assert "[secret]" not in text + shown.out + shown.err
