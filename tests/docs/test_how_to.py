"""Commands of the guides are typed as shown: files are written, and each command prints what the guide shows."""

from __future__ import annotations

import csv
import hashlib
import json
import random
import shutil
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log
from tests.support.commands import REPOSITORY
from tests.support.consoles import Reader, type_in
from tests.support.endpoint import Endpoint, completion
from tests.support.pages import page

from aigo_inspect.sandbox import available

GUIDES = {path.stem: page(path).text for path in sorted((REPOSITORY / "docs" / "guides").glob("*.md"))}
LOGS = REPOSITORY / "tests" / "golden" / "inspect"
ANSWERS = REPOSITORY / "examples" / "capitals" / "answers.jsonl"


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """Folder with the examples of this repository."""
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    return tmp_path


def test_every_guide_is_executed_by_a_test() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "tests").rglob("test_*.py"))
    typed = (f'GUIDES["{name}"]' in tests or f'/ "{name}.md"' in tests for name in GUIDES)
    assert [name for name, found in zip(GUIDES, typed, strict=True) if not found] == []


@pytest.mark.timeout(400)
def test_ci_guide_prints_the_shown_output(tmp_path: Path) -> None:
    assert type_in(GUIDES["check-results-in-ci"], Reader(tmp_path), tmp_path) == 5


@pytest.mark.timeout(400)
def test_task_guide_prints_the_shown_output(tmp_path: Path) -> None:
    assert type_in(GUIDES["write-a-task"], Reader(tmp_path), tmp_path) == 4


@pytest.mark.timeout(400)
def test_judge_guide_prints_the_shown_output(tmp_path: Path) -> None:
    assert type_in(GUIDES["use-an-llm-judge"], Reader(tmp_path), tmp_path) == 2


@pytest.mark.timeout(400)
def test_agent_guide_prints_the_shown_output(tmp_path: Path) -> None:
    name, reason = available()
    if name is None:
        pytest.skip(reason)
    assert type_in(GUIDES["evaluate-an-agent"], Reader(tmp_path), tmp_path) == 2


@pytest.mark.timeout(400)
def test_judge_agreement_guide_prints_the_shown_output(tmp_path: Path) -> None:
    """A third of the answers is bad; the judge misses some of them and rejects a few good ones."""
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

    assert type_in(GUIDES["calibrate-a-judge"], Reader(tmp_path, elsewhere=elsewhere), tmp_path) == 4
    with (tmp_path / "to-label.csv").open(newline="") as file:
        assert {row["sample_id"] for row in csv.DictReader(file)} == {row["sample_id"] for row in labelled}


@pytest.mark.timeout(400)
def test_team_logs_are_imported_with_a_damaged_one(tmp_path: Path) -> None:
    """Logs of three Inspect releases; one of them is truncated."""
    (tmp_path / "team" / "old").mkdir(parents=True)
    shutil.copyfile(LOGS / "0.3.150.eval", tmp_path / "team" / "arithmetic.eval")
    shutil.copyfile(LOGS / "0.3.50.json", tmp_path / "team" / "old" / "0.3.50.json")
    (tmp_path / "team" / "cut.eval").write_bytes((LOGS / "0.3.240.eval").read_bytes()[:3000])

    assert type_in(GUIDES["import-logs"], Reader(tmp_path), tmp_path) == 5


@pytest.mark.timeout(400)
def test_evidence_is_exported_to_aigo(tmp_path: Path) -> None:
    """A folder of Inspect logs; `lf` is not installed."""
    (tmp_path / "logs").mkdir()
    for name in ("0.3.150.eval", "0.3.50.eval"):
        shutil.copyfile(LOGS / name, tmp_path / "logs" / name)

    assert type_in(GUIDES["bring-evidence-into-aigo"], Reader(tmp_path), tmp_path) == 9
    assert "lf run -f run.yaml --wait" in (tmp_path / "evidence" / "README.md").read_text()
    assert (tmp_path / "slim" / "losses.json").is_file()


@pytest.mark.xdist_group("lighteval")
@pytest.mark.timeout(400)
def test_exported_task_gives_the_same_result(examples: Path) -> None:
    reader = Reader(
        examples, elsewhere={"openai/gpt-4.1-nano": f"scripted/{ANSWERS}"}, INSPECT_DISPLAY="none"
    )

    assert type_in(GUIDES["export-a-task"], reader, examples) == 9
    assert len(list((examples / "theirs").glob("*.tasklog.json"))) == 1
    assert len(list((examples / "logs-for-you").glob("*.eval"))) == 1


@pytest.mark.timeout(400)
def test_benchmark_runs_and_is_converted(examples: Path) -> None:
    rules = {"match": {"contains": "hands"}, "reply": "A clock."}, {"default": True, "reply": "A sponge."}
    (examples / "riddles.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    reader = Reader(
        examples, elsewhere={"openai/gpt-4.1-nano": "scripted/riddles.jsonl"}, INSPECT_DISPLAY="none"
    )

    assert type_in(GUIDES["run-an-existing-benchmark"], reader, examples) == 5


@pytest.mark.timeout(400)
def test_local_model_is_called_through_its_server(examples: Path, endpoint: Endpoint) -> None:
    endpoint.answer = lambda body: (200, completion("Oslo" if "Norway" in str(body) else "Lima"))
    reader = Reader(examples, elsewhere={"http://127.0.0.1:8000/v1": endpoint.url})

    assert type_in(GUIDES["use-a-local-model"], reader, examples) == 2
    assert set(endpoint.paths) == {"/v1/chat/completions"}
    assert {body["model"] for body in endpoint.requests} == {"my-model"}
    assert endpoint.most_in_flight <= 2


@pytest.mark.timeout(400)
def test_keys_are_in_no_result(examples: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASSISTANT_KEY", raising=False)
    endpoint.answer = lambda _: (200, completion("My key is correct-horse-battery-9."))
    text = GUIDES["keep-secrets-out"].replace("http://127.0.0.1:8000/v1", endpoint.url)

    assert type_in(text, Reader(examples), examples) == 3
    assert {headers["authorization"] for headers in endpoint.headers} == {"Bearer correct-horse-battery-9"}
    (log,) = (examples / "out").glob("*.eval")
    assert "My key is [secret]" in (text := read_eval_log(log).model_dump_json())
    assert "correct-horse" not in text


@pytest.mark.timeout(400)
def test_run_at_scale_prints_the_shown_output(examples: Path) -> None:
    """A scripted model answers the runs; the cost is computed for the model of the page."""
    reader = Reader(examples, elsewhere={"--model openai/gpt-4.1-nano --": f"--model scripted/{ANSWERS} --"})
    text = GUIDES["run-at-scale"].replace(
        "--model openai/gpt-4.1-nano --answer", "--model=openai/gpt-4.1-nano --answer"
    )

    assert type_in(text, reader, examples) == 6
