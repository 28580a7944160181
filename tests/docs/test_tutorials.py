"""The tutorials, typed as they stand: each file that a page shows is written, each command prints what is shown."""

from __future__ import annotations

import csv
import hashlib
import json
import random
import re
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY
from tests.support.consoles import Reader, squeezed
from tests.support.pages import page

_STEP = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TOPICS = {
    "World": "The summit ended without a treaty",
    "Sports": "The home side won after extra time",
    "Business": "Shares rose after the quarterly report",
    "Technology": "The new chip needs half the power",
}


def type_in(name: str, reader: Reader, folder: Path) -> int:
    """Do as a page says; the number of its commands."""
    number = 0
    text = page(REPOSITORY / "docs" / name).text
    for kind, file, body in _STEP.findall(text):
        if file:
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).write_text(body)
        elif kind == "yaml":
            task = folder / "triage" / "task.yaml"
            head, scorers, _ = task.read_text().partition("  scorers:\n")
            assert scorers
            task.write_text(head + body)
        for command, shown in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", body, re.MULTILINE):
            assert _timeless(reader.run(command)) == _timeless(shown), command
            number += 1
    return number


def _timeless(text: str) -> list[str]:
    """Without what no two runs have in common."""
    lines = [line for line in text.splitlines() if not line.startswith(("seconds per sample", "native log"))]
    return squeezed("\n".join(lines))


@pytest.mark.timeout(400)
def test_the_first_task(tmp_path: Path) -> None:
    assert type_in("tutorial.md", Reader(tmp_path), tmp_path) == 7


@pytest.mark.timeout(400)
def test_a_gate_in_ci(tmp_path: Path) -> None:
    assert type_in("how-to/ci-gate.md", Reader(tmp_path), tmp_path) == 5


@pytest.mark.timeout(400)
def test_a_judge_against_people(tmp_path: Path) -> None:
    """A third of the answers is bad; the judge overlooks some of them, and takes a few good ones for bad."""
    chance = random.Random(5)
    rows: list[dict[str, object]] = []
    answers: list[dict[str, object]] = []
    verdicts: list[dict[str, object]] = []
    for number in range(120):
        bad = chance.random() < 1 / 3
        wrong = chance.random() < (0.3 if bad else 0.05)
        verdict = {"reasoning": "So it seems.", "prediction": "unsafe" if bad != wrong else "safe"}
        rows.append({"sample_id": f"q{number:03}", "question": f"Question {number:03}?", "human": not bad})
        answers.append({"match": {"contains": f"Question {number:03}"}, "reply": f"Advice {number:03}."})
        verdicts.append({"match": {"contains": f"Advice {number:03}."}, "reply": json.dumps(verdict)})

    def drawn(row: dict[str, object]) -> str:
        return hashlib.md5(f"1{row['sample_id']}".encode()).hexdigest()

    labelled = sorted(rows, key=drawn)[:60]
    (tmp_path / "advice").mkdir()
    for name, lines in (
        ("advice/questions.jsonl", [{**row, "human": None} for row in rows]),
        ("labelled.jsonl", [row if row in labelled else {**row, "human": None} for row in rows]),
        ("answers.jsonl", answers),
        ("judge.jsonl", verdicts),
    ):
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    elsewhere = {
        "openai/gpt-4.1-nano": "scripted/answers.jsonl",
        "openai/gpt-4.1-mini": "scripted/judge.jsonl",
    }

    assert type_in("how-to/human-labels.md", Reader(tmp_path, elsewhere=elsewhere), tmp_path) == 4
    with (tmp_path / "to-label.csv").open(newline="") as file:
        assert {row["sample_id"] for row in csv.DictReader(file)} == {row["sample_id"] for row in labelled}


@pytest.mark.timeout(400)
def test_a_compared_result(tmp_path: Path) -> None:
    chance = random.Random(3)
    names = [*TOPICS]
    rows: list[dict[str, object]] = []
    answers: dict[str, list[dict[str, object]]] = {"nano": [], "mini": []}
    for number in range(200):
        label = chance.randrange(4)
        rows.append({"text": f"{TOPICS[names[label]]}, item {number}.", "label": label})
        for model, share in (("nano", 0.75), ("mini", 0.86)):
            reply = names[label] if chance.random() < share else names[(label + 1) % 4]
            answers[model].append({"match": {"contains": f"item {number}."}, "reply": reply})
    (tmp_path / "rows").mkdir()
    for name, lines in (
        ("rows/test.jsonl", rows),
        *((f"{model}.jsonl", each) for model, each in answers.items()),
    ):
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    elsewhere = {f"openai/gpt-4.1-{model}": f"scripted/{model}.jsonl" for model in answers}

    assert type_in("tutorial-compared.md", Reader(tmp_path, elsewhere=elsewhere), tmp_path) == 6
