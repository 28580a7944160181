"""Valid tasks with random changes: keys removed, renamed or with another type, templates and data corrupted."""

from __future__ import annotations

import copy
import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st
from tests.conformance.features import features

Tree = Any
Path_ = tuple[str | int, ...]

_NOT_PLAIN = {"jsonl", "tiny_model", "model_file", "rows_file", "again"}


@dataclass
class Project:
    """Task with its dataset, as trees and bytes; `write` creates the files."""

    name: str
    task: Tree
    dataset: Tree
    data_name: str
    data: bytes | None
    """`None` if the file does not exist."""
    changes: list[str] = field(default_factory=list)
    """Readable descriptions of the changes."""

    def write(self, folder: Path) -> Path:
        """Write the files and return that of the task."""
        (folder / "datasets").mkdir()
        (folder / "tasks").mkdir()
        (folder / "pyproject.toml").touch()
        (folder / "datasets" / "rows.yaml").write_text(_text(self.dataset), encoding="utf-8")
        (folder / "model.jsonl").write_text(json.dumps({"default": True, "reply": "yes"}) + "\n")
        if self.data is not None:
            (folder / "datasets" / self.data_name).write_bytes(self.data)
        task = folder / "tasks" / "task.yaml"
        task.write_text(_text(self.task), encoding="utf-8")
        return task


def _text(tree: Tree) -> str:
    return yaml.safe_dump(tree, allow_unicode=True, sort_keys=False)


@cache
def _valid() -> tuple[Project, ...]:
    """Return every plain feature of the format as a project, with JSONL and, for flat rows, with CSV."""
    found: list[Project] = []
    for feature in features():
        document = feature.document
        if _NOT_PLAIN & set(document) or "rows" not in document:
            continue
        definition = {**copy.deepcopy(document["definition"]), "dataset": {"key": "rows"}}
        if "ask" in document:
            message = {"role": "user", "content": document["ask"]}
            builder = {"type": "chat_completion", "input_messages": [message]}
            definition["solver"] = {"type": "single_turn_solver", "input_builder": builder}
        task = {
            "key": "feature",
            "display_name": "Feature",
            "description": "",
            "config_spec": [
                {
                    **parameter,
                    "default_value": document.get("config", {}).get(
                        parameter["key"], parameter.get("default_value")
                    ),
                }
                for parameter in document.get("config_spec", [])
            ],
            "definition": definition,
        }
        for ending, data in _files(document["rows"]):
            name = f"rows.{ending}"
            dataset = {
                "key": "rows",
                "display_name": "Rows",
                "source": {"type": "local", "file_path": name},
            }
            found.append(Project(feature.id, task, dataset, name, data))
    return tuple(found)


def _files(rows: list[dict[str, Any]]) -> Iterator[tuple[str, bytes]]:
    yield (
        "jsonl",
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode("utf-8", "replace"),
    )
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [row.get(name) for row in rows for name in columns]
    if all(isinstance(cell, str) and "\n" not in cell and "\0" not in cell for cell in cells):
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(
            [columns, *([row[name] for name in columns] for row in rows)]
        )
        yield "csv", out.getvalue().encode("utf-8", "replace")


@st.composite
def projects(draw: st.DrawFn, most: int = 2) -> Project:
    """Draw a valid project with up to the given number of changes."""
    valid = draw(st.sampled_from(_valid()))
    project = copy.deepcopy(valid)
    for _ in range(draw(st.integers(0, most))):
        change = draw(st.sampled_from((_change_tree, _change_tree, _change_text, _change_data)))
        change(draw, project)
    return project


def _change_tree(draw: st.DrawFn, project: Project) -> None:
    tree = draw(st.sampled_from((project.task, project.task, project.dataset)))
    path = draw(st.sampled_from([path for path, _ in _nodes(tree)]))
    holder = _at(tree, path[:-1])
    last = path[-1]
    what = draw(st.sampled_from(("drop", "rename", "copy", *_VALUES)))
    project.changes.append(f"{what} {'.'.join(map(str, path))}")
    if what == "drop":
        del holder[last]
    elif what == "rename" and isinstance(holder, dict):
        holder[f"{last}s"] = holder.pop(last)
    elif what == "copy":
        holder[last] = copy.deepcopy(draw(st.sampled_from([value for _, value in _nodes(tree)])))
    elif what in _VALUES:
        holder[last] = copy.deepcopy(_VALUES[what])


_VALUES: dict[str, Any] = {
    "null": None,
    "text": "text",
    "empty": "",
    "number": 3,
    "negative": -1,
    "fraction": 0.5,
    "flag": True,
    "list": ["x"],
    "nothing": [],
    "mapping": {"key": "x"},
    "blank": {},
}


def _change_text(draw: st.DrawFn, project: Project) -> None:
    texts = [path for path, value in _nodes(project.task) if isinstance(value, str) and len(path) > 1]
    if not texts:
        return
    path = draw(st.sampled_from(texts))
    old = _at(project.task, path)
    name = draw(st.sampled_from(sorted(_EDITS)))
    project.changes.append(f"{name} {'.'.join(map(str, path))}")
    _at(project.task, path[:-1])[path[-1]] = _EDITS[name](old)


_EDITS: dict[str, Callable[[str], str]] = {
    "another column": lambda text: text.replace("sample.", "sample.no_"),
    "another variable": lambda text: text.replace("{{ ", "{{ x."),
    "cut": lambda text: text[: len(text) // 2],
    "a parameter": lambda text: text + " << config.unknown >>",
    "a path": lambda text: "parts/code.py",
    "other arguments": lambda text: text.replace("(sample", "(x, y, z, sample"),
    "an expression": lambda text: "{{ sample.q | nofilter }}",
    "a key": lambda text: "no such key",
    "twice": lambda text: text + text,
}


def _change_data(draw: st.DrawFn, project: Project) -> None:
    name = draw(st.sampled_from(sorted(_DATA)))
    project.changes.append(f"data: {name}")
    project.data = None if project.data is None else _DATA[name](project.data)


_DATA: dict[str, Callable[[bytes], bytes | None]] = {
    "missing": lambda data: None,
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) * 2 // 3],
    "first line alone": lambda data: data.split(b"\n")[0] + b"\n",
    "Windows": lambda data: data.replace(b"e", b"\xe9", 1),
    "UTF-16": lambda data: data.decode("utf-8", "replace").encode("utf-16"),
    "semicolons": lambda data: data.replace(b",", b";"),
    "a line": lambda data: data + b"x, y, z, v, w\n",
    "quotes": lambda data: data.replace(b'"', b"'"),
    "another column": lambda data: data.replace(b"q", b"r"),
    "nulls": lambda data: data.replace(b'"yes"', b"null"),
    "twice": lambda data: data + data,
}


def _nodes(tree: Tree, path: Path_ = ()) -> Iterator[tuple[Path_, Tree]]:
    if path:
        yield path, tree
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield from _nodes(value, (*path, key))


def _at(tree: Tree, path: Path_) -> Tree:
    for part in path:
        tree = tree[part]
    return tree
