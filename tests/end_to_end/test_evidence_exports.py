"""Results of every kind are exported to AI GO: valid, complete and identical in every export."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.commands import REPOSITORY, Finished, Run
from tests.surfaces.kinds import KINDS
from typer.testing import CliRunner

from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.results.reading import LogReader
from aigo_bridge.results.validating import validate_log

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.xdist_group("evidence")]

GOLDEN = REPOSITORY / "tests" / "golden"
KEY = re.compile(r"[a-zA-Z0-9_\-]{1,250}")

ASK = """
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.country }}?"}]}
"""
JUDGED = f"""key: judged
display_name: Judged
description: ""
definition:
  dataset: {{key: rows}}
  solver:{ASK}  scorers:
    - type: model_as_a_judge_classifier
      model_key: judge
      user_prompt: "{{{{ sample.country }}}}"
      correct_labels: ["yes"]
      incorrect_labels: ["no"]
      metrics: [{{type: mean, field: is_correct, name: Accuracy}}]
"""
PARAMETERS = f"""key: parameters
display_name: Parameters
description: ""
config_spec:
  - {{type: dataset, key: data, display_name: Rows, default_value: rows}}
  - {{type: string, key: greeting, display_name: Greeting, default_value: Hello}}
definition:
  dataset: {{key: << config.data >>}}
  solver:{ASK}  scorers:
    - type: python
      compute_scores_snippet: !include score.py
      metrics: [{{type: mean, field: length, name: Length}}]
"""
ROWS_TASK = """key: rows-check
display_name: Rows
description: ""
definition:
  dataset: {key: rows}
  scorers:
    - type: python
      compute_scores_snippet: |
        def compute_scores(sample):
            return {"known": 1.0}
      metrics: [{type: mean, field: known, name: Known}]
"""
SYSTEM_TASK = """key: system
display_name: System
description: ""
definition:
  type: system_task
  compute_evidence_snippet: |
    def compute_evidence():
        return {"metrics": {"answer": {"value": 42, "reason": "as computed"}}}
"""
RUN_FILE = """
models:
  - {key: one, display_name: One, config: {connection_type: placeholder}}
datasets:
  - {key: rows, display_name: Rows, source: {type: local, file_path: rows.jsonl}}
tasks:
  - {$ref: parameters.yaml}
evaluation:
  key: countries
  display_name: Countries
  description: ""
  config_spec:
    - {type: model, key: one, display_name: One, default_value: one}
  task_specifications:
    - {key: first, task_key: parameters, model_key: "<< config.one >>"}
    - {key: second, task_key: parameters, model_key: "<< config.one >>", task_config: {greeting: Bye}}
    - {key: repeated, task_key: parameters, model_key: "<< config.one >>", repeatability: {num_runs: 2}}
"""


@pytest.fixture(scope="module")
def aigo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Run `aigo-bridge` in this process, in an empty folder."""
    from aigo_bridge.cli import app

    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("evidence"))

    def run(*words: object) -> Finished:
        done = CliRunner().invoke(app, [str(word) for word in words])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Finished(done.exit_code, done.stdout, done.stderr)

    yield run
    os.chdir(before)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Tasks of every kind with rows and models."""
    for name, text in (
        ("judged", JUDGED), ("parameters", PARAMETERS), ("rows-check", ROWS_TASK), ("system", SYSTEM_TASK),
        ("run", RUN_FILE),
    ):  # fmt: skip
        (tmp_path / f"{name}.yaml").write_text(text)
    (tmp_path / "rows.jsonl").write_text('{"country": "Norway"}\n{"country": "Peru"}\n')
    (tmp_path / "score.py").write_text(
        '"""Length."""\n\n\ndef compute_scores(sample, solver_output):\n    return {"length": 2.0}\n'
    )
    (tmp_path / "answers.jsonl").write_text('{"default": true, "reply": "Oslo"}\n')
    (tmp_path / "judge.jsonl").write_text(
        '{"default": true, "reply": "{\\"reasoning\\": \\"r\\", \\"prediction\\": \\"yes\\"}"}\n'
    )
    return tmp_path


@dataclass(frozen=True)
class Exported:
    """Exported AI GO folder, read back."""

    folder: Path
    run: dict[str, Any]

    @property
    def specifications(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.run["evaluation"]["task_specifications"]
        return found

    def logs(self) -> list[Path]:
        return [self.folder / one["task_result_log_path"] for one in self.specifications]

    def entities(self, kind: str) -> list[dict[str, Any]]:
        return [_document(self.folder / one["$ref"]) for one in self.run.get(kind, [])]


def _document(path: Path) -> dict[str, Any]:
    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!include", lambda _, node: (path.parent / str(node.value)).read_text().strip())
    document: dict[str, Any] = yaml.load(path.read_text(), Loader)  # a safe loader
    return document


def _export(aigo: Run, out: Path, *words: object) -> Exported:
    done = aigo("export", *words, "--to", "aigo", "--out", out)
    assert done.code in (0, 3), done.err
    return Exported(out, _document(out / "run.yaml"))


def _content(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _facts(path: Path) -> Any:
    """Return the metrics and ids of a result."""
    log = LogReader(path).load()
    assert log.evidence is not None
    runs = [log.evidence, *(log.evidence.runs or ())]
    return [
        log.status,
        [[metric.model_dump() for metric in run.metrics or ()] for run in runs],
        [
            (
                one.sample_id,
                [(t.index, t.scores, [e.message for e in t.errors]) for t in one.trials],
                one.scores,
            )
            for run in runs
            for one in run.samples or ()
        ],
    ]


def _check(exported: Exported, sources: list[Path], aigo: Run) -> None:
    """Check the AI GO rules for a folder, and that it equals the results."""
    done = aigo("validate", exported.folder, "--dialect", "aigo-3.17")
    assert done.code == 0, done.out
    for log in exported.logs():
        assert validate_log(log) == []
        TaskResultLog.model_validate_json(log.read_bytes())
    assert sorted(map(repr, map(_facts, exported.logs()))) == sorted(map(repr, map(_facts, sources)))
    keys = [one["key"] for one in exported.specifications]
    assert len(set(keys)) == len(keys)
    for kind in ("tasks", "models", "datasets"):
        of_kind = [entity["key"] for entity in exported.entities(kind)]
        assert len(set(of_kind)) == len(of_kind)
        keys += of_kind
    assert [key for key in [*keys, exported.run["evaluation"]["key"]] if not KEY.fullmatch(key)] == []
    tasks = {task["key"] for task in exported.entities("tasks")}
    assert {one["task_key"] for one in exported.specifications} <= tasks
    assert set(exported.run.get("config", {}).values()) <= {
        *(model["key"] for model in exported.entities("models")),
        "head",
        "random",
    }


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_result_of_each_kind_is_exported(kind: Any, aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "kind").mkdir()
    result = kind.make(tmp_path / "kind", aigo)

    exported = _export(aigo, tmp_path / "first", result)
    again = _export(aigo, tmp_path / "second", result)

    _check(exported, [result], aigo)
    assert _content(exported.folder) == _content(again.folder)


@pytest.mark.parametrize("log", sorted((GOLDEN / "inspect").iterdir()), ids=lambda log: log.name)
def test_inspect_log_is_exported_directly(log: Path, aigo: Run, tmp_path: Path) -> None:
    assert aigo("import", log, "--out", tmp_path / "evidence").code == 0
    (result,) = (tmp_path / "evidence").glob("*.tasklog.json")

    exported = _export(aigo, tmp_path / "out", log)

    _check(exported, [result], aigo)
    (task,) = exported.entities("tasks")
    (scorer,) = task["definition"]["scorers"]
    assert scorer["key"] == "includes"
    assert [metric["key"] for metric in scorer["metrics"]] == ["accuracy", "stderr"]


@pytest.mark.parametrize("name", ["judged", "parameters", "rows-check", "system"])
def test_own_task_is_exported_as_its_author_wrote_it(name: str, project: Path, aigo: Run) -> None:
    _run(aigo, project, f"{name}.yaml")

    exported = _export(aigo, project / "exported", project / "out")

    _check(exported, list((project / "out").glob("*.tasklog.json")), aigo)
    (task,) = exported.entities("tasks")
    written = _document(project / f"{name}.yaml")["definition"]
    if name == "judged":
        assert written["scorers"][0].pop("model_key") == "judge"
        assert task["definition"]["scorers"][0].pop("model_key") == "<< config.model_key_judge >>"
    if name in ("judged", "rows-check"):
        written["dataset"] = {"key": "<< config.dataset_key >>"}
    for part in (written, task["definition"]):
        part.pop("type", None)
        for scorer in part.get("scorers", ()):
            if "compute_scores_snippet" in scorer:
                scorer["compute_scores_snippet"] = scorer["compute_scores_snippet"].strip()
        if "compute_evidence_snippet" in part:
            part["compute_evidence_snippet"] = part["compute_evidence_snippet"].strip()
    assert task["definition"] == written


def _run(aigo: Run, project: Path, file: str, *options: object) -> None:
    models = (
        () if file in ("rows-check.yaml", "system.yaml") else ("--model", f"scripted/{project}/answers.jsonl")
    )
    judge = ("--model-map", f"judge=scripted/{project}/judge.jsonl") if file == "judged.yaml" else ()
    data = () if file in ("system.yaml", "run.yaml") else ("--dataset", f"rows={project}/rows.jsonl")
    done = aigo("run", project / file, *models, *judge, *data, "--out", project / "out", *options)
    assert done.code == 0, done.out + done.err


def test_run_file_keeps_the_names_of_its_specifications(project: Path, aigo: Run) -> None:
    done = aigo(
        "run",
        project / "run.yaml",
        "--model-map",
        f"one=scripted/{project}/answers.jsonl",
        "--out",
        project / "out",
    )
    assert done.code == 0, done.out + done.err

    exported = _export(aigo, project / "exported", project / "out")

    _check(exported, list((project / "out").glob("*.tasklog.json")), aigo)
    assert exported.run["evaluation"]["key"].startswith("countries-")
    specifications = {one["key"].rsplit("-", 1)[0]: one for one in exported.specifications}
    assert set(specifications) == {"first", "second", "repeated"}
    assert specifications["second"]["task_config"]["greeting"] == "Bye"
    assert specifications["repeated"]["repeatability"] == {"num_runs": 2}
    assert len(exported.entities("tasks")) == len(exported.entities("models")) == 1


TWO_MODELS = """
models:
  - {key: one, display_name: One, config: {connection_type: placeholder}}
  - {key: two, display_name: Two, config: {connection_type: placeholder}}
tasks:
  - {$ref: task.yaml}
evaluation:
  key: pair
  display_name: Pair
  description: ""
  task_specifications:
    - {key: of-one, task_key: capitals, model_key: one}
    - {key: of-two, task_key: capitals, model_key: two, repeatability: {num_runs: 2}}
"""
CAPITALS = REPOSITORY / "examples" / "capitals"


def _several_models(aigo: Run, folder: Path) -> list[Path]:
    shutil.copytree(CAPITALS, folder / "task")
    (folder / "task" / "two.yaml").write_text(TWO_MODELS)
    answers = f"scripted/{CAPITALS}/answers.jsonl"
    aigo("run", folder / "task" / "two.yaml", "--model-map", f"one={answers}", "--model-map", f"two={answers}",
         "--out", folder / "out")  # fmt: skip
    return [folder / "out"]


def _merged_shards(aigo: Run, folder: Path) -> list[Path]:
    for shard in ("1/2", "2/2"):
        aigo("run", CAPITALS / "task.yaml", "--model", f"scripted/{CAPITALS}/answers.jsonl", "--shard", shard,
             "--out", folder / "shards")  # fmt: skip
    aigo("merge", folder / "shards", "--out", folder / "out")
    return [folder / "out"]


def _agent_with_tools(aigo: Run, folder: Path) -> list[Path]:
    task = REPOSITORY / "tasks" / "aigo_tasks" / "ctf-small"
    aigo("run", task, "--model", f"scripted/{task}/answers.jsonl", "--out", folder / "out")
    return [folder / "out", Path("--allow-gaps")]


def _everything_in_one_folder(aigo: Run, folder: Path) -> list[Path]:
    aigo("run", CAPITALS / "task.yaml", "--model", f"scripted/{CAPITALS}/answers.jsonl", "--engine", "lighteval",
         "--out", folder / "lighteval")  # fmt: skip
    aigo("import", GOLDEN / "inspect" / "0.3.240.eval", "--out", folder / "inspect")
    return [folder / "lighteval", folder / "inspect"]


@pytest.mark.parametrize(
    "make", [_several_models, _merged_shards, _agent_with_tools, _everything_in_one_folder]
)
def test_exported_results_keep_every_fact(make: Any, aigo: Run, tmp_path: Path) -> None:
    results = make(aigo, tmp_path / "made")
    sources = sorted((tmp_path / "made").glob("[!s]*/*.tasklog.json"))
    assert sources

    exported = _export(aigo, tmp_path / "first", *results)
    again = _export(aigo, tmp_path / "second", *results)

    _check(exported, sources, aigo)
    assert _content(exported.folder) == _content(again.folder)
    for table in ("samples", "metrics", "trials"):
        rows = [
            _rows(aigo, table, tmp_path / f"{table}-{number}.csv", *places)
            for number, places in enumerate((sources, [exported.folder]))
        ]
        assert rows[0] == rows[1]
        assert rows[0]
    names = {f"{exported.folder}/run.yaml#{one['key']}" for one in exported.specifications}
    assert {one["result"] for one in aigo("stats", exported.folder, "--json").json} == names


def _rows(aigo: Run, table: str, out: Path, *places: Path) -> list[list[tuple[str, str]]]:
    """Return the rows of a table of results without the names of the results, sorted."""
    done = aigo("table", *places, "--table", table, "--out", out)
    assert done.code == 0, done.err
    with out.open(newline="") as file:
        return sorted(
            sorted((name, value) for name, value in row.items() if name not in ("result", "file"))
            for row in csv.DictReader(file)
        )


def test_aigo_bridge_syntax_is_exported_as_platform_syntax(project: Path, aigo: Run) -> None:
    """Scorers without metrics, a list of choices, and one trial."""
    scorers = """  scorers:
    - {type: python, compute_scores_snippet: !include score.py}
    - {type: string_equals_mcqa, choices: ["O", "P"], ground_truth_choice: O}
  trials: {num_trials: 1}
"""
    text = (
        ROWS_TASK[: ROWS_TASK.index("  scorers")].replace("rows-check", "forms") + f"  solver:{ASK}{scorers}"
    )
    (project / "forms.yaml").write_text(text)
    _run(aigo, project, "forms.yaml")

    exported = _export(aigo, project / "exported", project / "out")

    _check(exported, list((project / "out").glob("*.tasklog.json")), aigo)
    (task,) = exported.entities("tasks")
    python, mcqa = task["definition"]["scorers"]
    assert python["metrics"] == [{"type": "mean", "key": "mean", "field": "length", "name": "length_mean"}]
    assert json.loads(mcqa["choices"]) == ["O", "P"]


def test_task_that_aigo_cannot_express_is_refused(aigo: Run, tmp_path: Path) -> None:
    from tests.support.results import question, result, write_result

    log = result([question(1, "a", "a")])
    log["specification"]["task"]["definition"]["scorers"] = [{"type": "code_exec", "key": "tests"}]
    path = write_result(tmp_path / "r.tasklog.json", log)

    refused = aigo("export", path, "--to", "aigo", "--out", tmp_path / "out")
    assert refused.code == 1
    assert "'code_exec' is an aigo-bridge extension" in refused.err
    assert "--allow-gaps" in refused.err
    assert not (tmp_path / "out").exists()

    exported = _export(aigo, tmp_path / "out", path, "--allow-gaps")
    _check(exported, [path], aigo)
    assert "code_exec" in (tmp_path / "out" / "losses.json").read_text()


def test_export_refers_to_existing_platform_entities(aigo: Run, tmp_path: Path) -> None:
    log = GOLDEN / "inspect" / "0.3.240.eval"
    exported = _export(
        aigo, tmp_path / "out", log, "--app", "demo", "--evaluation-key", "mine",
        "--model-key", "mockllm/model=openai$mini", "--task-key", "golden=ours",
    )  # fmt: skip

    assert exported.run["evaluation"]["key"] == "mine"
    assert [one["task_key"] for one in exported.specifications] == ["ours"]
    assert list(exported.run["config"].values()) == ["openai$mini"]
    assert {"models", "tasks", "datasets"} & set(exported.run) == set()
    assert "lf switch demo" in (tmp_path / "out" / "README.md").read_text()


def test_events_left_out_of_an_export_are_recorded_as_losses(aigo: Run, tmp_path: Path) -> None:
    log = GOLDEN / "inspect" / "0.3.240.eval"
    whole = _export(aigo, tmp_path / "whole", log)
    slim = _export(aigo, tmp_path / "slim", log, "--events", "main")

    assert [one["key"] for one in slim.specifications] == [one["key"] for one in whole.specifications]
    assert _facts(slim.logs()[0]) == _facts(whole.logs()[0])
    assert not (tmp_path / "whole" / "losses.json").exists()
    (dropped,) = json.loads((tmp_path / "slim" / "losses.json").read_text())["dropped"].values()
    assert dropped["event model_call_event (--events main)"] == 4
    assert slim.logs()[0].stat().st_size < whole.logs()[0].stat().st_size / 2


IMAGE = base64.b64encode(b"\x89PNG" + bytes(400)).decode()


@pytest.fixture
def result_with_image(aigo: Run, tmp_path: Path) -> Path:
    """A result whose first message has an image."""
    assert aigo("import", GOLDEN / "inspect" / "0.3.240.eval", "--out", tmp_path).code == 0
    result = tmp_path / "0.3.240.tasklog.json"
    log = json.loads(result.read_text())
    item = log["evidence"]["samples"][0]["trials"][0]["solver"]["output"]["trace"]["items"][0]
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{IMAGE}", "detail": "auto"}
    item["content"] = [{"type": "input_text", "text": "What is this?"}, image]
    result.write_text(json.dumps(log))
    return result


def test_attachments_are_written_as_files(aigo: Run, result_with_image: Path, tmp_path: Path) -> None:
    whole = _export(aigo, tmp_path / "whole", result_with_image)
    slim = _export(aigo, tmp_path / "slim", result_with_image, "--attachments", "files")

    (file,) = (tmp_path / "slim" / "attachments").iterdir()
    assert file.read_bytes() == base64.b64decode(IMAGE)
    assert file.name == f"{hashlib.sha256(file.read_bytes()).hexdigest()}.png"
    assert f'"image_url":"attachments/{file.name}"' in slim.logs()[0].read_text()
    assert [one["key"] for one in slim.specifications] == [one["key"] for one in whole.specifications]
    assert IMAGE in whole.logs()[0].read_text()
    assert IMAGE not in slim.logs()[0].read_text()
    _check(slim, [result_with_image], aigo)
    (dropped,) = json.loads((tmp_path / "slim" / "losses.json").read_text())["dropped"].values()
    assert dropped == {"attachment image/png (--attachments files)": 1}


def test_dropped_attachments_are_described(aigo: Run, result_with_image: Path, tmp_path: Path) -> None:
    slim = _export(aigo, tmp_path / "slim", result_with_image, "--attachments", "drop")

    text = slim.logs()[0].read_text()
    assert IMAGE not in text
    assert "omitted: image/png, 404 bytes, sha256 " in text
    assert not (tmp_path / "slim" / "attachments").exists()
    _check(slim, [result_with_image], aigo)
    done = aigo("export", result_with_image, "--to", "aigo", "--out", tmp_path / "x", "--attachments", "some")
    assert done.code == 2
    assert "--attachments: found 'some', expected keep, files or drop" in done.err


def test_dry_run_writes_nothing(aigo: Run, tmp_path: Path) -> None:
    done = aigo(
        "export", GOLDEN / "inspect", "--to", "aigo", "--out", tmp_path / "out", "--dry-run", "--json"
    )

    assert done.code == 0, done.err
    assert list(tmp_path.iterdir()) == []
    exported = _export(aigo, tmp_path / "out", GOLDEN / "inspect")
    sizes = {name: len(content) for name, content in _content(exported.folder).items()}
    assert {one["file"]: one["bytes"] for one in done.json["files"]} == sizes


def test_all_damaged_results_are_listed_together(aigo: Run, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.tasklog.json").write_text(
            '{"format_version": "v1", "evidence": {"samples": [{}]}}'
        )

    done = aigo("export", tmp_path, "--to", "aigo", "--out", tmp_path / "out")

    assert done.code == 2
    assert "one.tasklog.json" in done.err
    assert "two.tasklog.json" in done.err
    assert not (tmp_path / "out").exists()


def test_damaged_log_is_exported_only_with_its_loss_allowed(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "cut.eval").write_bytes((GOLDEN / "inspect" / "0.3.240.eval").read_bytes()[:-200])

    refused = aigo("export", tmp_path / "cut.eval", "--to", "aigo", "--out", tmp_path / "out")
    allowed = aigo("export", tmp_path / "cut.eval", "--to", "aigo", "--out", tmp_path / "out", "--allow-gaps")

    assert (refused.code, allowed.code) == (1, 3)
    assert json.loads((tmp_path / "out" / "losses.json").read_text())["missing"]


def test_secret_in_a_foreign_result_is_redacted(aigo: Run, tmp_path: Path) -> None:
    from tests.support.results import question, result, write_result

    secret = "sk-" + "Ab3dEf6hIj9lMn2pQr5t"
    path = write_result(tmp_path / "r.tasklog.json", result([question(1, f"my key is {secret}", "x")]))

    exported = _export(aigo, tmp_path / "out", path)

    assert secret.encode() not in b"".join(_content(exported.folder).values())
    assert "redacted" in json.loads((tmp_path / "out" / "losses.json").read_text())


def test_odd_names_and_unknown_fields_are_exported(aigo: Run, tmp_path: Path) -> None:
    from tests.support.results import question, result

    log = result([question(1, "a", "a")], title="<< config.x >> | `a`\n#x: y")
    log["specification"]["display_name"] = "half a character: \ud800"
    log["specification"]["evaluated_entity"]["display_name"] = "$HOME: [x]"
    path = tmp_path / "odd.tasklog.json"
    path.write_text(json.dumps({**log, "extra": 1}))

    exported = _export(aigo, tmp_path / "out", path)

    _check(exported, [path], aigo)
    (dropped,) = json.loads((tmp_path / "out" / "losses.json").read_text())["dropped"].values()
    assert dropped == {"field that AI GO does not have: extra": 1}


def test_models_and_tasks_with_equal_names_get_unique_keys(aigo: Run, tmp_path: Path) -> None:
    from tests.support.results import question, result, write_result

    for number, name in enumerate(("org/m", "org-m")):
        log = result([question(1, "a", "a")])
        entity = log["specification"]["evaluated_entity"]
        entity["display_name"] = entity["config"]["model_key"] = name
        log["specification"]["task"]["definition"]["scorers"] = [{"key": f"s{number}", "type": f"s{number}"}]
        write_result(tmp_path / f"{number}.tasklog.json", log)

    exported = _export(aigo, tmp_path / "out", tmp_path)
    alone = _export(aigo, tmp_path / "alone", tmp_path / "1.tasklog.json")

    assert len(exported.entities("models")) == len(exported.entities("tasks")) == 2
    assert alone.specifications[0] in exported.specifications


def test_force_replaces_only_an_earlier_export(aigo: Run, tmp_path: Path) -> None:
    log = GOLDEN / "inspect" / "0.3.240.eval"
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")

    assert aigo("export", log, "--to", "aigo", "--out", tmp_path / "out", "--force").code == 2
    (tmp_path / "out" / "mine.txt").unlink()
    first = _export(aigo, tmp_path / "out", log, "--events", "main")
    assert aigo("export", log, "--to", "aigo", "--out", tmp_path / "out").code == 2
    second = _export(aigo, tmp_path / "out", log, "--force")
    assert not (second.folder / "losses.json").exists()
    assert first.specifications == second.specifications


def test_lake_and_engine_logs_export_to_equal_folders(aigo: Run, tmp_path: Path) -> None:
    assert (
        aigo(
            "import", GOLDEN / "inspect" / "0.3.240.eval", "--lake", tmp_path / "all.lake", "--events", "all"
        ).code
        == 0
    )

    of_lake = _export(aigo, tmp_path / "of-lake", tmp_path / "all.lake")
    of_logs = _export(aigo, tmp_path / "of-logs", GOLDEN / "inspect" / "0.3.240.eval")

    assert of_lake.run == of_logs.run


def test_exported_folder_is_exported_unchanged(aigo: Run, tmp_path: Path) -> None:
    first = _export(aigo, tmp_path / "first", GOLDEN / "inspect" / "0.3.240.eval")

    for number, source in enumerate((first.folder, first.folder / "run.yaml")):
        again = _export(aigo, tmp_path / str(number), source)
        assert _content(again.folder) == _content(first.folder)


def test_aigo_options_are_refused_for_other_formats(aigo: Run, tmp_path: Path) -> None:
    done = aigo(
        "export", "x.tasklog.json", "--to", "every-eval-ever", "--out", tmp_path / "o", "--app", "demo"
    )
    wrong = aigo(
        "export", tmp_path, "--to", "aigo", "--out", tmp_path / "o", "--app", "a b", "--task-key", "x=y z"
    )

    assert (done.code, wrong.code) == (2, 2)
    assert "--app" in done.err
    assert "'a b'" in wrong.err
    assert "'y z'" in wrong.err
