"""CONTRIBUTING.md: its files exist, and its examples work in a copy of the source."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import yaml
from tests.support.commands import REPOSITORY
from tests.support.plugins import NOTHING_REGISTERED
from tests.support.recipes import single_turn

TEXT = (REPOSITORY / "CONTRIBUTING.md").read_text("utf-8")
QUESTIONS = re.findall(r"^\| (Where .+\?) \| `([^`]+)`", TEXT, re.MULTILINE)
_EXAMPLE = re.compile(r"^```(\w+) (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MOST_LINES = 220


def examples(title: str) -> list[tuple[str, str, str]]:
    """Return the blocks of a section that name a file: language, file, text."""
    (section,) = re.findall(rf"^### {title}\n(.*?)(?=^##|\Z)", TEXT, re.DOTALL | re.MULTILINE)
    return _EXAMPLE.findall(section)


def carry_out(title: str, root: Path) -> None:
    """Write the files of an example and insert its lines at the shown positions."""
    for language, name, block in examples(title):
        path = root / name
        if language == "diff":
            for hunk in block.split("@@\n"):
                old = "".join(line[1:] for line in hunk.splitlines(keepends=True) if line[0] != "+")
                new = "".join(line[1:] for line in hunk.splitlines(keepends=True) if line[0] != "-")
                text = path.read_text("utf-8")
                assert text.count(old) == 1, f"CONTRIBUTING.md, {title}: {name} has not once\n{old}"
                path.write_text(text.replace(old, new), "utf-8")
        elif language == "python":
            assert not path.exists()
            path.write_text(block, "utf-8")
        else:
            metadata = root / "site" / "example-1.0.dist-info"
            metadata.mkdir(parents=True)
            (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: example\nVersion: 1.0\n")
            points = re.sub(r'^\[project\.entry-points\."(.+)"\]', r"[\1]", block).replace('"', "")
            (metadata / "entry_points.txt").write_text(points)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Copy of the packages."""
    for folder in ("bridge", "adapters", "extras"):
        leave_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / folder, tmp_path / "source" / folder, ignore=leave_out)
    return tmp_path / "source"


def python(source: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run Python with the copied packages."""
    folders = [
        source / "site",
        source / "bridge",
        source / "adapters",
        source / "extras",
        REPOSITORY,
        NOTHING_REGISTERED,
    ]
    path = os.pathsep.join(map(str, folders))
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=source.parent,
        capture_output=True,
        text=True,
    )


def aigo(source: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return python(source, "-c", "from aigo_bridge.cli import main; main()", *arguments)


@pytest.mark.parametrize(("question", "path"), QUESTIONS)
def test_every_file_in_the_table_exists(question: str, path: str) -> None:
    assert (REPOSITORY / path).is_file()


def test_table_has_every_question() -> None:
    assert len(QUESTIONS) == 18


def test_page_is_short() -> None:
    assert TEXT.count("\n") <= MOST_LINES


def test_every_file_and_target_of_the_page_exists() -> None:
    names = re.findall(r"`((?:bridge|adapters|extras|tests|docs)/[\w/.-]+)`", TEXT)
    assert [name for name in names if not (REPOSITORY / name).exists()] == []
    targets = set(re.findall(r"^([\w-]+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE))
    used = {
        target
        for line in re.findall(r"(?:^\$ |`)make ([a-z0-9 -]+)", TEXT, re.MULTILINE)
        for target in line.split()
    }
    assert used - targets == set()


TASK = single_turn({"type": "contains", "expected": "{{ sample.part }}"})


def test_scorer_and_engine_example_works(source: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"text": "abc", "part": "b"}\n{"text": "abc", "part": "d"}\n')
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(TASK))
    refused = aigo(source, "validate", "task.yaml")
    assert refused.returncode == 1
    assert "contains" in refused.stdout + refused.stderr

    carry_out("A scorer", source)
    carry_out("An engine", source)

    valid = aigo(source, "validate", "task.yaml")
    assert valid.returncode == 0, valid.stderr
    run = aigo(source, "run", "task.yaml", "--engine", "echo", "--model", "echo", "--out", "out", "--json")
    assert run.returncode == 0, run.stderr
    (result,) = (tmp_path / "out").glob("*.tasklog.json")
    evidence = json.loads(result.read_bytes())["evidence"]
    scores = [sample["trials"][0]["scores"][0]["values"] for sample in evidence["samples"]]
    assert scores == [{"contains": 1.0}, {"contains": 0.0}]
    assert [metric["values"] for metric in evidence["metrics"]] == [{"hits": 0.5}]


def test_metric_example_works(source: Path, tmp_path: Path) -> None:
    metrics = [{"type": "median", "field": "is_correct", "name": "middle"}]
    recipe = single_turn({"type": "string_equals", "ground_truth": "{{ sample.part }}", "metrics": metrics})
    (tmp_path / "rows.jsonl").write_text('{"text": "b", "part": "b"}\n{"text": "c", "part": "d"}\n')
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(recipe))
    refused = aigo(source, "validate", "task.yaml")
    assert refused.returncode == 1
    assert "median" in refused.stdout + refused.stderr

    carry_out("A metric", source)
    carry_out("An engine", source)

    valid = aigo(source, "validate", "task.yaml")
    assert valid.returncode == 0, valid.stderr
    run = aigo(source, "run", "task.yaml", "--engine", "echo", "--model", "echo", "--out", "out", "--json")
    assert run.returncode == 0, run.stderr
    (result,) = (tmp_path / "out").glob("*.tasklog.json")
    evidence = json.loads(result.read_bytes())["evidence"]
    assert [metric["values"] for metric in evidence["metrics"]] == [{"middle": 0.5}]


EVENT = {"event": "checkpoint", "uuid": "e1", "timestamp": "2026-01-01T00:00:00+00:00", "label": "half"}
SAMPLE = {"id": 1, "epoch": 1, "input": "a", "target": "b", "messages": [], "events": [EVENT]}
PARSE = textwrap.dedent(
    """
    import sys
    from aigo_bridge.redaction.rules import NO_REDACTION
    from aigo_inspect.mapping.records import Constants, parse_sample
    from aigo_inspect.mapping.events import _NAMES
    sample = parse_sample(sys.argv[1].encode(), NO_REDACTION, Constants())
    print(None if sample is None else _NAMES[type(sample.events[0])] + " " + sample.events[0].label)
    """
)


def test_event_kind_example_works(source: Path) -> None:
    unknown = python(source, "-c", PARSE, json.dumps(SAMPLE))
    assert unknown.stdout.strip() == "None", unknown.stderr

    carry_out("An event kind", source)

    known = python(source, "-c", PARSE, json.dumps(SAMPLE))
    assert known.stdout.strip() == "checkpoint half", known.stderr


def test_option_example_works(source: Path, tmp_path: Path) -> None:
    carry_out("An option", source)

    (tmp_path / "task.yaml").write_text(yaml.safe_dump(TASK, sort_keys=False))
    (tmp_path / "old.yaml").write_text(yaml.safe_dump({**TASK, "evaluated_entity_type": "model"}))
    current = aigo(source, "upgrade", "task.yaml", "--check")
    assert current.returncode == 0, current.stderr
    assert aigo(source, "upgrade", "old.yaml", "--check").returncode == 1
