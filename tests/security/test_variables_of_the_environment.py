"""`$NAME` in shareable files: only variables that the user has allowed, and never a secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from tests.support.commands import Run

from aigo_bridge.access.grants import Grants, granting, project_variables
from aigo_bridge.cli.error_handling import render_issues
from aigo_bridge.errors import SpecError, UsageError
from aigo_bridge.reading import read
from aigo_bridge.reading.variables import CONNECTION_FIELDS, looks_like_key, trust_of
from aigo_bridge.spec.datasets import DatasetSpec
from aigo_bridge.spec.evaluations import RunSpec
from aigo_bridge.spec.models import Connection, ModelSpec
from aigo_bridge.spec.task import TaskSpec

KEY = "sk-proj-4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c"
TASK = """key: t
display_name: T
description: ""
config_spec: [{type: string, key: p, display_name: P, default_value: VALUE}]
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }} << config.p >>"}]}
  scorers: [{type: string_equals, ground_truth: "{{ sample.a }}"}]
"""


def task(folder: Path, value: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "rows.jsonl").write_text('{"q": "Q", "a": "A"}\n', encoding="utf-8")
    path = folder / "task.yaml"
    path.write_text(TASK.replace("VALUE", value), encoding="utf-8")
    return path


def refusal(path: Path, env: dict[str, str], *allowed: str) -> str:
    with granting(Grants(variables=frozenset(allowed))), pytest.raises(SpecError) as caught:
        read(BaseModel, path, env=env)
    text = render_issues(caught.value.issues)
    assert not any(value in repr(caught.value.issues) for value in env.values())
    return text


def test_variable_without_permission_is_refused_with_place_and_fix(tmp_path: Path) -> None:
    text = refusal(task(tmp_path, "$REGION"), {"REGION": "zurich"})
    assert "task.yaml:4:70: error: environment variable 'REGION' is not allowed here" in text
    assert "--env REGION" in text


def test_allowed_variable_is_inserted(tmp_path: Path) -> None:
    with granting(Grants(variables=frozenset({"REGION"}))):
        document = read(TaskSpec, task(tmp_path, "$REGION"), env={"REGION": "zurich"})
    parameter: Any = document.spec.config_spec[0]
    assert parameter.default_value == "zurich"
    assert [(use.name, use.line, use.is_set) for use in document.variables] == [("REGION", 4, True)]


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "MY_SECRET", "AWS_ACCESS_KEY_ID"]
)
@pytest.mark.parametrize("spelling", ["${}", "${{{}}}", "$${}", "${}/x"])
def test_secret_like_name_is_refused_even_if_allowed(name: str, spelling: str, tmp_path: Path) -> None:
    assert "looks like a secret" in refusal(task(tmp_path, f"'{spelling.format(name)}'"), {name: KEY}, name)


@pytest.mark.parametrize(
    "value",
    [
        KEY,
        f"prefix {KEY}",
        "https://user:pass@data.example/x",
        "-----BEGIN PRIVATE KEY----- x",
        "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
        "known to be secret, under another name",
    ],
)
def test_secret_like_value_is_refused_even_if_allowed(value: str, tmp_path: Path) -> None:
    env = {"REGION": value, "OTHER_SECRET": "known to be secret, under another name"}
    with granting(Grants(variables=frozenset({"REGION"}))), pytest.raises(SpecError) as caught:
        read(TaskSpec, task(tmp_path, "$REGION"), env=env)
    (issue,) = caught.value.issues
    assert "contains a value that looks like a secret" in issue.message
    assert value not in repr(issue)


@pytest.mark.parametrize(
    "value", ["zurich", "claude-3-5-sonnet-20241022", "/home/me/project-2024/rows", "de_CH.UTF-8"]
)
def test_plain_values_are_not_secrets(value: str) -> None:
    assert not looks_like_key(value)


def test_unset_variables_are_a_warning(tmp_path: Path) -> None:
    document = read(TaskSpec, task(tmp_path, "$NOT_SET_TOKEN"), env={})
    assert [issue.severity for issue in document.issues] == ["warning"]


@pytest.mark.parametrize(
    "text",
    [
        "key: d\ndisplay_name: $REGION\nsource: {type: local, file_path: d.jsonl}\n",
        "key: d\ndisplay_name: D\nsource: {type: local, file_path: $REGION}\n",
        "key: d\ndisplay_name: D\nsource: {type: url, url: $REGION}\n",
        "key: e\ndisplay_name: $REGION\ndescription: ''\ntask_specifications: []\n",
        "key: p\ndisplay_name: $REGION\ndescription: ''\nrules: []\n",
        "key: a\ndisplay_name: $REGION\nmodel_under_test_key: m\nkey_info: {}\nrisk_profile: {}\n",
    ],
)
def test_every_shareable_file_type_needs_permission(text: str, tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match="'REGION' is not allowed here"):
        read(BaseModel, path, env={"REGION": "zurich"})


def test_included_files_and_paths_are_checked(tmp_path: Path) -> None:
    path = task(tmp_path, "x")
    path.write_text(
        path.read_text().replace("scorers: [{type", "scorers: [{$ref: s.yaml}, {type"), encoding="utf-8"
    )
    (tmp_path / "s.yaml").write_text("{type: string_equals, ground_truth: $REGION}", encoding="utf-8")
    assert "s.yaml:1:37: error: environment variable 'REGION'" in refusal(path, {"REGION": "zurich"})
    path.write_text(path.read_text().replace("s.yaml", "$REGION"), encoding="utf-8")
    assert "task.yaml:10:20: error: environment variable 'REGION'" in refusal(path, {"REGION": "zurich"})


def test_a_file_of_unknown_kind_does_not_show_values(tmp_path: Path) -> None:
    (tmp_path / "part.yaml").write_text("type: $OPENAI_API_KEY\nvalue: $OPENAI_API_KEY\n", encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        read(BaseModel, tmp_path / "part.yaml", env={"OPENAI_API_KEY": KEY})
    assert KEY not in repr(caught.value.issues)


RUN = """secrets: {K: $OPENAI_API_KEY}
config: {p: $REGION}
models:
  - key: m
    display_name: M
    config: {url: "$BASE/v1", api_key: $OPENAI_API_KEY, custom_headers: {x-api-key: $OPENAI_API_KEY}, model_key: $REGION}
tasks: [{$ref: task.yaml}]
evaluation:
  key: e
  display_name: E
  description: ""
  config_spec: [{type: string, key: p, display_name: P}]
  task_specifications: [{task_key: t, model_key: m, task_config: {p: $REGION}}]
"""
ENV = {"OPENAI_API_KEY": KEY, "REGION": "zurich", "BASE": "https://api.example"}


def test_run_file_reads_keys_for_connections_and_other_variables(tmp_path: Path) -> None:
    task(tmp_path, "x")
    (tmp_path / "run.yaml").write_text(RUN, encoding="utf-8")
    run = read(RunSpec, tmp_path / "run.yaml", env=ENV)
    config = run.data["models"][0]["config"]
    assert (config["url"], config["api_key"], config["model_key"]) == (
        "https://api.example/v1",
        KEY,
        "zurich",
    )
    assert run.data["secrets"] == {"K": KEY}
    assert run.data["config"] == {"p": "zurich"}
    assert run.data["evaluation"]["task_specifications"][0]["task_config"] == {"p": "zurich"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{p: $REGION}\nmodels", "{p: $OPENAI_API_KEY}\nmodels"),
        ("{p: $REGION}}]", "{p: $OPENAI_API_KEY}}]"),
        ("model_key: $REGION}", "model_key: $OPENAI_API_KEY}"),
        ("display_name: M\n", "display_name: $OPENAI_API_KEY\n"),
        ("display_name: E\n", "display_name: $OPENAI_API_KEY\n"),
        ("{$ref: task.yaml}", "{$ref: $OPENAI_API_KEY}"),
    ],
)
def test_run_file_passes_secrets_only_to_connections(old: str, new: str, tmp_path: Path) -> None:
    task(tmp_path, "x")
    assert old in RUN
    (tmp_path / "run.yaml").write_text(RUN.replace(old, new), encoding="utf-8")
    assert "looks like a secret" in refusal(tmp_path / "run.yaml", ENV, "OPENAI_API_KEY")


def test_task_included_by_a_run_file_has_task_permissions(tmp_path: Path) -> None:
    task(tmp_path, "$REGION")
    (tmp_path / "run.yaml").write_text(RUN, encoding="utf-8")
    assert "task.yaml:4:70: error: environment variable 'REGION'" in refusal(tmp_path / "run.yaml", ENV)


def test_shared_anchor_is_checked_in_each_place(tmp_path: Path) -> None:
    text = "config: {url: u, api_key: &k $OPENAI_API_KEY}\nkey: m\ndisplay_name: *k\n"
    (tmp_path / "m.yaml").write_text(text, encoding="utf-8")
    assert "looks like a secret" in refusal(tmp_path / "m.yaml", ENV)


def test_adapter_receives_no_secret(tmp_path: Path) -> None:
    text = "key: a\ndisplay_name: A\nprocess_input: {language: jinja, source_code: $OPENAI_API_KEY}\nprocess_output: {language: jinja, source_code: x}\n"
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    assert "looks like a secret" in refusal(tmp_path / "a.yaml", ENV)


def test_the_key_of_a_trace_service_is_not_read(tmp_path: Path) -> None:
    text = "key: d\ndisplay_name: D\nsource: {type: langsmith, project: p, api_key: $LANGSMITH_API_KEY}\n"
    (tmp_path / "d.yaml").write_text(text, encoding="utf-8")
    document = read(DatasetSpec, tmp_path / "d.yaml", env={"LANGSMITH_API_KEY": KEY})
    source: Any = document.spec.source
    assert source.api_key == "$LANGSMITH_API_KEY"
    assert document.issues == ()


def test_every_secret_field_of_a_connection_accepts_keys() -> None:
    """A new connection type must be added."""
    union = get_args(get_args(Connection)[0])
    models = [part for each in union for part in (get_args(each) or (each,)) if isinstance(part, type)]
    assert models
    for model in models:
        assert issubclass(model, BaseModel)
        hidden = {name for name, field in model.model_fields.items() if field.repr is False}
        assert hidden <= CONNECTION_FIELDS, model
    assert trust_of("model", ("config", "unknown"), is_own=True) == "own"
    assert trust_of("task", ("config", "api_key"), is_own=True) == "granted"


def test_project_of_the_current_folder_allows_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = task(tmp_path / "strangers", "$REGION")
    own = tmp_path / "own"
    own.mkdir()
    for folder in (own, tmp_path / "strangers"):
        (folder / "pyproject.toml").write_text('[tool.aigo-bridge]\nenv = ["REGION"]\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert "--env REGION" in refusal(path, {"REGION": "zurich"})
    monkeypatch.chdir(own)
    assert read(TaskSpec, path, env={"REGION": "zurich"}).data["config_spec"][0]["default_value"] == "zurich"


@pytest.mark.parametrize(
    "text",
    [
        "[tool.aigo-bridge]\nenv = 3\n",
        "[tool]\naigo-bridge = 1\n",
        "[tool.aigo-bridge\n",
        "aigo-bridge = " + "[" * 5000,
    ],
)
def test_an_invalid_project_file_is_reported(text: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"pyproject\.toml"):
        project_variables(tmp_path)


def test_explain_and_validate_list_only_names_and_places(
    aigo: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIGO_REGION", "a-place-of-no-return")
    path = task(tmp_path / "task", "$AIGO_REGION")
    for verb in ("explain", "validate"):
        refused = aigo(verb, path)
        assert "--env AIGO_REGION" in refused.out + refused.err
        assert "no-return" not in refused.out + refused.err
    told = "reads the environment variable AIGO_REGION (task/task.yaml:4:70)"
    validated = aigo("validate", path, "--env", "AIGO_REGION")
    assert validated.code == 0
    assert told in validated.out
    assert "no-return" not in validated.out
    assert told in aigo("explain", path, "--env", "AIGO_REGION").out
    listed = [{"name": "AIGO_REGION", "file": "task/task.yaml", "line": 4, "column": 70, "is_set": True}]
    assert json.loads(aigo("explain", path, "--env", "AIGO_REGION", "--json").out)["variables"] == listed
    report = json.loads(aigo("validate", path, "--env", "AIGO_REGION", "--format", "json").out)
    assert report[0]["variables"] == listed
    assert aigo("explain", path).code == 2, "what was allowed once is not allowed for good"


@pytest.mark.parametrize("verb", ["run", "score", "export", "convert", "explain", "validate"])
def test_no_verb_inserts_a_variable_without_permission(
    verb: str, aigo: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIGO_REGION", "a-place-of-no-return")
    path = task(tmp_path / "task", "$AIGO_REGION")
    more = {
        "run": ["--model", "scripted/m"],
        "score": ["x.tasklog.json", "--config", "p=x"],
        "export": ["--to", "inspect", "--out", "out"],
        "convert": ["--out", "out.jsonl"],
    }
    done = aigo(verb, path, *more.get(verb, []))
    assert done.code in (1, 2)
    assert "'AIGO_REGION' is not allowed here" in done.out + done.err
    written = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert not any(b"no-return" in data for data in (*written, (done.out + done.err).encode()))


def test_model_file_reads_its_key(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(
        "key: m\ndisplay_name: M\nsecrets: {K: $OPENAI_API_KEY}\nconfig: {url: u, api_key: $OPENAI_API_KEY}\n",
        encoding="utf-8",
    )
    document = read(ModelSpec, tmp_path / "m.yaml", env=ENV)
    assert KEY not in repr(document.spec)
    assert document.data["config"]["api_key"] == KEY
