"""No field of a file can leave the root folder: each spelling is tried with `validate` and `run`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from tests.support.commands import Run

from aigo_bridge.access.grants import Grants, granting
from aigo_bridge.access.opening import is_below
from aigo_bridge.datasets.hub import hub_arguments
from aigo_bridge.datasets.sources import load_dataset
from aigo_bridge.errors import BridgeError, DatasetError, SpecError
from aigo_bridge.evaluation.task import plan
from aigo_bridge.evaluation.validation import validate
from aigo_bridge.plan.plan import PlanOrigin
from aigo_bridge.planning.results import find_result
from aigo_bridge.reading.kinds import KINDS
from aigo_bridge.reading.locating import find_dataset, find_generator, find_task_with_key
from aigo_bridge.spec.datasets import DatasetSource, DatasetSpec, HuggingFaceSource

SECRET = "TOP-SECRET-ROW"
TASK = """key: t
display_name: T
description: ""
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers: [{type: string_equals, ground_truth: "{{ sample.q }}"}]
"""
PATHS = {
    ("local", "file_path"),
    ("folder", "directory_path"),
    ("huggingface", "path"),
    ("huggingface", "load_dataset_kwargs.data_files"),
    ("huggingface", "load_dataset_kwargs.data_dir"),
    ("huggingface", "load_dataset_kwargs.cache_dir"),
    ("inspect_ai", "path"),
    ("claude_code", "path"),
    ("langsmith", "path"),
    ("phoenix", "path"),
    ("opentelemetry", "path"),
}
ADDRESSES = {("url", "url"), ("langsmith", "api_url"), ("phoenix", "base_url")}
WORDS = {
    "digest",
    "type",
    "extension",
    "split",
    "api_key",
    "session_id",
    "project",
    "dataset",
    "filter",
    "trace_id",
}
"""Fields of sources that hold texts which name no place."""

REQUIRED: dict[str, dict[str, Any]] = {
    "local": {"file_path": "rows.jsonl"},
    "folder": {"directory_path": "texts"},
    "huggingface": {"path": "json", "split": "train", "load_dataset_kwargs": {"data_files": "rows.jsonl"}},
    "inspect_ai": {"path": "logs"},
    "claude_code": {},
    "url": {"url": "https://data.example/rows.csv"},
    "langsmith": {"project": "p"},
    "phoenix": {"project": "p"},
    "opentelemetry": {"path": "traces.json"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Task with links to private rows and a private folder next to its folder."""
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("rows.jsonl", "rows.csv", "rows.txt"):
        (outside / name).write_text(json.dumps({"q": SECRET}) + "\n", encoding="utf-8")
    with gzip.open(outside / "rows.jsonl.gz", "wb") as file:
        file.write(json.dumps({"q": SECRET}).encode())
    inside = tmp_path / "task"
    inside.mkdir()
    (inside / "task.yaml").write_text(TASK, encoding="utf-8")
    (inside / "link.jsonl").symlink_to(outside / "rows.jsonl")
    (inside / "linked").symlink_to(outside)
    return inside


def hostile(folder: Path) -> Iterator[str]:
    """Return spellings of paths outside the root."""
    outside = folder.parent / "outside"
    for file in (outside / "rows.jsonl", outside):
        yield str(file)
        yield f"../outside/{file.name}" if file != outside else "../outside"
        yield f"./x/../../outside/{file.name}" if file != outside else "x/../../outside"
        yield f"file://{file}"
        yield f"local://{file}"
        yield f"FILE://{file}"
        yield f"zip://*.jsonl::file://{file}"
        yield f"simplecache::file://{file}"
    yield "link.jsonl"
    yield "linked"
    yield "linked/rows.jsonl"
    yield "linked/*.jsonl"
    yield "*/../../outside/rows.jsonl"
    yield "~/rows.jsonl"
    yield "~root/rows.jsonl"
    yield "memory://rows.jsonl"
    yield "github://a:b@main/rows.jsonl"
    yield "http://127.0.0.1:9/rows.jsonl"
    yield "../\u202e/rows.jsonl"


def source(kind: str, field: str, value: str) -> dict[str, Any]:
    made: dict[str, Any] = {"type": kind, **json.loads(json.dumps(REQUIRED[kind]))}
    first, _, second = field.partition(".")
    if second:
        if second != "data_files":
            made[first].pop("data_files" if second == "data_dir" else "", None)
        made[first][second] = value
    else:
        made[first] = value
    if kind == "huggingface" and field == "path":
        made["load_dataset_kwargs"] = {}
    return made


def sources() -> list[type[BaseModel]]:
    return list(get_args(get_args(DatasetSource)[0]))


def test_every_text_field_of_every_source_is_tested() -> None:
    """A new field with a path or address must be added."""
    known = {(kind, field.partition(".")[0]) for kind, field in PATHS | ADDRESSES}
    for model in sources():
        kind = get_args(model.model_fields["type"].annotation)[0]
        for name, field in model.model_fields.items():
            if "str" in str(field.annotation) and name not in WORDS | {"tags", "metadata"}:
                assert (kind, name) in known, f"{kind}.{name}"


def test_every_path_field_of_every_file_type_is_tested() -> None:
    told = {
        "file_path",
        "directory_path",
        "path",
        "url",
        "api_url",
        "base_url",
        "task_result_log_path",
        "default_file_content",
        "file_ids_field",
    }
    connections = {"url", "deploy_url", "project_endpoint"}
    seen: set[type[BaseModel]] = set()
    todo: list[Any] = [kind.spec for kind in KINDS.values()]
    while todo:
        model = todo.pop()
        if isinstance(model, type) and issubclass(model, BaseModel):
            if model in seen:
                continue
            seen.add(model)
            for name, field in model.model_fields.items():
                todo.append(field.annotation)
                words = set(name.split("_"))
                if words & {
                    "path",
                    "file",
                    "dir",
                    "directory",
                    "folder",
                    "url",
                    "uri",
                    "location",
                    "endpoint",
                }:
                    assert name in told | connections, f"{model.__name__}.{name}"
        todo += get_args(model)
    assert len(seen) > 50


def refusals(folder: Path, text: str) -> list[str]:
    """Return the messages of `validate` and `run` for a dataset file."""
    (folder / "rows.yaml").write_text(text, encoding="utf-8")
    (report,) = validate([folder / "rows.yaml"])
    said = [
        "; ".join(f"{issue.message} {issue.hint}" for issue in report.issues if issue.severity == "error")
    ]
    (task_report,) = validate([folder / "task.yaml"])
    said.append("; ".join(issue.message for issue in task_report.issues if issue.severity == "error"))
    try:
        made = plan(PlanOrigin(str(folder / "task.yaml")))
        said.append(f"PLANNED {[sample.data for sample in made.samples]}")
    except BridgeError as error:
        said.append(str(error))
    return said


@pytest.mark.parametrize(("kind", "field"), sorted(PATHS))
def test_path_outside_the_root_is_refused(kind: str, field: str, folder: Path) -> None:
    for value in hostile(folder):
        data = {"key": "rows", "display_name": "R", "source": source(kind, field, value)}
        said = refusals(folder, json.dumps(data))
        assert all(said[2:]), value
        assert not said[2].startswith("PLANNED"), value
        assert SECRET not in "".join(said), value
        if not is_below(folder / value, folder):
            assert all(said), (value, said)


@pytest.mark.parametrize(("kind", "field"), sorted(ADDRESSES))
@pytest.mark.parametrize(
    "value",
    [
        "file:///etc/hosts.csv",
        "/etc/hosts.csv",
        "ftp://x/y.csv",
        "local:///x.csv",
        "zip://a.csv::http://x/y.zip",
        "http:///x.csv",
        "data:,a.csv",
    ],
)
def test_file_in_place_of_a_url_is_refused(kind: str, field: str, value: str, folder: Path) -> None:
    said = refusals(
        folder, json.dumps({"key": "rows", "display_name": "R", "source": source(kind, field, value)})
    )
    assert all("expected http:// or https://" in text for text in said), said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"data_files": {"train": ["rows.jsonl", "../outside/rows.jsonl"]}}, "is outside"),
        ({"data_files": [["linked/rows.jsonl"]]}, "is outside"),
        ({"data_files": "rows.jsonl", "storage_options": {"a": 1}}, "`storage_options` is not supported"),
        ({"data_files": "rows.jsonl", "download_config": {}}, "`download_config` is not supported"),
        ({"data_files": "rows.jsonl", "token": "x"}, "`token` is not supported"),
        ({"data_files": "rows.jsonl", "revision": "../../x y"}, "`revision`"),
    ],
)
def test_library_arguments_outside_the_root_are_refused(
    arguments: dict[str, Any], words: str, folder: Path
) -> None:
    data = {
        "key": "rows",
        "display_name": "R",
        "source": {**source("huggingface", "split", "train"), "load_dataset_kwargs": arguments},
    }
    assert all(words in text for text in refusals(folder, json.dumps(data)))


@pytest.mark.parametrize(
    "path",
    [
        "pandas",
        "webdataset",
        "../x",
        "/etc",
        "a/b/c",
        "x.py",
        "owner/x.py",
        "hf://datasets/a/b",
        "buckets/a/b",
        "s3://b",
        "a//b",
        "owner/..",
        "",
    ],
)
def test_only_hub_names_and_plain_file_types_are_accepted(path: str, tmp_path: Path) -> None:
    made = HuggingFaceSource(type="huggingface", path=path, split="train")
    if path in ("pandas", "webdataset"):  # names on the hub, then, and not the library's own readers
        assert hub_arguments(made, tmp_path, tmp_path)[:2] == ("hub", path)
        return
    if path == "":
        assert hub_arguments(made, tmp_path, tmp_path)[0] == "folder"
        return
    with pytest.raises(DatasetError):
        hub_arguments(made, tmp_path, tmp_path)


@pytest.mark.parametrize("path", ["owner/name", "name"])
def test_a_local_folder_does_not_replace_a_hub_name(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cwd" / path).mkdir(parents=True)
    (tmp_path / "cwd" / path / "train.jsonl").write_text(json.dumps({"q": SECRET}), encoding="utf-8")
    (tmp_path / "task").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    with (
        granting(Grants(network=True)),
        pytest.raises(DatasetError, match="the current folder contains a folder with this name"),
    ):
        hub_rows(tmp_path / "task", path=path)


@pytest.mark.filterwarnings("ignore:The Pandas builder is deprecated:FutureWarning")
@pytest.mark.parametrize("path", ["pandas", "imagefolder", "webdataset", "xml"])
def test_other_readers_of_the_library_are_not_hub_names(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library uses some names for its own readers, which read files of the current folder."""
    (tmp_path / "cwd").mkdir()
    (tmp_path / "cwd" / "rows.pkl").write_bytes(b"cos\nsystem\n(S'touch owned'\ntR.")
    (tmp_path / "cwd" / "rows.jsonl").write_text(json.dumps({"q": SECRET}), encoding="utf-8")
    (tmp_path / "task").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    for files in ("rows.pkl", "rows.jsonl", "*"):
        arguments = {"data_files": files, "cache_dir": "cache"}
        with granting(Grants(network=True)), pytest.raises(DatasetError) as caught:
            hub_rows(tmp_path / "task", path=path, load_dataset_kwargs=arguments)
        assert SECRET not in str(caught.value)
    assert not (tmp_path / "cwd" / "owned").exists()


def hub_rows(folder: Path, **changes: Any) -> list[Any]:
    made = {
        "type": "huggingface",
        "path": "json",
        "split": "train",
        "load_dataset_kwargs": {"cache_dir": "cache"},
        **changes,
    }
    spec = DatasetSpec.model_validate({"key": "d", "display_name": "D", "source": made})
    return [row.data for row in load_dataset(spec, base=folder, root=folder).rows]


def test_library_paths_are_relative_to_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "task" / "own").mkdir(parents=True)
    for place in (tmp_path, tmp_path / "task"):
        (place / "rows.jsonl").write_text(json.dumps({"from": place.name}) + "\n", encoding="utf-8")
    (tmp_path / "task" / "own" / "train.jsonl").write_text('{"from": "own"}\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    arguments = {"data_files": "rows.jsonl", "cache_dir": "cache"}
    assert hub_rows(tmp_path / "task", load_dataset_kwargs=arguments) == [{"from": "task"}]
    assert hub_rows(tmp_path / "task", path="own") == [{"from": "own"}]


@pytest.mark.parametrize(
    "named", ["{outside}/rows.jsonl", "../../outside/rows.jsonl", "file://{outside}/rows.jsonl", "link.jsonl"]
)
def test_dataset_card_cannot_name_files_outside(named: str, folder: Path) -> None:
    """The library follows every path in a dataset card."""
    own = folder / "own"
    own.mkdir()
    (own / "link.jsonl").symlink_to(folder.parent / "outside" / "rows.jsonl")
    file = named.format(outside=folder.parent / "outside")
    (own / "README.md").write_text(
        f"---\nconfigs:\n- config_name: default\n  data_files: {file!r}\n---\n", encoding="utf-8"
    )
    with pytest.raises(DatasetError, match=r"is outside|is no file of it|cannot be loaded"):
        hub_rows(folder, path="own")


def test_links_in_a_library_folder_are_refused(folder: Path) -> None:
    own = folder / "own"
    own.mkdir()
    (own / "train.jsonl").symlink_to(folder.parent / "outside" / "rows.jsonl")
    with pytest.raises(DatasetError, match="is outside the root folder"):
        hub_rows(folder, path="own")


# --- files found by their key


def test_a_link_next_to_a_task_is_not_its_data(folder: Path, aigo: Run) -> None:
    (folder / "rows.jsonl").symlink_to(folder.parent / "outside" / "rows.jsonl")
    for verb in ("validate", "explain"):
        done = aigo(verb, folder / "task.yaml")
        assert done.code != 0
        assert "is outside the root folder" in done.out + done.err
        assert SECRET not in done.out + done.err
    assert find_dataset("rows", {}, folder / "task.yaml", root=folder.parent) == folder / "rows.jsonl"


def test_links_to_dataset_files_and_folders_are_skipped_and_reported(folder: Path) -> None:
    outside = folder.parent / "outside"
    (outside / "d.yaml").write_text(
        "key: rows\ndisplay_name: R\nsource: {type: local, file_path: rows.jsonl}\n"
    )
    (folder / "d.yaml").symlink_to(outside / "d.yaml")
    with pytest.raises(SpecError, match=r"skipped, because they are outside the root folder: .*d\.yaml"):
        plan(PlanOrigin(str(folder / "task.yaml")))
    (folder / "d.yaml").unlink()
    for name in ("rows.jsonl", "rows.csv"):
        (outside / name).unlink()
    (folder / "datasets").symlink_to(outside)
    with pytest.raises(SpecError, match="skipped, because they are outside the root folder"):
        plan(PlanOrigin(str(folder / "task.yaml")))


def test_links_to_tasks_generators_and_results_outside_are_not_followed(folder: Path) -> None:
    outside = folder.parent / "outside"
    (outside / "x.yaml").write_text(TASK.replace("key: t\n", "key: other\n"), encoding="utf-8")
    (outside / "old.tasklog.json").write_text("{}", encoding="utf-8")
    (folder / "x.yaml").symlink_to(outside / "x.yaml")
    (folder / "old.tasklog.json").symlink_to(outside / "old.tasklog.json")
    assert find_task_with_key("other", folder / "run.yaml") is None
    with pytest.raises(SpecError, match="was not found"):
        find_generator("other", folder / "rows.yaml")
    with pytest.raises(SpecError, match="is outside the root folder"):
        find_result("old", {}, [folder])


@pytest.mark.parametrize(
    "path", ["../outside/old.tasklog.json", "linked/old.tasklog.json", "{outside}/old.tasklog.json"]
)
def test_run_file_cannot_name_a_result_outside(path: str, folder: Path, aigo: Run) -> None:
    outside = folder.parent / "outside"
    (outside / "old.tasklog.json").write_text("{}", encoding="utf-8")
    (folder / "rows.jsonl").write_text('{"q": 1}\n', encoding="utf-8")
    run = f"""models: [{{$provider: openai/gpt-4.1-nano}}]
tasks: [{{$ref: task.yaml}}]
evaluation:
  key: e
  display_name: E
  description: ""
  task_specifications: [{{task_key: t, model_key: openai$gpt-4-1-nano, task_result_log_path: "{path.format(outside=outside)}"}}]
"""
    (folder / "run.yaml").write_text(run, encoding="utf-8")
    for verb in ("validate", "run"):
        done = aigo(verb, folder / "run.yaml")
        assert done.code != 0
        assert "is outside the root folder" in done.out + done.err


def test_linked_logs_are_not_read_as_traces(folder: Path) -> None:
    (folder / "logs").mkdir()
    (folder / "logs" / "a.eval").symlink_to(folder.parent / "outside" / "rows.jsonl")
    text = json.dumps({"key": "rows", "display_name": "R", "source": {"type": "inspect_ai", "path": "logs"}})
    assert "is outside the root folder" in refusals(folder, text)[2]
