"""Hostile logs in a lake: no name leaves the lake, no log affects another, and no file contains a secret."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships none
import pytest
from tests.support.commands import Run
from tests.support.lakes import make_log

NAMES = [
    "../../outside",
    "/etc/passwd",
    "..",
    "a/b=c/task=other",
    "x" * 5_000,
    "line\nfeed\x00\x1b[31m",
    "東京 🙂 %2e%2e",
    "__HIVE_DEFAULT_PARTITION__",
    "con.parquet",
]


@pytest.mark.parametrize("field", ["task", "model", "run"])
def test_hostile_names_stay_in_the_lake_and_are_read_back(field: str, aigo: Run, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for number, name in enumerate(NAMES):
        names: dict[str, Any] = {"run": f"run-{number}", field: name}
        make_log(home / "logs" / f"{number}.eval", **names)
    before = {path for path in tmp_path.rglob("*") if home / "lake" not in path.parents}
    done = aigo("import", "home/logs", "--lake", "home/lake")
    assert done.code == 0, done.err
    after = {path for path in tmp_path.rglob("*") if home / "lake" not in path.parents}
    assert after - before == {home / "lake"}
    files = list((home / "lake").rglob("*.parquet"))
    assert all(file.resolve().is_relative_to((home / "lake").resolve()) for file in files)
    assert all(len(part.encode()) <= 255 for file in files for part in file.parts)
    query = "SELECT task, model FROM scores GROUP BY 1, 2"
    done = aigo("sql", query, "home/lake", "--out", "names.parquet")
    assert done.code == 0, done.err
    rows = pq.read_table(tmp_path / "names.parquet").to_pylist()
    # A task has a key of letters and digits, another one for each name.
    assert len(rows) == (1 if field == "run" else len(NAMES))
    assert field != "model" or {row["model"] for row in rows} == set(NAMES)
    checked = aigo("lake", "verify", "home/lake")
    assert checked.code == 0, checked.out + checked.err


def test_zip_bomb_does_not_affect_other_logs(aigo: Run, tmp_path: Path) -> None:
    make_log(tmp_path / "logs" / "good.eval", run="good")
    bomb = make_log(tmp_path / "logs" / "bomb.eval", run="bomb")
    with zipfile.ZipFile(bomb, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/bomb_epoch_1.json", b'{"id": "bomb", "x": "' + b"a" * (140 << 20) + b'"}')
    done = aigo("import", "logs", "--lake", "lake", "--json")
    assert "Traceback" not in done.err
    reports = {Path(report["log"]).name: report for report in json.loads(done.out)}
    assert not reports["good.eval"]["unreadable"]
    assert reports["bomb.eval"]["unreadable"]


def test_local_secret_is_in_no_lake_file(aigo: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-Kq7vN2pL9xWz4tRb8mYd"
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    log = make_log(tmp_path / "log.eval", run="run")
    with zipfile.ZipFile(log) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(log, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content.replace(b'"t"', json.dumps(secret).encode()))
    assert secret.encode() in b"".join(zipfile.ZipFile(log).read(name) for name in members)
    done = aigo("import", "log.eval", "--lake", "lake")
    assert done.code == 0, done.err
    for path in (tmp_path / "lake").rglob("*"):
        if path.suffix == ".parquet":
            assert secret not in json.dumps(pq.read_table(path).to_pylist(), default=str)
        elif path.is_file():
            assert secret.encode() not in path.read_bytes()
