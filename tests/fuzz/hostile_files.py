"""Targets for untrusted files: recordings, bundles and tasks with paths.

Random bytes rarely match a checksum, so two of the targets take the lines of a file and write it with valid checksums.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import zstandard

from aigo_bridge.errors import BridgeError, Issue

_DETAILS = re.compile(r"[\d'\"`].*")
_MOST_REPEATS = 2_000_000
_MOST_REPEATED = 8
_SECRET = "SECRET-51f8"


def recording(data: bytes, folder: Path) -> str:
    """Read a recording: the raw bytes, and its lines with valid checksums. `*` repeats the previous line."""
    from aigo_trust.recording.container import cassette_lines
    from aigo_trust.verification.recordings import check_cassette

    lines: list[bytes] = []
    for line in (b'{"cassette":1}', *data.split(b"\n")):
        if line == b"*" and len(lines) < _MOST_REPEATED:
            lines.append(lines[-1] * (_MOST_REPEATS // len(lines[-1]) + 1))
        else:
            lines.append(line + b"\n" if line.startswith(b"#") else b"%08x %s\n" % (zlib.crc32(line), line))
    outcomes = []
    for number, content in enumerate((data, b"".join(lines), zstandard.compress(b"".join(lines)))):
        path = folder / f"{number}.cassette"
        path.write_bytes(content)
        (folder / f"{number}.cassette.tail").write_bytes(data)
        issues: list[Issue] = []
        try:
            read = sum(1 for _ in cassette_lines(path, issues.append))
            outcomes.append(f"{min(read, 3)} {min(len(issues), 3)}")
        except BridgeError as error:
            outcomes.append(_DETAILS.sub("", str(error))[:40])
        assert len(issues) <= 10_000
        check_cassette(
            path, {"cassette": {"tasks": [{"name": "t", "checksums": data.decode("latin-1"), "lines": 1}]}}
        )
    return "; ".join(outcomes)


def bundle(data: bytes, folder: Path) -> str:
    """Read a bundle: the raw bytes, and one with a member for each line `name=content`. `+name` is not in the manifest."""
    from aigo_bridge.text.canonical_json import canonical_digest
    from aigo_trust.verification.bundling import FORMAT, MANIFEST

    members: dict[str, bytes] = {}
    unlisted: list[str] = []
    for line in data.split(b"\n")[:50]:
        name, _, content = line.partition(b"=")
        text = name.decode("utf-8", "replace").removeprefix("+").rstrip("*")[:1_000]
        members[text] = content * (1_000_000 // max(len(content), 1) if name.endswith(b"*") else 1)
        unlisted += [text] if name.startswith(b"+") else []
    digests = {name: "0" * 64 for name in members if name not in unlisted}
    described: dict[str, Any] = {
        "format": FORMAT,
        "members": digests,
        "result": next(iter(members)),
        "task": "task",
    }
    described["digest"] = canonical_digest(described)
    (folder / "raw.zip").write_bytes(data)
    with suppress(ValueError), zipfile.ZipFile(folder / "made.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, orjson.dumps(described))
        for member, content in members.items():
            archive.writestr(zipfile.ZipInfo(member), content, zipfile.ZIP_DEFLATED)
    return f"{_opened(folder, 'raw')}; {_opened(folder, 'made')}"


def _opened(folder: Path, name: str) -> str:
    from aigo_trust.verification.bundling import open_bundle

    inside = folder / name
    inside.mkdir()
    around = {path.name for path in folder.iterdir()}
    try:
        opened = open_bundle(folder / f"{name}.zip", inside)
        outcome = ", ".join(sorted({_DETAILS.sub("", finding.message)[:30] for finding in opened.findings}))
    except BridgeError as error:
        outcome = _DETAILS.sub("", str(error))[:40]
    assert {path.name for path in folder.iterdir()} == around
    assert not any(path.is_symlink() for path in inside.rglob("*"))
    assert sum(path.stat().st_size for path in inside.rglob("*") if path.is_file()) < 200 << 20
    return outcome


def paths(data: bytes, folder: Path) -> str:
    """Read a hostile task in a project with secrets. Each line is used as the path in every path field."""
    stranger = _project(folder)
    outcomes = set()
    for line in data.decode("utf-8", "replace").split("\n")[:5]:
        path = json.dumps(line.replace("ROOT", str(folder)))
        for text in (
            _TASK % f"!include {path}",
            _TASK % '"{{ sample.q }}"' + f"extra: {{$ref: {path}}}\n",
            _TASK % '"{{ sample.q }}"',
        ):
            (stranger / "task.yaml").write_text(text, encoding="utf-8")
            for source in ({"type": "local", "file_path": line}, {"type": "folder", "directory_path": line}):
                dataset = {"key": "rows", "display_name": "R", "source": source}
                (stranger / "rows.yaml").write_text(json.dumps(dataset), encoding="utf-8")
                outcomes.add(_read(stranger))
    return "; ".join(sorted(outcomes))


_TASK = """key: t
display_name: T
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: %s}]}
  scorers: [{type: string_equals, ground_truth: "x"}]
"""


def _project(folder: Path) -> Path:
    stranger = folder / "tasks" / "stranger"
    stranger.mkdir(parents=True)
    for place in (".git", ".hidden", "ignored"):
        (folder / place).mkdir()
        (folder / place / "config").write_text(_SECRET, encoding="utf-8")
    (folder / ".gitignore").write_text("ignored*\n", encoding="utf-8")
    for name in (".env", "server.pem", "ignored.txt", ".rows.jsonl", "ignored.jsonl", "tasks/.env"):
        (folder / name).write_text(json.dumps({"q": _SECRET}) + "\n", encoding="utf-8")
    (stranger / "link").symlink_to("../../.env")
    (stranger / "up").symlink_to("../..")
    return stranger


def _read(stranger: Path) -> str:
    from aigo_bridge.evaluation.task import plan
    from aigo_bridge.evaluation.validation import validate
    from aigo_bridge.plan.plan import PlanOrigin

    (report,) = validate([stranger / "task.yaml"])
    said = [*map(str, report.issues), *report.files]
    outcome = "planned"
    try:
        made = plan(PlanOrigin(str(stranger / "task.yaml")))
        said += [str(made.definition), str([sample.data for sample in made.samples])]
    except BridgeError as error:
        said.append(str(error))
        outcome = _DETAILS.sub("", str(error))[:30]
    assert _SECRET not in "".join(said)
    return outcome
