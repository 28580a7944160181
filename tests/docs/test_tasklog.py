"""`docs/reference/result-log.md` is complete and correct: it matches the evidence types and the log of a run."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.docs.field_tables import TASKLOG, marked, stale
from tests.support.commands import REPOSITORY, Run
from tests.support.consoles import Reader, squeezed

from aigo_bridge.spec.wording import tag_of_model

(PAGE,) = TASKLOG.pages
LOG, FAILED = [json.loads(block.text) for block in PAGE.blocks if block.kind == "json"]
CAPITALS = "examples/capitals"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder in which the first task of the README was run."""
    folder = tmp_path_factory.mktemp("reader")
    shutil.copytree(REPOSITORY / "examples", folder / "examples")
    reader = Reader(folder)
    reader.run(f"aigo-bridge run {CAPITALS} --model scripted/{CAPITALS}/answers.jsonl")
    return folder


def differences(shown: Any, real: Any, place: str = "") -> list[str]:
    """Return differences to the real values; `…` matches anything, or one list element, and no key may be missing."""
    if shown == "…":
        return []
    if isinstance(shown, dict) and isinstance(real, dict):
        names = [] if set(shown) == set(real) else [f"{place}: has {sorted(real)}"]
        return names + [
            each for key in shown for each in differences(shown[key], real.get(key), f"{place}.{key}")
        ]
    if isinstance(shown, list) and isinstance(real, list) and len(shown) == len(real):
        pairs = enumerate(zip(shown, real, strict=True))
        return [each for number, pair in pairs for each in differences(*pair, f"{place}[{number}]")]
    return [] if shown == real else [f"{place}: is {real!r}"]


def test_the_tables_are_current() -> None:
    assert stale(TASKLOG) == {}, "make field-tables"


def test_every_class_has_a_table_or_is_named() -> None:
    assert set(TASKLOG.classes) - set(marked([PAGE])) == set()
    assert [each.__name__ for each in TASKLOG.elsewhere if f"`{each.__name__}`" not in PAGE.text] == []


def test_every_field_table_is_under_the_type_name() -> None:
    for name, section in marked([PAGE]).items():
        model = TASKLOG.classes.get(name)
        assert model is None or section.title == (f"`{tag_of_model(model)}`" if tag_of_model(model) else name)


def test_excerpt_matches_the_log(folder: Path) -> None:
    real = json.loads((folder / "out" / "capitals.tasklog.json").read_text())

    assert differences(LOG, real) == []


def test_wrong_excerpt_is_found() -> None:
    shown = {"a": [1, "…"], "b": {"c": "…"}}
    assert differences(shown, {"a": [1, 2], "b": {"c": {}}}) == []
    assert differences(shown, {"a": [2, 2], "b": {"d": 1}}) == [".a[0]: is 2", ".b: has ['d']"]


def test_a_failed_sample_looks_as_shown(aigo: Run, tmp_path: Path, result_of: Any) -> None:
    answers = [
        {"match": {"contains": "Norway"}, "reply": {"error": "content policy", "status": 400}},
        {"default": True, "reply": "Lima"},
    ]
    (tmp_path / "shaky.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in answers))

    done = aigo("run", REPOSITORY / CAPITALS, "--model", "scripted/shaky.jsonl")

    assert done.code == 1
    log = result_of(tmp_path / "out" / "capitals.tasklog.json")
    assert log["status"] == "success"
    assert log["evidence"]["failures"] == {"num_errors": 1, "num_total": 4}
    assert log["evidence"]["metrics"][0]["values"] == {"Accuracy": pytest.approx(1 / 3)}
    assert differences(FAILED, log["evidence"]["samples"][0]["trials"][0]) == []


def test_python_examples_print_the_shown_output(folder: Path) -> None:
    (code,) = [block.text for block in PAGE.blocks if block.kind == "python"]
    (shown,) = [block.text for block in PAGE.blocks if block.kind == "text"]

    assert squeezed(Reader(folder).python(code)) == squeezed(shown)


@pytest.mark.parametrize("command", [each for block in PAGE.blocks for each in block.commands])
def test_commands_print_the_shown_output(folder: Path, command: tuple[str, str]) -> None:
    """Without jq, only the field names in its filters are checked."""
    line, shown = command
    if shutil.which("jq") is None:
        log = (folder / "out" / "capitals.tasklog.json").read_text()
        assert [name for name in _fields(line) if f'"{name}"' not in log] == []
        return
    assert squeezed(Reader(folder).run(line)) == squeezed(shown)


def _fields(line: str) -> set[str]:
    jq_filter = line.split("' out", maxsplit=1)[0]
    return set(re.findall(r"\.([a-z_]+)", jq_filter))
