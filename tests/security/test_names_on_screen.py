"""Foreign names on the screen and in JSON: one row each, no invisible characters, and equal values in JSON."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.commands import Finished, Run

from aigo_bridge.text.escapes import json_text, visible

EVIL = "a\nb\rc\x1b[2Jd\u202ee\u200bf\u2028g\x85h\u2066i\ufeffj\U000e0041k\tl"
SHOWN = "a\\nb\\rc"
ROWS = [{"q": "x", "id": EVIL}, {"q": "y", "id": "2"}]
TASK = {
    "key": "t",
    "display_name": EVIL,
    "description": EVIL,
    "definition": {
        "dataset": {"key": "rows"},
        "solver": {
            "type": "single_turn_solver",
            "input_builder": {"type": "chat_completion", "input_messages": [{"role": "user", "content": "{{ sample.q }} " + EVIL}]},
        },
        "scorers": [
            {
                "type": "python",
                "key": "own",
                "metrics": [{"type": "mean", "field": "n", "name": EVIL}],
                "compute_scores_snippet": f"def compute_scores(sample, solver_output):\n    if sample['q'] == 'x':\n        raise ValueError({EVIL!r})\n    return {{'n': 1}}\n",
            }
        ],
    },
}  # fmt: skip


@pytest.fixture
def task(tmp_path: Path) -> Path:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "a.jsonl").write_text(json.dumps({"default": True, "reply": EVIL}) + "\n")
    place = tmp_path / "t.yaml"
    place.write_text(json.dumps(TASK).replace("\\udb40\\udc41", "\\U000e0041"))
    return place


def unseen(text: str) -> list[str]:
    return [
        f"{char!r} in {text[max(0, at - 40) : at + 10]!r}"
        for at, char in enumerate(text)
        if char not in "\n\t" and unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
    ]


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield name
            yield from strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)


def assert_harmless(done: Finished) -> None:
    assert unseen(done.out + done.err) == []
    # Prompts contain tabs and line breaks. No output line starts with the text after a line break of a name.
    assert [line for line in (done.out + done.err).splitlines() if line.startswith(("b\\rc", "g\\x85"))] == []


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
def test_every_verb_prints_each_name_in_one_row(aigo: Run, task: Path, tmp_path: Path, engine: str) -> None:
    options = ("--model", "scripted/a.jsonl", "--engine", engine)

    done = aigo("run", task, *options)
    shown = [
        done,
        aigo("explain", task),
        aigo("validate", task),
        aigo("import", "out", "--out", "imported"),
        aigo("score", task, "out/t.tasklog.json", "--engine", engine, "-o", "scored"),
        aigo("export", task, "--to", engine, "--out", "exported"),
        aigo("list"),
    ]

    assert done.code == 1, done.err
    assert SHOWN in done.out
    for each in shown:
        assert_harmless(each)
    unsafe = [path.name for folder in tmp_path.iterdir() for path in folder.rglob("*") if unseen(path.name)]
    assert unsafe == []


def test_json_has_equal_values_without_invisible_characters(aigo: Run, task: Path) -> None:
    options = ("--model", "scripted/a.jsonl")
    run = aigo("run", task, *options, "--json")
    shown = [
        run,
        aigo("explain", task, "--json"),
        aigo("validate", task, "--format", "json"),
        aigo("import", "out", "--out", "imported", "--json"),
        aigo("score", task, "out/t.tasklog.json", "-o", "scored", "--json"),
        aigo("export", task, "--to", "inspect", "--out", "exported", "--json"),
        aigo("list", "--json"),
        aigo("doctor", "--json"),
    ]

    for each in shown:
        assert each.out, each.err
        assert unseen(each.out) == []
        json.loads(each.out)
    assert EVIL in "".join(strings(json.loads(shown[1].out)))


def test_invisible_characters_are_escaped() -> None:
    assert visible("é ü 漢字 😀") == "é ü 漢字 😀"
    assert visible("a\nb\t\u202e") == "a\\nb\\t\\u202e"
    assert visible("a\nb\t", keep="\n") == "a\nb\\t"
    text = json_text({EVIL: [EVIL, "é😀", 1.5, None]})
    assert unseen(text) == []
    assert "é😀" in text
    assert json.loads(text) == {EVIL: [EVIL, "é😀", 1.5, None]}
