"""Every verb of the command line on a small input, with the expected output in an environment.

Inputs are copies in an empty folder, so that nothing comes from the source. A check must declare that it asks for a package.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.environments.installing import FOLDER, REPOSITORY

SECONDS = 300
"""That a command may take, on a busy machine."""

PYARROW = "pip install 'pyarrow"
DELTALAKE = "pip install 'deltalake"
LIGHTEVAL = "'lighteval==0.13.*'"
DATASETS = "pip install 'datasets"
SCIPY = "pip install 'scipy"
CRYPTOGRAPHY = "pip install 'cryptography"
SIGSTORE = "pip install 'sigstore"
PYGLS = "pip install 'pygls"

_SCRIPTED = "--model scripted/examples/capitals/answers.jsonl"
_TASKS = "tasks/aigo_tasks"
_ACCURACY = ("Accuracy 75 % ", " 4 string_equals")
_API = (
    "from aigo_bridge.results import read_log;"
    "log = read_log('out/capitals.tasklog.json');"
    "print(log.frame().status, len(list(log.samples())), 'samples')"
)


@dataclass(frozen=True)
class Check:
    """Command and its expected outcome."""

    command: str
    """For a shell, in the folder of the inputs."""
    shows: tuple[str, ...] = ()
    """Texts of its output, runs of blanks taken as one."""
    code: int = 0
    asks_for: str | None = None
    """Part of the command that installs what is missing; `None`: nothing is."""
    writes: str | None = None
    """Pattern of a file that is there afterwards."""
    further: bool = False
    """Whether its verb has another check already, so that not every environment needs it."""


def checks(has: frozenset[str], *, all_of_them: bool) -> list[Check]:
    """What to run, in this order, where the packages of some extras are there: all, or every verb and every extra once."""
    found = [
        *_looking(),
        *_running(has),
        *_statistics(has),
        *_proving(has),
        *_serving(has),
        *_importing(has),
        *_passing_on(has),
        *_of_inspect(),
        *_of_lighteval(has),
        *_of_the_plugin(has),
    ]
    return [check for check in found if all_of_them or not check.further]


def _looking() -> Iterator[Check]:
    yield Check("aigo-bridge --version", ("aigo-bridge 0.",))
    yield Check("aigo-bridge --help", ("validate", "doctor"))
    yield Check("aigo-bridge list", ("aigo_tasks/mmlu sample, --full",))
    yield Check("aigo-bridge schema task", ('"title": "TaskSpec"',))
    yield Check("aigo-bridge error AB116", ("AB116: A key is not allowed", "Fix:"))
    yield Check("aigo-bridge validate examples tasks", ("files are valid",))
    yield Check("aigo-bridge explain examples/capitals -n 1", ("What is the capital of", "string_equals"))
    yield Check("aigo-bridge upgrade examples/capitals/task.yaml", ("key: capitals",))
    yield Check(
        "aigo-bridge init project --template chat", ("aigo-bridge run run.yaml",), writes="project/run.yaml"
    )
    yield Check(
        "cd project && aigo-bridge run run.yaml", ("policy passed",), writes="project/out/report.html"
    )
    yield Check("cd project && aigo-bridge new task mine && aigo-bridge validate .", ("4 files are valid",))
    yield Check("aigo-bridge new --help", ("task|scorer|dataset",))


def _running(has: frozenset[str]) -> Iterator[Check]:
    run = "aigo-bridge run"
    yield Check(
        f"{run} examples/capitals {_SCRIPTED}",
        (*_ACCURACY, "4 of 4 samples scored"),
        writes="out/capitals.t*",
    )
    yield Check("aigo-bridge validate out", (": a valid tasklog",))
    yield Check(f'python -c "{_API}"', ("success 4 samples",))
    yield Check(
        f"{run} examples/capitals {_SCRIPTED} --record c.cassette --out recorded",
        ("4 of 4 samples scored",),
        writes="c.cas*",
    )
    yield Check(f"{run} examples/capitals --replay c.cassette --out played", _ACCURACY)
    parity = "aigo-bridge parity examples/capitals --replay c.cassette"
    if "lighteval" in has:
        yield Check(parity, ("the engines agree on 4 samples",), writes="parity/parity.json")
    else:
        yield Check(parity, ("lighteval",), 2, asks_for=LIGHTEVAL)
    judge = f"--model-map 'openai$gpt-4-1-nano=scripted/{_TASKS}/hp-trivia/judge.jsonl'"
    answers = f"--model scripted/{_TASKS}/hp-trivia/answers.jsonl"
    yield Check(
        f"{run} aigo_tasks/hp-trivia {answers} {judge} --num-samples 5",
        ("5 of 5 samples scored",),
        further=True,
    )
    contacts = f"--dataset contacts={_TASKS}/uniqueness-task/contacts.csv --config field=email"
    yield Check(f"{run} aigo_tasks/uniqueness-task {contacts}", ("Uniqueness Rate 80 % ",), further=True)
    answers = f"--model scripted/{_TASKS}/wmt14/answers.jsonl"
    yield Check(f"{run} aigo_tasks/wmt14 {answers}", ("mean_sentence_bleu", "6 of 6 samples scored"))
    answers = f"--model scripted/{_TASKS}/xsum/answers.jsonl"
    yield Check(f"{run} aigo_tasks/xsum {answers}", ("rouge", "6 of 6 samples scored"), further=True)
    yield Check(
        f"{run} examples/capitals/run.yaml --out plan",
        ("policy passed",),
        writes="plan/eval*.json",
        further=True,
    )
    rows = "--dataset capitals=inputs/capitals.parquet --out rows"
    if "parquet" in has:
        yield Check(f"{run} examples/capitals {_SCRIPTED} {rows}", _ACCURACY)
    else:
        yield Check(f"{run} examples/capitals {_SCRIPTED} {rows}", ("Parquet",), 2, asks_for=PYARROW)
    hub = f"{run} aigo_tasks/gsm8k --full {_SCRIPTED}"
    if "huggingface" in has:
        yield Check(hub, ("openai/gsm8k", "cannot be loaded"), 2)
    else:
        yield Check(hub, ("Hugging Face",), 2, asks_for=DATASETS)
    for provider in ("openai", "anthropic"):
        command = f"{run} examples/capitals --model {provider}/m"
        if provider in has:
            yield Check(command, (f"{provider.upper()}_API_KEY",), 2)
        else:
            yield Check(command, code=2, asks_for=f"pip install {provider}")
    yield Check("aigo-bridge show out/capitals.tasklog.json --worst 1", ("Sydney", "string_equals"))
    yield from _tables(has)
    yield Check("aigo-bridge report out", ("report.html",), writes="report.html")
    # Until it is stopped.
    view = "timeout --foreground --preserve-status -s INT 20 aigo-bridge view out"
    yield Check(view, ("view http://127.0.0.1:",))
    yield Check(
        f"{run} examples/capitals {_SCRIPTED} --report --out page", writes="page/report.html", further=True
    )
    yield Check(
        f"{run} examples/capitals {_SCRIPTED} --shard 1/1 --out parts",
        ("shard 1/1: complete",),
        writes="parts/shard-1-of-1/shard.json",
    )
    yield Check("aigo-bridge merge parts --out merged", _ACCURACY)
    if "lake" in has:
        yield Check("aigo-bridge import out --lake lake", writes="lake/logs/_delta_log/*.json")
        yield Check("aigo-bridge lake verify lake", ("whole",))
    else:
        yield Check("aigo-bridge import out --lake lake", code=2, asks_for=DELTALAKE)
        yield Check("aigo-bridge lake list lake", code=2, asks_for=DELTALAKE)
    yield Check("aigo-bridge score examples/capitals out/capitals.tasklog.json --out again", _ACCURACY)
    yield Check(
        "aigo-bridge generate inputs/generated.yaml --model-map w=scripted/inputs/writer.jsonl --out made.jsonl",
        ("2 rows in made.jsonl",),
    )


def _statistics(has: frozenset[str]) -> Iterator[Check]:
    log, again = "out/capitals.tasklog.json", "again/capitals.tasklog.json"
    for command, shown in (
        (f"stats {log}", "30.06 to 95.44 %"),
        (f"compare {log} {again}", "4 samples are in both"),
        (f"check {log} --rule 'Accuracy >= 0.7'", "passed"),
        ("power --rates 0.80,0.83", "samples needed"),
    ):
        if "stats" in has:
            yield Check(f"aigo-bridge {command}", (shown,))
        else:
            yield Check(f"aigo-bridge {command}", code=2, asks_for=SCIPY)


def _proving(has: frozenset[str]) -> Iterator[Check]:
    result, proved = "out/capitals.tasklog.json", "digests proved"
    yield Check(f"aigo-bridge verify {result} --task examples/capitals --rerun-scorers", (proved,))
    probed = ("4 answers of capitals.tasklog.json", "3 explained")
    yield Check(
        f"aigo-bridge probe examples/capitals {result} -o c.probe.json", probed, writes="c.probe.json"
    )
    if "attest" in has:
        yield Check(f"aigo-bridge attest {result} --new-key key.pem", writes="out/capitals.intoto.json")
        signed = f"aigo-bridge verify {result} --key key.pub.pem"
        yield Check(signed, (proved, "signature proved"), further=True)
    else:
        yield Check(f"aigo-bridge attest {result} --new-key key.pem", code=2, asks_for=CRYPTOGRAPHY)
    yield Check(f"aigo-bridge attest {result} --keyless", code=2, asks_for=SIGSTORE, further=True)
    yield Check(f"aigo-bridge bundle {result} -o capitals.zip", writes="capitals.zip")


def _serving(has: frozenset[str]) -> Iterator[Check]:
    """Run the language server with an editor that disconnects."""
    if "lsp" in has:
        yield Check("aigo-bridge lsp </dev/null && echo ended", ("ended",))
    else:
        yield Check("aigo-bridge lsp </dev/null", code=2, asks_for=PYGLS)


def _tables(has: frozenset[str]) -> Iterator[Check]:
    yield Check(
        "aigo-bridge table out/capitals.tasklog.json -o out.csv", ("out.csv: 4 rows",), writes="out.csv"
    )
    mean = 'aigo-bridge sql "select avg(value) as mean from scores" out/capitals.tasklog.json'
    for extra, command, shows, package in (
        (
            "parquet",
            "aigo-bridge table out/capitals.tasklog.json -o out.parquet",
            "out.parquet: 4 rows",
            "pyarrow",
        ),
        ("xlsx", "aigo-bridge table out/capitals.tasklog.json -o out.xlsx", "out.xlsx", "xlsxwriter"),
        (
            "plot",
            "aigo-bridge plot out/capitals.tasklog.json -o out.svg --chart tokens",
            "chart out.svg",
            "vl-convert-python",
        ),
        ("sql", mean, "mean 0.75", "duckdb"),
    ):
        if extra in has:
            yield Check(command, (shows,))
        else:
            yield Check(command, code=2, asks_for=f"pip install '{package}")


def _importing(has: frozenset[str]) -> Iterator[Check]:
    into = "--out evidence"
    chunked = "golden/inspect/0.3.285-chunked.eval"
    yield Check(f"aigo-bridge import {chunked} {into}", writes="evidence/*chunked*.tasklog.json")
    json = "golden/inspect/0.3.50.json"
    yield Check(f"aigo-bridge import {json} {into}", writes="evidence/0.3.50*", further=True)
    # All of them, in a folder, `.json` and of old releases.
    yield Check(
        "aigo-bridge import golden/inspect --out folder", writes="folder/0.3.95*.tasklog.json", further=True
    )
    yield Check("aigo-bridge validate evidence", ("valid", "tasklog"))
    if "parquet" in has:
        yield Check(
            f"aigo-bridge import {chunked} --format parquet --out tables", writes="tables/**/*.parquet"
        )
        yield Check("aigo-bridge import golden/lighteval --out native", writes="native/*.tasklog.json")
    else:
        yield Check(
            f"aigo-bridge import {chunked} --format parquet --out tables", ("parquet",), 2, asks_for=PYARROW
        )
        yield Check("aigo-bridge import golden/lighteval --out native", ("Parquet",), 2, asks_for=PYARROW)


def _passing_on(has: frozenset[str]) -> Iterator[Check]:
    export = "aigo-bridge export"
    yield Check(
        f"{export} examples/capitals --to inspect --out hosted", writes="hosted/capitals.py", further=True
    )
    yield Check(f"{export} examples/capitals --to inspect --native --out plain", writes="plain/capitals.py")
    yield Check(f"{export} out/capitals.tasklog.json --to inspect-log --out logs", writes="logs/*.eval")
    for what, to, out in (
        ("examples/capitals", "lighteval", "docs"),
        ("examples/capitals --native", "lighteval", "plain-docs"),
    ):
        command = f"{export} {what} --to {to} --out {out}"
        if "lighteval" in has:
            yield Check(command, writes=f"{out}/**/*")
        else:
            yield Check(command, ("lighteval is not installed",), 2, asks_for=LIGHTEVAL)
    # No engine of that name writes logs, so that nothing is to be installed for it.
    yield Check(
        f"{export} out/capitals.tasklog.json --to lighteval-log --out results", ("cannot be written",), 2
    )
    records = f"{_TASKS}/jsonl-fixture/tasks.jsonl"
    yield Check(f"aigo-bridge convert {records} --out converted", ("10 tasks",), writes="converted/task.yaml")
    yield Check(
        "aigo-bridge convert lm-eval:inputs/arc_easy.yaml --out arc",
        ("1 task",),
        writes="arc/arc_easy-rows.yaml",
    )
    yield Check(
        "aigo-bridge convert inspect-hub:inputs/eval.yaml --out hub -T repository=org/rows",
        ("1 task",),
        writes="hub/stories-rows.yaml",
    )
    yield Check(
        "aigo-bridge convert inspect:examples/riddles/riddles.py --to aigo --out riddles",
        ("2 samples",),
        writes="riddles/task.yaml",
    )


def _of_inspect() -> Iterator[Check]:
    model = "--model scripted/inputs/riddles.jsonl"
    benchmark = "inspect:examples/riddles/riddles.py -T difficulty=hard"
    yield Check(f"aigo-bridge run {benchmark} {model} --out own", ("1 of 1 sample scored", "accuracy 100 % "))
    # No such package exists: it is the only one that would be installed without a request.
    yield Check("aigo-bridge list inspect", ("aigo-bridge run inspect:FILE.py",), asks_for="inspect-evals")
    ours = "inspect eval aigo_bridge/task -T task=examples/capitals/task.yaml"
    yield Check(f"{ours} {_SCRIPTED} --display none --log-dir ours", writes="ours/*.eval")
    yield Check(
        f"AIGO_BRIDGE_EVIDENCE=hook inspect eval examples/riddles/riddles.py {model} --display none",
        writes="hook/*.tasklog.json",
    )


def _of_lighteval(has: frozenset[str]) -> Iterator[Check]:
    run = f"aigo-bridge run examples/capitals {_SCRIPTED}"
    if "lighteval" in has:
        yield Check("aigo-bridge doctor", ("engine inspect can run tasks", "engine lighteval can run tasks"))
        yield Check(f"{run} --engine inspect,lighteval --out both", ("the engines agree on 4 samples",))
        yield Check("aigo-bridge list lighteval", ("lighteval:gsm8k",))
    else:
        yield Check("aigo-bridge doctor", ("engine inspect can run tasks",), asks_for=LIGHTEVAL)
        for command in (f"{run} --engine lighteval", "aigo-bridge list lighteval"):
            yield Check(command, ("lighteval is not installed",), 2, asks_for=LIGHTEVAL)


def _of_the_plugin(has: frozenset[str]) -> Iterator[Check]:
    if "plugin" not in has:
        return
    run = "aigo-bridge run inputs/plugged.yaml --model scripted/examples/capitals/answers.jsonl --out plugged"
    rows = "--dataset capitals=examples/capitals/capitals.jsonl"
    yield Check(
        "aigo-bridge doctor",
        ("plug-in scorers/contains", "from aigo-bridge-words 1.0"),
        asks_for=LIGHTEVAL,
        further=True,
    )
    yield Check("aigo-bridge words inputs/plugged.yaml", ("words",))
    yield Check(
        f"{run} {rows}", ("hits 0.75 4 contains", "middle 1 4 contains"), writes="plugged/*.tasklog.json"
    )
    yield Check(
        "aigo-bridge export plugged/plugged.tasklog.json --to scores-csv --out csv",
        ("scores.csv",),
        writes="csv/*.csv",
    )


def copy_inputs(folder: Path) -> None:
    """Copy the inputs of the commands."""
    for name in ("examples", "tasks"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(REPOSITORY / "tests" / "golden" / "inspect", folder / "golden" / "inspect")
    with zipfile.ZipFile(REPOSITORY / "tests" / "golden" / "lighteval" / "0.13.0.zip") as archive:
        archive.extractall(folder / "golden" / "lighteval")
    shutil.copytree(FOLDER / "inputs", folder / "inputs")


def problems(check: Check, binaries: Path, folder: Path) -> list[str]:
    """Run a check and return the differences with the end of the output."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "VIRTUAL_ENV", "MAKE", "OPENAI_", "ANTHROPIC_", "AZURE"))
    }
    environment |= {
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        # Nothing of the user's own settings and caches, and no network.
        "HOME": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "HF_HUB_OFFLINE": "1",
        "NO_COLOR": "1",
        "INSPECT_DISPLAY": "none",
    }
    try:
        done = subprocess.run(
            ["bash", "-c", check.command],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return [f"took more than {SECONDS} s"]
    said = done.stdout + done.stderr
    squeezed = re.sub(r"\s+", " ", said)
    found = [f"does not say {text!r}" for text in check.shows if text not in squeezed]
    if done.returncode != check.code:
        found.append(f"exit code {done.returncode}, expected {check.code}")
    if "Traceback" in said:
        found.append("shows a traceback")
    if check.asks_for is None and "pip install" in said:
        found.append("asks for a package")
    if check.asks_for is not None and check.asks_for not in squeezed:
        found.append(f"does not ask for what is missing: {check.asks_for}")
    if check.writes is not None and not any(path.is_file() for path in folder.glob(check.writes)):
        found.append(f"has not written {check.writes}")
    return [*found, said.strip()[-1500:]] if found else []
