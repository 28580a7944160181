"""Keys of twelve kinds in twenty places, on both engines: no key is in any written or printed byte."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.support.commands import ENVIRONMENT, Finished
from tests.support.endpoint import Endpoint, Raw, completion, delta, events
from tests.support.forked import finished
from tests.support.unwritten import contents, leaks


def made(kind: str, length: int = 24) -> str:
    """Return letters and digits that occur in no other file, always equal for one kind."""
    digits = "".join(format(ord(char) * 7919 + at * 104729, "x") for at, char in enumerate(kind * 40))
    return "".join(chr(ord("A") + int(pair, 16) % 26) + pair[0] for pair in re.findall("..", digits))[:length]


KEYS = {
    "PROVIDER_API_KEY": f"sk-proj-{made('provider', 40)}",
    "ODD_SECRET": f"{made('odd', 10)}/+\"={made('odd2', 10)}\\'&<{made('odd3', 10)}>",
    "WEB_TOKEN": ".".join(f"ey{made(part, 30)}" for part in ("head", "body", "sign")),
    "PEM_PRIVATE_KEY": "\n".join(
        [
            "-----BEGIN PRIVATE KEY-----",
            *(made(f"pem{line}", 48) for line in range(4)),
            "-----END PRIVATE KEY-----",
        ]
    ),
    "UUID_API_KEY": "0f6b2c1e-93d4-4e7a-a1b8-5c2d7e9f4a63",
    "HEX_ACCESS_KEY": base64.b16encode(made("hex", 20).encode()).decode().lower(),
    "SHARED_ACCESS_KEY": base64.b64encode(made("shared", 31).encode()).decode(),
    "SITE_PASSWORD": f"pässwort {made('site', 9)} für {made('site2', 9)}",
    "NUMBER_TOKEN": "48151623423141592",
    "DATABASE_URL": f"postgres://someone:{made('database', 14)}%2F{made('d2', 10)}@db.example:5432/x",
    "LONG_CREDENTIAL": made("long", 220),
    "SHORT_PASSWORD": "h8Kq2mZx",
}
"""The kinds, by the variables that they are in."""
SECRETS = [
    made("database", 14) if name == "DATABASE_URL" else value
    for name, value in KEYS.items()
    if "PEM" not in name
]
SECRETS += KEYS["PEM_PRIVATE_KEY"].splitlines()[1:-1]
ALL = " ".join(KEYS.values())
HEADER = " ".join(value for value in KEYS.values() if value.isascii() and value.isprintable())


def escaped(text: str) -> str:
    return "".join(f"\\u{unit:04x}" for unit in memoryview(text.encode("utf-16-le")).cast("H"))


def page(status: int, body: str, kind: str = "text/html", **headers: str) -> Raw:
    return Raw((body.encode(),), status=status, headers={"Content-Type": kind, **headers})


def in_pieces(text: str, size: int = 3) -> Raw:
    pieces = [delta(text[at : at + size]) for at in range(0, len(text), size)]
    return events(*pieces, delta(finish="stop"))


def with_tokens(text: str) -> dict[str, Any]:
    body = completion(text)
    tokens = [text[at : at + 4] for at in range(0, len(text), 4)]
    body["choices"][0]["logprobs"] = {
        "content": [
            {"token": t, "logprob": -0.1, "bytes": list(t.encode()), "top_logprobs": []} for t in tokens
        ]
    }
    return body


def called(text: str) -> dict[str, Any]:
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "look", "arguments": json.dumps({"at": text})},
    }
    body = completion("", tool_calls=[call])
    body["choices"][0]["finish_reason"] = "tool_calls"
    return body


PLACES: dict[str, Callable[[], tuple[int, dict[str, Any]] | Raw]] = {
    "error body": lambda: (401, {"error": {"message": f"Incorrect API key provided: {ALL}", "key": ALL}}),
    "error body, all escaped": lambda: page(
        403, f'{{"error": {{"message": "{escaped(ALL)}"}}}}', "application/json"
    ),
    "error page": lambda: page(400, f"<html><body><p>{html.escape(ALL)}</p></body></html>"),
    "error page, all escaped": lambda: page(400, "<p>" + "".join(f"&#{ord(c)};" for c in ALL) + "</p>"),
    "json in json": lambda: (422, {"detail": json.dumps({"input": json.dumps({"authorization": ALL})})}),
    "query": lambda: page(404, f"no such path /x?key={quote(ALL, safe='')}", "text/plain"),
    "basic authorization": lambda: (
        400,
        {
            "error": {
                "message": " ".join(base64.b64encode(f"me:{key}".encode()).decode() for key in KEYS.values())
            }
        },
    ),
    "header": lambda: Raw(
        (json.dumps(completion("ok")).encode(),),
        headers={"X-Request-Id": HEADER, "X-Echo": f"Bearer {HEADER}"},
    ),
    "redirect": lambda: page(302, "moved", Location=f"http://127.0.0.1:1/v1?api_key={quote(ALL, safe='')}"),
    "answer": lambda: (200, completion(f"your keys are {ALL}")),
    "answer, all escaped": lambda: page(
        200, json.dumps(completion("TEXT")).replace("TEXT", escaped(ALL)), "application/json"
    ),
    "answer, slashes escaped": lambda: page(
        200, json.dumps(completion(ALL)).replace("/", "\\/").replace("-", "\\u002d"), "application/json"
    ),
    "answer, base64": lambda: (200, completion(base64.b64encode(f"x{ALL}".encode()).decode())),
    "reasoning": lambda: (200, completion("ok", reasoning_content=f"hm, {ALL}", reasoning=f"hm, {ALL}")),
    "refusal": lambda: (200, completion("", refusal=f"no: {ALL}")),
    "tool arguments": lambda: (200, called(ALL)),
    "tokens": lambda: (200, with_tokens(ALL)),
    "no json": lambda: page(200, f"welcome {ALL}", "text/plain"),
    "name of the model": lambda: (
        200,
        {**completion("ok"), "model": ALL, "id": ALL, "system_fingerprint": ALL},
    ),
    "stream": lambda: in_pieces(f"yes {ALL}."),
    "call again": lambda: (200, completion(f"at last {ALL}")),
}


CALLED_AGAIN = ("redirect", "no json", "stream", "call again")
"""After these Inspect's own client is called again for minutes."""
UNREADABLE = ("no json", "stream")
"""After these every other client is; `test_unreadable_replies.py` has them, without the waits."""


def answers() -> Callable[[Any], tuple[int, dict[str, Any]] | Raw]:
    """Server that repeats all keys as the row requests; one call must be repeated."""
    refused: list[str] = []

    def answer(asked: Any) -> tuple[int, dict[str, Any]] | Raw:
        text = json.dumps(asked)
        if "<call again>" in text and not refused:
            refused.append(text)
            return page(429, json.dumps({"error": {"message": f"slow down, {ALL}"}}), **{"Retry-After": "0"})
        return answering(asked)

    return answer


def answering(asked: Any) -> tuple[int, dict[str, Any]] | Raw:
    text = json.dumps(asked)
    found = [name for name in PLACES if f"<{name}>" in text]
    return PLACES[found[0]]() if found else (200, completion("ok"))


SOLVER = """\
import sys
async def run_solver(sample, model, trace):
    print("printed", sample["note"])
    print("printed", sample["note"], file=sys.stderr)
    if "raise" in sample["q"]:
        raise ValueError("raised " + sample["note"])
    trace.append_chat_completion_messages([{"role": "user", "content": sample["q"] + " " + sample["note"]}])
    trace.add_model_response(await model.predict(trace.items))
    return trace
"""


def write(folder: Path, url: str) -> None:
    """Write a task whose rows, prompt and code contain all keys, and a model entity whose adapter repeats its input."""
    folder.mkdir()
    rows = [{"q": f"<{name}>", "note": "-"} for name in PLACES]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "own.jsonl").write_text(
        "".join(
            json.dumps({"q": q, "note": ALL, KEYS["PROVIDER_API_KEY"]: 1}) + "\n"
            for q in ("<answer>", "raise", "<refusal>")
        )
    )
    head = 'key: KEY\ndisplay_name: "T"\ndescription: ""\ndefinition:\n  dataset: {key: ROWS}\n'
    scorers = (
        "  scorers:\n    - {type: string_equals, ground_truth: nothing}\n    - type: python\n      key: own\n"
    )
    scorers += "      metrics: [{type: mean, field: n}]\n      compute_scores_snippet: |\n        def compute_scores(sample, solver_output):\n"
    scorers += "            raise ValueError(str(solver_output))\n"
    prompt = "  solver:\n    type: single_turn_solver\n    input_builder: {type: chat_completion, input_messages: [{role: user, content: '{{ sample.q }}'}]}\n"
    (folder / "echoed.yaml").write_text(
        head.replace("KEY", "echoed").replace("ROWS", "rows") + prompt + scorers
    )
    solver = "".join(f"      {line}\n" for line in SOLVER.splitlines())
    (folder / "own.yaml").write_text(
        head.replace("KEY", "own").replace("ROWS", "own").replace('"T"', json.dumps(f"T {ALL}"))
        + f"  solver:\n    type: python\n    run_solver_snippet: |\n{solver}"
        + scorers
    )
    (folder / "m.yaml").write_text(
        f"""
key: m
display_name: M
secrets: {{K: $PROVIDER_API_KEY, O: $ODD_SECRET}}
config:
  connection_type: custom_connection
  url: {url.replace("//", "//me:" + quote(KEYS["SHORT_PASSWORD"]) + "@")}/chat/completions?sig={made("sig", 20)}
  api_key: << secrets.K >>
  custom_headers: {{X-Auth: << secrets.O >>, X-Own: $UUID_API_KEY}}
  model_key: m
  adapter: {{key: own}}
""".replace("UUID_API_KEY", "UUID_API_KEY")
    )
    (folder / "model_adapters").mkdir()
    (folder / "model_adapters" / "own.yaml").write_text(
        """
key: own
display_name: Own
process_input:
  language: jinja
  source_code: |
    {"model": {{ model_info.model_key | tojson }}, "messages": {{ input.messages | tojson }}}
process_output:
  language: jinja
  source_code: |
    {% if status_code != 200 %}{"error": {{ ("adapter saw " ~ body) | tojson }}}{% else %}{% set found = body | fromjson %}
    {"choices": [{"message": {"role": "assistant", "content": {{ (found.choices[0].message.content or found.choices[0].message.refusal or "-") | tojson }}}}]}{% endif %}
"""
    )


HOMES = {"XDG_DATA_HOME": "data", "XDG_CACHE_HOME": "cache"}
STORED = {"HEX_ACCESS_KEY", "NUMBER_TOKEN"}
"""Keys that stand in `.env`."""


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders shared by all commands: Inspect's traces, buffers and caches."""
    folder = tmp_path_factory.mktemp("homes")
    for name in HOMES.values():
        (folder / name).mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def environment(homes: Path) -> dict[str, str]:
    """Return all keys except those in `.env`."""
    keys = {name: value for name, value in KEYS.items() if name not in STORED}
    return {**ENVIRONMENT, **keys, **{name: str(homes / folder) for name, folder in HOMES.items()}}


@pytest.fixture
def run(
    endpoint: Endpoint,
    tmp_path: Path,
    environment: dict[str, str],
) -> Callable[..., Finished]:
    """Run a command in its own folder, with all keys in its environment or `.env` and a server that repeats them."""
    endpoint.answer = answers()
    place, inputs = tmp_path / "work", tmp_path / "in"
    (place / "tmp").mkdir(parents=True)
    write(inputs, endpoint.url)
    (inputs / "env").write_text("".join(f"{name}={KEYS[name]}\n" for name in STORED))
    local = {"LOCAL_BASE_URL": endpoint.url, "LOCAL_API_KEY": KEYS["PROVIDER_API_KEY"]}
    variables = {**environment, **local, "TMPDIR": str(place / "tmp")}

    def start(*args: object) -> Finished:
        (place / ".env").write_bytes((inputs / "env").read_bytes())
        done = finished(["aigo-bridge", *args], cwd=place, env=variables, timeout=150)
        (place / ".env").unlink()
        return Finished(done.returncode, done.stdout, done.stderr)

    return start


def assert_unwritten(folder: Path, homes: Path, *runs: Finished) -> None:
    written = [*contents(folder), *contents(homes)]
    for done in runs:
        written += [("stdout", done.out.encode()), ("stderr", done.err.encode())]
    found = [leak for name, data in written for leak in leaks(name, data, [*SECRETS, made("sig", 20)])]
    assert found == [], "\n".join(found)


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
@pytest.mark.parametrize("model", ["openai-api/local/m", "m.yaml"])
def test_keys_repeated_by_a_server_are_removed(
    run: Callable[..., Finished], tmp_path: Path, homes: Path, engine: str, model: str
) -> None:
    inputs = tmp_path / "in"
    name = model if "local" in model else inputs / model
    options = ("--engine", engine, "--model", name)
    slow = CALLED_AGAIN if (engine, model) == ("inspect", "openai-api/local/m") else UNREADABLE
    rows = (inputs / "rows.jsonl").read_text().splitlines(keepends=True)
    kept = [row for row in rows if not any(f"<{place}>" in row for place in slow)]
    (inputs / "rows.jsonl").write_text("".join(kept))

    by_program = ["--json"] if engine == "lighteval" else []
    done = run("run", inputs / "echoed.yaml", *options, *by_program)

    assert done.code == 1, done.err
    assert not by_program or json.loads(done.out)
    assert_unwritten(tmp_path / "work", homes, done)
    evidence = (tmp_path / "work" / "out" / "echoed.tasklog.json").read_text()
    assert evidence.count("[secret]") > 12
    assert "your keys are [secret]" in evidence


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_keys_printed_by_a_task_and_its_code_are_removed(
    run: Callable[..., Finished], tmp_path: Path, homes: Path, engine: str
) -> None:
    """Rows, names, printed and raised text, and an address with a password as the model."""
    inputs = tmp_path / "in"
    address = KEYS["DATABASE_URL"].replace("postgres", "http")
    task = inputs / "own.yaml"

    done = run("run", task, "--engine", engine, "--model", "openai-api/local/m")
    verbs: list[tuple[object, ...]] = [("export", task, "--to", engine, "--out", "exported")]
    if engine == "inspect":
        verbs = [
            ("explain", task, "--json"),
            ("run", task, "--model", address),
            ("export", "out/own.tasklog.json", "--to", "inspect-log", "--out", "log"),
            ("import", "out", "--out", "tables", "--format", "parquet"),
            *verbs,
        ]
    shown = [run(*verb) for verb in verbs]

    assert done.code == 1, done.err
    assert shown[-1].code == 2
    assert "rows" in shown[-1].err or "own" in shown[-1].err
    assert "would contain a known secret" in shown[-1].err
    assert not (tmp_path / "work" / "exported").exists()
    assert_unwritten(tmp_path / "work", homes, done, *shown)
    evidence = (tmp_path / "work" / "out" / "own.tasklog.json").read_text()
    assert "raised [secret]" in evidence
