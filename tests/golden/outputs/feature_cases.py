"""Features of the conformance tests as commands: exported, explained and converted, and run on both engines."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from tests.conformance.features import Feature, features, files_of
from tests.golden.outputs.case import Case, Files, case


def feature_cases() -> Iterator[Case]:
    for feature in features():
        files = files_of(feature.document)
        name = f"{feature.area}/{_slug(feature.name)}"
        task = "records.jsonl" if "jsonl" in feature.document else "task.yaml"
        given = _given(feature)
        yield case(
            f"export/inspect/features/{name}",
            files,
            f"validate {task}",
            f"explain {task} -n 1 {given}",
            f"export {task} --to inspect --native -o inspect {given}",
            f"convert {task} -o {'task' if task == 'records.jsonl' else 'records.jsonl'} {given}",
        )
        yield case(
            f"export/lighteval/features/{name}",
            files,
            f"export {task} --to lighteval --native -o lighteval {given}",
            engine="lighteval",
        )
        run = _run(feature, task, feature.document)
        commands = [run]
        more: Files = {}
        if again := feature.document.get("again"):
            more, command = _again(feature, again)
            commands.append(command)
        yield case(f"run/inspect/features/{name}", {**files, **more}, *commands)
        yield case(
            f"run/lighteval/features/{name}",
            {**files, **more},
            *(f"{each} --engine lighteval" for each in commands),
            engine="lighteval",
        )


def _slug(name: str) -> str:
    return "-".join("".join(letter if letter.isalnum() else " " for letter in name).split())


def _given(feature: Feature) -> str:
    values = feature.document.get("config", {})
    return " ".join(f"--config {shlex.quote(f'{key}={value}')}" for key, value in values.items())


def _run(feature: Feature, task: str, document: Mapping[str, Any]) -> str:
    words = ["run", task, _given(feature), "--snippets worker", "--max-connections 1"]
    if "model_file" in document:
        words.append("--model model.yaml")
    elif "model" in document:
        words.append("--model scripted/model.rules")
    words += [f"--model-map '{key}=scripted/{key}.rules'" for key in document.get("models", {})]
    options = {"max_samples": 1, **document.get("options", {})}
    if options.pop("reuse_earlier", False):
        options["cache"] = "reuse"
    for name in ("num_samples", "subsampling"):
        if name in document:
            options[name] = document[name]
    for name, value in options.items():
        words.append(f"--{name.replace('_', '-')}" + ("" if value is True else f" {value}"))
    return " ".join(words)


def _again(feature: Feature, change: Mapping[str, Any]) -> tuple[Files, str]:
    """Return the files and the command of the second run."""
    document = {name: value for name, value in feature.document.items() if name != "again"}
    if change.get("stored"):
        definition = {**document["definition"], "scorers": change["scorers"]}
        files = files_of({**document, "definition": definition})
        return {f"again/{name}": text for name, text in files.items()}, (
            "score again/task.yaml out/feature.tasklog.json -o scored --snippets worker"
        )
    changed = {**document, **change}
    again = files_of(changed)
    options = _run(feature, "task.yaml", changed)
    files = {f"again/{name}": text for name, text in again.items() if name.startswith("model.")}
    return files, options
