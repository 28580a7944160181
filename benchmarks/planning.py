"""Planning of a task and its rows: CPU seconds, compared with parsing the same texts.

    python benchmarks/planning.py [--rows 50000] [--tasks 200] [--neighbours 480]

`task` is a task with one row that is planned repeatedly, compared with `yaml.compose` with the C loader.
`rows` is a task with many rows that is planned once, compared with a list of the rows from orjson. `rows of a
judge` has a judge with templates over each row, including checks of the ground truth. `neighbours` validates
a folder of many tasks, next to `yaml.compose` of their texts; `four times as many` compares it with a quarter
of the folder: 4 is linear."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson
import yaml
from ratios import record

from aigo_bridge.evaluation.task import plan
from aigo_bridge.evaluation.validation import validate
from aigo_bridge.plan.plan import PlanOrigin

ROUNDS = 7
TASK = """\
key: planning
display_name: Planning
description: ''
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.question }}"}]}
  scorers:
"""
EQUALS = """\
    - {type: string_equals, ground_truth: "{{ sample.answer }}"}
"""
JUDGE = """\
    - type: model_as_a_judge_classifier
      model_key: openai$gpt-4-1-nano
      system_prompt: Say only 'correct' or 'incorrect'.
      user_prompt: |
        Right: {{ sample.answer }}
        Given: {{ solver_output.output }}
      correct_labels: [correct]
      incorrect_labels: [incorrect]
"""


def seconds(works: Sequence[Callable[[], object]]) -> list[float]:
    """Return the CPU seconds of each in the best of several rounds. The first round also builds caches."""
    best = [float("inf")] * len(works)
    for _ in range(ROUNDS):
        for number, work in enumerate(works):
            start = time.process_time()
            work()
            best[number] = min(best[number], time.process_time() - start)
    return best


def repeated(work: Callable[[], object], times: int) -> Callable[[], object]:
    def repeat() -> None:
        for _ in range(times):
            work()

    return repeat


def planned(task: Path, rows: Path) -> Callable[[], object]:
    return lambda: plan(PlanOrigin(task=str(task), datasets={"rows": str(rows)}))


def parsed(rows: Path) -> list[object]:
    with rows.open("rb") as lines:
        return [orjson.loads(line) for line in lines]


def folder_of_tasks(folder: Path, count: int) -> Path:
    """Write tasks and their datasets into one folder."""
    folder.mkdir()
    for number in range(count):
        text = (TASK + EQUALS).replace("key: rows", f"key: rows-{number}")
        (folder / f"task-{number}.yaml").write_text(text)
        (folder / f"rows-{number}.yaml").write_text(
            f"key: rows-{number}\ndisplay_name: Rows\nsource: {{type: local, file_path: rows.jsonl}}\n"
        )
    (folder / "rows.jsonl").write_text('{"question": "Q", "answer": "A"}\n')
    return folder


def validated(folder: Path) -> Callable[[], object]:
    return lambda: list(validate([folder]))


def composed_all(folder: Path) -> list[object]:
    return [
        yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        for path in folder.glob("*.yaml")
    ]


def measure_neighbours(folder: Path, count: int) -> None:
    many, few = folder_of_tasks(folder / "many", count), folder_of_tasks(folder / "few", max(1, count // 4))
    least, all_tasks, quarter = seconds([lambda: composed_all(many), validated(many), validated(few)])
    label = f"{count} neighbours"
    print(f"{label:24} {all_tasks * 1000:10.2f} ms {all_tasks / least:8.2f} x the floor")
    print(f"{'four times as many':24} {all_tasks / quarter:22.2f} x as long")
    record("neighbours", all_tasks / least)
    record("neighbours, four times as many", all_tasks / quarter)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--neighbours", type=int, default=480)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        equals, judge = folder / "equals.yaml", folder / "judge.yaml"
        equals.write_text(TASK + EQUALS)
        judge.write_text(TASK + JUDGE)
        one, many = folder / "one.jsonl", folder / "many.jsonl"
        for path, count in ((one, 1), (many, options.rows)):
            with path.open("w") as file:
                for number in range(count):
                    row = {"question": f"What is {number} plus {number % 7}?", "answer": str(number % 3)}
                    file.write(json.dumps(row) + "\n")

        def composed() -> object:
            return yaml.compose(equals.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)

        least, task, floor, rows, judged = seconds(
            [
                repeated(composed, options.tasks),
                repeated(planned(equals, one), options.tasks),
                lambda: parsed(many),
                planned(equals, many),
                planned(judge, many),
            ]
        )
        for label, spent, ratio in (
            (f"task, {options.tasks} times", task, task / least),
            (f"{options.rows} rows", rows, rows / floor),
            (f"{options.rows} rows of a judge", judged, judged / floor),
        ):
            print(f"{label:24} {spent * 1000:10.2f} ms {ratio:8.2f} x the floor")
        record("task", task / least)
        record("rows", rows / floor)
        record("rows of a judge", judged / floor)
        measure_neighbours(folder, options.neighbours)


if __name__ == "__main__":
    main()
