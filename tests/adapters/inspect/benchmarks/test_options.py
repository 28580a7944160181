"""Options of `inspect eval` for `aigo-bridge run inspect:…`: the samples, requests and scores are the same."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalLog, read_eval_log
from tests.support.commands import REPOSITORY, Run
from tests.support.forked import finished

TASKS = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import Score, accuracy, includes, scorer
from inspect_ai.solver import generate, solver


@solver
def asks(times: int = 1):
    async def solve(state, generate):
        for _ in range(times):
            state = await generate(state)
        return state

    return solve


@scorer(metrics=[accuracy()])
def judged():
    async def score(state, target):
        answer = await get_model(role="my_grader").generate(f"Is it right? {state.output.completion}")
        return Score(value="C" if "yes" in answer.completion else "I")

    return score


@task
def words(word: str = "B"):
    rows = [Sample(id=f"w{n}", input=f"Word {n}?", target="AB"[n % 2]) for n in range(8)]
    return Task(rows, solver=asks(), scorer=includes(), message_limit=9)


@task
def graded():
    return Task([Sample(input=f"Rate {n}", target="x") for n in range(4)], solver=generate(), scorer=judged())
"""

RULES = [
    {"match": {"contains": "Is it right?"}, "reply": "yes"},
    *({"match": {"contains": f"Word {number}?"}, "reply": "AB"[number % 3 == 0]} for number in range(8)),
    {"default": True, "reply": "A"},
]

CASES = {
    "settings": (
        "words",
        "--temperature 0.5 --seed 7 --max-tokens 99 --top-p 0.9 --limit 2-5 --message-limit 6 --turn-limit 4",
    ),
    "limits": ("words", "--stop-seqs END,FIN --working-limit 60 --token-limit output:1k --limit 2"),
    "chosen": ("words", "--sample-id w1,w6 --epochs 2 --epochs-reducer max -T word=C --tags a,b"),
    "solver": ("words", "--solver t.py@asks -S times=3 --message-limit 5 --metadata who=me"),
    "files": ("words", "--generate-config generate.yaml --task-config task.yaml --sample-shuffle 3"),
    "run": ("words", "--run-config run.yaml --max-tokens 12"),
    "roles": ("graded", "--model-role 'my-grader={model: scripted/a.jsonl, temperature: 0.25}' --limit 3"),
    "models": ("words", "--limit 2 --frequency-penalty 0.5"),
}
"""Case → task and options, the same for both."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Change to a folder with the tasks and the files named by options."""
    (tmp_path / "t.py").write_text(TASKS, encoding="utf-8")
    rules = "".join(json.dumps(rule) + "\n" for rule in RULES)
    (tmp_path / "a.jsonl").write_text(rules, encoding="utf-8")
    (tmp_path / "b.jsonl").write_text('{"default": true, "reply": "B"}\n', encoding="utf-8")
    (tmp_path / "generate.yaml").write_text("temperature: 0.75\ntop_k: 3\n", encoding="utf-8")
    (tmp_path / "task.yaml").write_text("word: D\n", encoding="utf-8")
    config = {
        "generate_config": {"temperature": 0.1, "max_tokens": 7},
        "eval_config": {"limit": 3, "message_limit": 8},
        "tags": ["of-file"],
    }
    (tmp_path / "run.yaml").write_text(json.dumps(config), encoding="utf-8")
    return tmp_path


def asked(log: EvalLog) -> dict[str, Any]:
    """Return the settings, samples, requests and scores of a run, for comparison."""
    transport = {"max_retries"}
    assert log.results is not None
    return {
        "task": [log.eval.task, log.eval.task_args, log.eval.model, sorted(log.eval.tags or [])],
        "metadata": log.eval.metadata,
        "solver": [log.eval.solver, log.eval.solver_args],
        "generation": log.plan.config.model_dump(exclude_none=True, exclude=transport),
        "limits": log.eval.config.model_dump(
            include={"limit", "sample_id", "epochs", "epochs_reducer", "message_limit", "working_limit",
                     "turn_limit", "sample_shuffle"}
        ),
        "roles": {
            role: config.model_dump(exclude={"config": transport})
            for role, config in (log.eval.model_roles or {}).items()
            if not isinstance(config, list)
        },
        "metrics": [
            [score.scorer, score.reducer, name, metric.value]
            for score in log.results.scores
            for name, metric in score.metrics.items()
        ],
        "samples": sorted(
            [
                sample.id,
                sample.epoch,
                sample.limit and sample.limit.type,
                {name: score.value for name, score in (sample.scores or {}).items()},
                [
                    [
                        event.model,
                        event.role,
                        [message.text for message in event.input],
                        event.config.model_dump(exclude_none=True, exclude=transport),
                        event.output.completion,
                    ]
                    for event in sample.events
                    if event.event == "model"
                ],
            ]
            for sample in log.samples or []
        ),
    }  # fmt: skip


def logs_in(folder: Path) -> list[dict[str, Any]]:
    logs = [read_eval_log(str(path)) for path in folder.glob("*.eval")]
    return [asked(log) for log in sorted(logs, key=lambda log: log.eval.model)]


def model_of(case: str) -> str:
    return "scripted/a.jsonl,scripted/b.jsonl" if case == "models" else "scripted/a.jsonl"


@pytest.fixture
def native(folder: Path) -> Path:
    """Run the command of Inspect, with one log folder for each case."""
    program = (
        "import shlex, sys\n"
        "from aigo_inspect.models import registration\n"
        "from inspect_ai._cli.eval import eval_command\n"
        "for line in open('cases.txt'):\n"
        "    words = shlex.split(line)\n"
        "    eval_command.main(args=words, standalone_mode=False, auto_envvar_prefix='INSPECT_EVAL')\n"
    )
    lines = [
        f"t.py@{task} --model {model_of(case)} --log-dir native/{case} --display none {options}"
        for case, (task, options) in CASES.items()
    ]
    (folder / "cases.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = finished(["-c", program], cwd=folder, timeout=500)
    assert done.returncode == 0, done.stderr
    return folder / "native"


@pytest.mark.timeout(900)
def test_every_option_gives_the_same_run_as_inspect_eval(native: Path, aigo: Run, folder: Path) -> None:
    for case, (task, options) in CASES.items():
        done = aigo("run", f"inspect:t.py@{task}", "--model", model_of(case), "-o", f"out/{case}",
                    *shlex.split(options))  # fmt: skip
        assert done.code in (0, 1), (case, done.err)
        assert logs_in(folder / "out" / case) == logs_in(native / case), case
    assert len(logs_in(native / "models")) == 2
    assert logs_in(native / "settings")[0]["generation"]["temperature"] == 0.5
    assert [len(logs_in(native / case)[0]["samples"]) for case in ("settings", "chosen", "run")] == [4, 4, 3]


def test_environment_variables_and_dotenv_apply_as_in_inspect(
    folder: Path, aigo: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECT_EVAL_MODEL", "scripted/a.jsonl")
    monkeypatch.setenv("INSPECT_EVAL_MAX_TOKENS", "33")
    monkeypatch.setenv("INSPECT_EVAL_LOG_FORMAT", "json")
    monkeypatch.setenv("INSPECT_EVAL_SEED", "")
    (folder / ".env").write_text("INSPECT_EVAL_TEMPERATURE=0.5\nINSPECT_EVAL_LIMIT=2\n", encoding="utf-8")

    done = aigo("run", "inspect:t.py@words", "--max-tokens", 44)
    for name in ("INSPECT_EVAL_TEMPERATURE", "INSPECT_EVAL_LIMIT"):
        os.environ.pop(name)  # read from the file, as by Inspect

    (log,) = logs_in(folder / "out")
    assert log["generation"] == {"temperature": 0.5, "max_tokens": 44}
    assert len(log["samples"]) == 2
    assert "INSPECT_EVAL_LOG_FORMAT is ignored" in done.err


def test_a_run_with_other_settings_is_not_resumed(folder: Path, aigo: Run) -> None:
    run = ("run", "inspect:t.py@words", "--model", "scripted/a.jsonl", "--json")
    first = aigo(*run, "--temperature", 0.5)
    same = aigo(*run, "--temperature", 0.5, "--resume")
    warmer = aigo(*run, "--temperature", 0.75, "--resume")
    shorter = aigo(*run, "--temperature", 0.5, "--message-limit", 3, "--resume")

    assert [done.json[0]["reused"] for done in (first, same, warmer, shorter)] == [0, 8, 0, 0]
    assert same.json[0]["result"] == first.json[0]["result"]
    assert warmer.json[0]["result"] != first.json[0]["result"]


@pytest.mark.parametrize(
    ("words", "reasons"),
    [
        (
            "--log-dir x --no-score",
            ["--log-dir: logs are written to --out", "--no-score: evidence needs scores"],
        ),
        ("--temperature hot", ["'hot' is not a valid float"]),
        (
            "-S times=2 --epochs-reducer max",
            ["-S, --solver-config: these are arguments of --solver", "needs --num-trials"],
        ),
        ("--solver nowhere", ["Unknown solver nowhere"]),
        ("--sandbox nowhere", ["found 'nowhere', expected one of", "docker"]),
        ("--sample-id w1,w99", ["no sample 'w99' among 8"]),
        ("--sample-id w1 -n 2", ["--sample-id and --limit"]),
        ("-n 2 --limit 3", ["--limit: set twice"]),
        ("--limit x", ["invalid literal"]),
        ("--limit 9-20", ["--limit: 9-20 selects no sample; task 'words' has 8 samples"]),
        ("--limit 5-4", ["--limit: 5-4 selects no sample"]),
        ("--run-config nowhere.yaml", ["nowhere.yaml"]),
        ("--model-base-url http://x", ["a scripted model does not use an address"]),
        ("lighteval:gsm8k", ["all benchmarks of a run must belong to one engine"]),
    ],
)
def test_unsupported_options_are_refused_with_the_reason(
    folder: Path, aigo: Run, words: str, reasons: list[str]
) -> None:
    done = aigo("run", "inspect:t.py@words", "--model", "scripted/a.jsonl", *words.split())

    assert done.code == 2
    assert [reason for reason in reasons if reason not in done.err] == [], done.err
    assert not list(folder.glob("out/*.eval"))


def test_settings_dropped_by_a_model_adapter_are_refused(folder: Path, aigo: Run) -> None:
    entity = (
        "key: own\ndisplay_name: Own\nconfig:\n  url: http://127.0.0.1:9/chat/completions\n  api_key: x\n"
        "  model_key: m-1\n  adapter: {{key: {adapter}}}\n"
    )
    (folder / "adapter.yaml").write_text(
        'key: plain\ndisplay_name: P\nprocess_input: {language: jinja, source_code: "{{ input | tojson }}"}\n'
        'process_output: {language: jinja, source_code: "{{ body }}"}\n'
    )
    for adapter, lost in (
        ("plain", "--temperature, --effort"),
        ("latticeflow$openai_chat_completion", "--effort"),
    ):
        (folder / "model.yaml").write_text(entity.format(adapter=adapter), encoding="utf-8")
        done = aigo(
            "run", "inspect:t.py@words", "--model", "model.yaml", "--temperature", 0, "--effort", "low"
        )
        assert done.code == 2
        assert f"{lost}: the adapter {adapter!r} of" in done.err


def test_options_can_precede_several_tasks(folder: Path, aigo: Run) -> None:
    done = aigo(
        "run", "--temperature", 0, "inspect:t*.py", "--model", "scripted/a.jsonl", "inspect:t.py@graded",
        "--model-map", "my_grader=scripted/a.jsonl", "--limit", 1, "--json",
    )  # fmt: skip

    assert [outcome["task"] for outcome in done.json] == ["words", "graded", "graded"], done.err


def test_an_unused_model_role_is_reported(folder: Path, aigo: Run) -> None:
    run = ("run", "inspect:t.py", "--model", "scripted/a.jsonl", "--limit", 1, "--model-map")

    unknown = aigo(*run, "grader=scripted/b.jsonl")
    known = aigo(*run, "my_grader=scripted/b.jsonl")

    assert "no model call in the role 'grader'" in unknown.err
    assert "no model call in the role" not in known.err


def test_engine_options_are_refused_for_other_tasks(aigo: Run) -> None:
    for task in ("gsm8k", "lighteval:gsm8k"):
        done = aigo("run", task, "--temperature", 0)
        assert done.code == 2
        assert "--temperature" in done.err
        assert "only for inspect benchmarks, inspect:NAME" in " ".join(done.err.split())


def test_the_page_explains_every_unsupported_option() -> None:
    from aigo_inspect.benchmarks.options import NOT_TAKEN, taken_options

    page = (REPOSITORY / "docs" / "reference" / "inspect-benchmarks.md").read_text("utf-8")
    known = {name for option in taken_options() for name in option.names}
    names = {f"--{name.replace('_', '-')}" for name in NOT_TAKEN if name != "json_output"}

    assert {name for name in names - {"--fail-on-error"} if name not in known} == set()
    assert [name for name in sorted(names - {"--trace", "--no-ansi"}) if f"`{name}`" not in page] == []
