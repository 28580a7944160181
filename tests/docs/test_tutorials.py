"""Commands of the tutorials are typed as shown: files are written, and each command prints what the page shows."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY
from tests.support.consoles import Reader, type_in
from tests.support.pages import page

QUICKSTART = REPOSITORY / "docs" / "quickstart.md"
GUIDE = REPOSITORY / "docs" / "guides" / "compare-two-models.md"
TOPICS = {
    "World": "The summit ended without a treaty",
    "Sports": "The home side won after extra time",
    "Business": "Shares rose after the quarterly report",
    "Technology": "The new chip needs half the power",
}


@pytest.mark.timeout(400)
def test_quickstart_commands_print_the_shown_output(tmp_path: Path) -> None:
    task = tmp_path / "triage" / "task.yaml"
    assert type_in(page(QUICKSTART).text, Reader(tmp_path), tmp_path, task=task) == 7


@pytest.mark.timeout(400)
def test_comparison_commands_print_the_shown_output(tmp_path: Path) -> None:
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

    assert type_in(page(GUIDE).text, Reader(tmp_path, elsewhere=elsewhere), tmp_path) == 6
