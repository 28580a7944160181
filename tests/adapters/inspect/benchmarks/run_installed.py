"""Runs of installed benchmarks on local rows in a separate process.

Only loopback connections are allowed, and caches are in the current folder. A dataset name of the hub is a
local folder, which the datasets library checks first.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

LETTERS = "ABCDE"


def rows(folder: str, files: dict[str, list[dict[str, Any]]], config: str | None = None) -> None:
    """Write a dataset to the folder with its name, with one file for each split."""
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    label = config or "default"
    lines = [f"- config_name: {label}", "  data_files:"]
    for split, records in files.items():
        name = f"{label}-{split}.jsonl"
        (root / name).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        lines += [f"  - split: {split}", f"    path: {name}"]
    card = root / "README.md"
    earlier = card.read_text(encoding="utf-8").split("---")[1] if card.exists() else "\nconfigs:\n"
    card.write_text("---" + earlier + "\n".join(lines) + "\n---\n", encoding="utf-8")


def all_rows() -> None:
    """Write three or four made-up rows for each dataset."""
    sums = [{"question": f"What is {n} + {n}? ñ", "answer": f"Twice {n}.\n#### {2 * n}"} for n in range(1, 5)]
    main = Path("openai/gsm8k/main")
    main.mkdir(parents=True)
    for split in ("train", "test"):
        (main / f"{split}.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in sums), encoding="utf-8"
        )
    for config in ("ARC-Easy", "ARC-Challenge"):
        arc = [
            {
                "id": f"{config}-{n}",
                "question": f"Which is {n}?",
                "choices": {"label": list("1234"), "text": ["0", "1", "2", "3"]},
                "answerKey": str(n + 1),
            }
            for n in range(3)
        ]
        rows("allenai/ai2_arc", {"test": arc}, config)
    passages = [{"question": f"is {n} even", "passage": f"Of {n}.", "answer": n % 2 == 0} for n in range(4)]
    rows("google/boolq", {"validation": passages})
    common = [
        {
            "id": f"c{n}",
            "question": f"Where is {n}?",
            "question_concept": "place",
            "choices": {"label": list(LETTERS), "text": ["here", "there", "up", "down", "nowhere"]},
            "answerKey": LETTERS[n],
        }
        for n in range(4)
    ]
    rows("tau/commonsense_qa", {"validation": common})
    gaps = [
        {"sentence": f"The cup fits the box as _ is {n} cm.", "option1": "cup", "option2": "box", "answer": a}
        for n, a in enumerate("1212")
    ]
    rows("allenai/winogrande", {"train": gaps, "validation": gaps}, "winogrande_xl")
    subjects = ("abstract_algebra", "anatomy", "anatomy", "virology")
    known = [
        {"question": f"Which is {n}?", "subject": subject, "choices": ["0", "1", "2", "3"], "answer": n}
        for n, subject in enumerate(subjects)
    ]
    rows("cais/mmlu", {"test": known, "dev": known}, "all")
    ends = [
        {"ctx": f"He takes {n}", "source_id": f"s{n}", "endings": ["a", "b", "c", "d"], "label": str(n)}
        for n in range(4)
    ]
    rows("Rowan/hellaswag", {"validation": ends})
    truths = [
        {
            "question": f"Is {n} so?",
            "mc1_targets": {"choices": ["Yes", "No", "Maybe"], "labels": [1, 0, 0]},
            "mc2_targets": {"choices": ["Yes", "Indeed", "No"], "labels": [1, 1, 0]},
        }
        for n in range(4)
    ]
    rows("truthfulqa/truthful_qa", {"validation": truths}, "multiple_choice")


RUNS: dict[str, list[str]] = {
    "gsm8k": ["-T", "fewshot=2"],
    "arc_easy": [],
    "arc_challenge": ["--num-trials", "2"],
    "boolq": [],
    "commonsense_qa": ["-T", "shuffle=false"],
    "winogrande": ["-T", "fewshot=2"],
    "hellaswag": [],
    "truthfulqa": ["-T", "target=mc2", "-T", "shuffle_choices=false"],
    "mmlu_0_shot": [],
}

CONVERTED = ("mmlu_0_shot",)
"""Benchmarks with a custom solver, which also run as AI GO tasks."""


def main() -> None:
    """Run all benchmarks and print one JSON object with their summaries."""
    from typer.testing import CliRunner

    from aigo_bridge.cli import app

    connect = socket.socket.connect

    def only_loopback(self: socket.socket, address: Any) -> Any:
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise OSError(f"no network in tests: {address}")
        return connect(self, address)

    socket.socket.connect = only_loopback  # type: ignore[method-assign,assignment]  # that is the point
    all_rows()
    answers = [
        {"match": {"contains": "What is 1 + 1"}, "reply": "Thus\n\nANSWER: 2"},
        {"match": {"contains": "What is 2 + 2"}, "reply": "ANSWER: 5"},
        {"match": {"contains": "What is 3 + 3"}, "reply": ""},
        {"match": {"contains": "is 0 even"}, "reply": " yes. "},
        {"match": {"contains": "is 1 even"}, "reply": "It is not: No"},
        {"match": {"contains": "Is 3 so"}, "reply": "ANSWER: A,B"},
        {"match": {"contains": "1"}, "reply": {"text": "Because ñ.\nANSWER: B"}},
        {"default": True, "reply": "ANSWER: A"},
    ]
    Path("answers.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in answers), encoding="utf-8")
    summaries: dict[str, Any] = {}
    for name, options in RUNS.items():
        arguments = ["run", f"inspect:inspect_evals/{name}", "--model", "scripted/answers.jsonl"]
        arguments += ["--out", str(Path.cwd() / f"out-{name}"), "--json", *options]
        done = CliRunner().invoke(app, arguments)
        entries = json.loads(done.stdout) if done.exit_code in (0, 1) and done.stdout else []
        summaries[name] = {"code": done.exit_code, "err": done.stderr[-2000:], "outcomes": entries}
    for name in CONVERTED:
        CliRunner().invoke(
            app, ["convert", f"inspect:inspect_evals/{name}", "--to", "aigo", "-o", f"aigo-{name}"]
        )
        arguments = ["run", f"aigo-{name}", "--model", "scripted/answers.jsonl", "--json"]
        done = CliRunner().invoke(app, [*arguments, "--out", str(Path.cwd() / f"out-aigo-{name}")])
        entries = [json.loads(done.stdout)] if done.exit_code in (0, 1) and done.stdout else []
        summaries[f"aigo-{name}"] = {"code": done.exit_code, "err": done.stderr[-2000:], "outcomes": entries}
    Path("summaries.json").write_text(json.dumps(summaries), encoding="utf-8")


if __name__ == "__main__":
    main()
