"""Golden cases: files, and the commands that are run on them. Each case has one golden.

Commands are written as typed in a folder with the files of the case. Shell patterns are expanded; a pattern that starts with `=` is passed
to the command.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.golden.outputs.case import Case, case
from tests.golden.outputs.feature_cases import feature_cases
from tests.support.commands import REPOSITORY, TASKS

GOLDEN = REPOSITORY / "tests" / "golden"
INPUTS = Path(__file__).parent / "inputs"
INSPECT_LOGS = sorted((GOLDEN / "inspect").iterdir())
IMPORTED = ("0.3.199-v3.json", "0.3.240.eval", "0.3.285-chunked.eval", "0.3.50.eval")
"""One log of each Inspect layout; `tests/adapters/inspect/importing/` reads those of every release."""
LIGHTEVAL_RESULTS = GOLDEN / "lighteval" / "0.13.0.zip"
SHIPPED = sorted(folder for folder in TASKS.iterdir() if (folder / "task.yaml").is_file())


def _imports() -> Iterator[Case]:
    for name in IMPORTED:
        yield case(
            f"import/inspect/{name}",
            {name: GOLDEN / "inspect" / name},
            f"import {name} -o out",
            f"import {name} -o all --events all --context delta --json",
            f"import {name} -o least --events minimal --context none",
        )
    yield case(
        f"import/lighteval/{LIGHTEVAL_RESULTS.stem}",
        _unpacked(LIGHTEVAL_RESULTS),
        "import . -o out",
        "import results -o all --events all --context delta --json",
        engine="lighteval",
    )
    several: dict[str, Path | str | bytes] = {log.name: log for log in INSPECT_LOGS}
    several |= {"not-a-log.json": "{}", "broken.eval": b"PK\x03\x04"}
    yield case(
        "import/several",
        several,
        "import 0.3.50.eval 0.3.95.eval -o one --jobs 1",
        "import 0.3.50.eval 0.3.95.eval -o two --jobs 2",
        "import '=*.eval' nothing-here.eval not-a-log.json -o patterns --jobs 2",
        "import . -o folder --jobs 1 --json",
        "import 0.3.50.eval -o bounded --max-loss 0",
        "import 0.3.50.eval -o bounded --bound samples=1",
        "import 0.3.50.eval -o bounded --bound nonsense=1",
        "import",
    )
    yield case(
        "import/formats",
        {log.name: log for log in INSPECT_LOGS[:2]}
        | {"0.3.285-chunked.eval": GOLDEN / "inspect" / "0.3.285-chunked.eval"},
        "import *.eval -o gz --format json.gz --jobs 1",
        "import *.eval -o zst --format json.zst --jobs 1",
        "import *.eval -o tables --format parquet --jobs 1",
        "import gz/*.tasklog.json.gz -o again --format parquet --jobs 1",
        "validate gz zst",
    )
    yield case(
        "import/redaction",
        {"log.json": _with_secrets(GOLDEN / "inspect" / "0.3.199-v3.json")},
        "import log.json -o out",
        "import log.json -o further --redact-pattern 'swordfish-[0-9]+'",
        "import log.json -o plain --no-redact",
        "import log.json -o plain --redact-pattern '('",
    )


def _with_secrets(log: Path) -> str:
    """Return a log whose texts contain strings that look like API keys."""
    text = log.read_text("utf-8")
    # Split, so that scanners do not report this file as a leak.
    key, word = "sk-proj-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv", "swordfish-" + "12345"
    changed = text.replace("Use the tools.", f"Use the tools. {key} {word} AKIA" + "A1B2C3D4E5F6G7H8")
    assert changed != text
    return changed


def _unpacked(results: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(results) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


CONFIG = {"uniqueness-task": "--config field=email --dataset contacts=uniqueness-task/contacts.csv"}
"""Values for parameters without a default."""


def _shipped() -> Iterator[Case]:
    for folder in SHIPPED:
        name, given = folder.name, CONFIG.get(folder.name, "")
        files = {name: folder}
        yield case(
            f"explain/tasks/{name}",
            files,
            f"explain {name} -n 2 {given}",
            f"explain {name} -n 1 --json {given}",
        )
        yield case(
            f"export/inspect/tasks/{name}",
            files,
            f"export {name} --to inspect -o inspect {given}",
            f"export {name} --to inspect --native -o inspect-native {given}",
            f"convert {name} -o records.jsonl {given}",
        )
        yield case(
            f"export/lighteval/tasks/{name}",
            files,
            f"export {name} --to lighteval -o lighteval --json {given}",
            f"export {name} --to lighteval --native -o lighteval-native {given}",
            engine="lighteval",
        )
        run = f"run {name} {_models(folder)} {given} --max-connections 1 --max-samples 1 --snippets worker"
        yield case(f"run/inspect/tasks/{name}", files, run)
        yield case(
            f"run/lighteval/tasks/{name}",
            files,
            f"{run} --engine lighteval",
            engine="lighteval",
        )


def _models(folder: Path) -> str:
    """Return the scripted models of a shipped task and of its judges."""
    answers, judge = folder / "answers.jsonl", folder / "judge.jsonl"
    options = [f"--model scripted/{folder.name}/answers.jsonl"] if answers.exists() else []
    if judge.exists():
        key = {"hp-trivia": "openai$gpt-4-1-nano"}.get(folder.name, "openai$gpt-4-1-mini")
        options.append(f"--model-map '{key}=scripted/{folder.name}/judge.jsonl'")
    return " ".join(options)


BROKEN = INPUTS / "broken"

ADDING = [
    {"question": f"Ada has {n} pens and buys 4. How many?", "answer": f"{n}+4={n + 4}\n#### {n + 4}"}
    for n in (3, 5, 7)
]
"""Rows in the format of gsm8k in lighteval."""

LETTERS = [
    {
        "question": f"What is {n}+1?",
        "subject": "abstract_algebra",
        "choices": ["1", "2", "3", "4"],
        "answer": n,
    }
    for n in (1, 2, 3)
]
"""Rows in the format of mmlu in lighteval."""


def _lines(rows: Sequence[Mapping[str, Any]]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def _validations() -> Iterator[Case]:
    broken = sorted(path.name for path in BROKEN.iterdir())
    yield case(
        "validate/broken",
        {"files": BROKEN},
        *(f"validate files/{name}" for name in broken),
        "validate files --format github",
        "validate files --format json",
        "validate files/strict.yaml --strict",
        "validate files/strict.yaml --dialect aigo-3.17",
        "validate nothing.yaml",
    )


def _conversions() -> Iterator[Case]:
    yield case(
        "convert/records",
        {"fixture": TASKS / "jsonl-fixture"},
        "convert fixture/tasks.jsonl -o task --key fixture",
        "validate task",
        "convert task -o again.jsonl",
        "convert fixture/tasks_bad.jsonl -o bad",
        "convert fixture/tasks_bad.jsonl -o rest --allow-bad-tasks",
        "convert fixture/tasks.jsonl -o task",
        "convert fixture/tasks.jsonl -o task --force",
    )
    yield case(
        "convert/inspect",
        {
            "quizzes.py": INPUTS / "quizzes.py",
            "riddles.py": REPOSITORY / "examples" / "riddles" / "riddles.py",
        },
        "convert inspect:quizzes.py@numbers -o numbers",
        "convert inspect:quizzes.py@letters -T cot=true -o letters --key with-letters",
        "convert inspect:quizzes.py@judged -o judged",
        "convert inspect:riddles.py -T difficulty=hard -o riddles",
        "convert inspect:quizzes.py@nothing -o nothing",
        "validate numbers letters riddles",
        "explain numbers -n 1",
    )
    yield case(
        "convert/lighteval",
        {
            "adding/test.jsonl": _lines(ADDING),
            "adding/train.jsonl": _lines(ADDING),
            "letters/test.jsonl": _lines(LETTERS),
            "letters/dev.jsonl": _lines(LETTERS),
        },
        "convert lighteval:gsm8k --data-dir adding -o adding-task",
        "convert 'lighteval:mmlu:abstract_algebra|2' --data-dir letters -o letters-task",
        "convert lighteval:truthfulqa:mc -o refused",
        "validate adding-task letters-task",
        engine="lighteval",
    )


def _other_verbs() -> Iterator[Case]:
    capitals = {"examples/capitals": REPOSITORY / "examples" / "capitals"}
    model = "--model scripted/examples/capitals/answers.jsonl --max-connections 1 --max-samples 1"
    yield case(
        "verbs/stored",
        capitals,
        f"run examples/capitals {model}",
        f"run examples/capitals {model} --json -n 2 --subsampling random -o two",
        "score examples/capitals out/capitals.tasklog.json -o scored",
        "score examples/capitals out/capitals.tasklog.json -o again --json",
        "score examples/capitals out/*.eval -o native",
        "validate out scored",
        "import out/*.eval -o imported",
        "export out/capitals.tasklog.json --to inspect-log -o logs",
        "import logs -o returned",
        f"run examples/capitals {model}",
        f"run examples/capitals {model} --resume",
        "run examples/capitals",
        members=("header.json", "reductions.json"),
    )
    yield case(
        "verbs/run-file",
        capitals,
        "run examples/capitals/run.yaml --max-connections 1 --max-samples 1",
        "run examples/capitals/run.yaml#capitals --max-connections 1 --max-samples 1 --json -o one",
        "explain examples/capitals/run.yaml",
    )
    yield case("verbs/list", {}, "list", "list --json")
    kinds = ("task", "run", "dataset", "model", "jsonl", "tasklog")
    yield case("verbs/schema", {}, *(f"schema {kind}" for kind in kinds))
    verbs = (
        "run",
        "explain",
        "import",
        "export",
        "convert",
        "generate",
        "validate",
        "score",
        "report",
        "view",
        "show",
        "table",
        "plot",
        "sql",
        "schema",
        "upgrade",
        "doctor",
        "list",
    )
    yield case("verbs/help", {}, "--help", "", *(f"{verb} --help" for verb in verbs), "rnu", "run --modle x")


CHOSEN = frozenset(
    (
        "explain/tasks/booking-dialogue",
        "explain/tasks/hp-trivia",
        "export/inspect/tasks/gsm8k",
        "export/inspect/features/scorers/bleu",
        "export/inspect/features/solvers/multi-turn-loop-with-terminate-if",
        "export/inspect/features/trials/mean-min-max-pass-k-pass-k",
        "export/lighteval/tasks/mmlu",
        "export/lighteval/features/scorers/string-equals-mcqa",
        "run/inspect/tasks/hp-trivia",
        "run/inspect/tasks/tool-use",
        "run/inspect/features/solvers/post-processor",
        "run/inspect/features/solvers/single-turn-chat",
        "run/inspect/features/scorers/string-equals",
        "run/inspect/features/judges/model-as-a-judge-scorer",
        "run/inspect/features/metrics/mean-min-max-std-dev",
        "run/inspect/features/rules/exclusion-by-columns-answers-and-scores",
        "run/inspect/features/failures/failing-models",
        "run/inspect/features/models/reasoning-refusals-truncated-answers",
        "run/inspect/features/runs/resume-which-repeats-only-failed-samples",
        "run/lighteval/tasks/singleturn-generic-input",
        "run/lighteval/features/solvers/recorded-traces",
        "run/lighteval/features/scorers/python",
        "run/lighteval/features/judges/model-as-a-judge-classifier",
        "run/lighteval/features/metrics/missing-and-non-finite-scores",
        "run/lighteval/features/trials/failed-trials-excluded",
        "run/lighteval/features/rules/rules-over-aggregated-trials-and-failed-scores",
        "run/lighteval/features/data/missing-columns-null-and-NaN",
        "run/lighteval/features/failures/template-errors",
        "run/lighteval/features/runs/new-scores-of-stored-outputs",
    )
)
"""Cases of shipped tasks and features: one for each kind of export, verb, engine and area; `tests/conformance/` runs all of them."""

CASES: tuple[Case, ...] = (
    *_imports(),
    *_validations(),
    *_conversions(),
    *_other_verbs(),
    *(each for each in (*_shipped(), *feature_cases()) if each.name in CHOSEN),
)
