"""Tasks exported to lighteval, and the command of lighteval to run them."""

from __future__ import annotations

import json
import os
import sys
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships none
import pytest
import yaml
from tests.support.commands import Run

NO_DOWNLOADS = ("tiny_benchmarks", "tiny_benchmarks.main", "mix_eval.main", "mt_bench.main")
"""Files of built-in tasks that use the network when imported."""

BACKEND = """
import json
from pathlib import Path

from lighteval.models.abstract_model import LightevalModel
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.prompt_manager import PromptManager


class NoCache:
    def _init_registry(self, registry):
        pass


class Scripted(LightevalModel):
    '''Answers as the file `answers.json` beside it says, by what the question contains; keeps what it was asked.'''

    tokenizer, add_special_tokens, max_length = None, False, 1000

    def __init__(self, config):
        self.config, self._cache = config, NoCache()
        self.here = Path(config.model_definition_file_path).parent
        self.answers = json.loads((self.here / "answers.json").read_text())

    def greedy_until(self, docs):
        asked = [PromptManager().prepare_prompt_api(doc) for doc in docs]
        (self.here / "asked.json").write_text(json.dumps({doc.id: each for doc, each in zip(docs, asked)}))
        return [ModelResponse(input=each, text=self.said(doc)) for doc, each in zip(docs, asked)]

    def said(self, doc):
        for text, answer in self.answers.items():
            if text in doc.query:
                answers = answer if isinstance(answer, list) else [answer]
                return [answers[number % len(answers)] for number in range(doc.num_samples)]
        return ["?"] * doc.num_samples

    def loglikelihood(self, docs):
        return [
            ModelResponse(logprobs=[-float(len(choice)) for choice in doc.choices], argmax_logits_eq_gold=[False] * len(doc.choices))
            for doc in docs
        ]

    def loglikelihood_rolling(self, docs):
        raise NotImplementedError
"""


@dataclass(frozen=True)
class Ran:
    """Content of the lighteval output files of a run."""

    metrics: dict[str, float]
    """`<scorer>.<metric>` → value."""
    details: list[dict[str, Any]]
    """One per document, in the order of the rows."""

    @property
    def values(self) -> list[Any]:
        """Return the scores of the documents: by scorer in the native form, as text in the hosted form."""
        return [detail["metric"] for detail in self.details]


Lighteval = Callable[..., Ran]


@pytest.fixture
def lighteval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lighteval:
    """Return the command of lighteval in this process; `lighteval(folder, "custom", …)` runs in that folder."""
    import datasets.config  # type: ignore[import-untyped]  # ships none
    from typer.testing import CliRunner

    for name in NO_DOWNLOADS:
        module = f"lighteval.tasks.tasks.{name}"
        monkeypatch.setitem(sys.modules, module, sys.modules.get(module, types.ModuleType(module)))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    import nltk  # type: ignore[import-untyped]  # ships none

    # Some built-in tasks request its data when imported.
    monkeypatch.setattr(nltk, "download", lambda *_, **__: True)

    def run(folder: Path, *words: str) -> Ran:
        out = tmp_path / f"lighteval-{len(list(tmp_path.glob('lighteval-*')))}"
        before = Path.cwd()
        os.chdir(folder)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                from lighteval.__main__ import app

                done = CliRunner().invoke(app, [*words, "--save-details", "--output-dir", str(out)])
        finally:
            os.chdir(before)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == 0, done.output
        return read(out)

    return run


def read(out: Path) -> Ran:
    """Read the output files of a run."""
    (results,) = out.glob("results/**/results_*.json")
    (details,) = out.glob("details/**/*.parquet")
    found = json.loads(results.read_text())["results"]
    (metrics,) = [values for name, values in found.items() if name != "all"]
    rows = sorted(pq.read_table(details).to_pylist(), key=lambda row: int(row["doc"]["id"]))
    return Ran(metrics, rows)


@dataclass(frozen=True)
class Case:
    """Task in its own folder, with rows and answers for both kinds of scripted models."""

    folder: Path

    @property
    def model(self) -> str:
        """Return the model name for aigo-bridge."""
        return f"scripted/{self.folder / 'answers.jsonl'}"

    @property
    def backend(self) -> str:
        """Return the model name for `lighteval custom`."""
        return str(self.folder / "backend.py")

    @property
    def asked(self) -> dict[str, Any]:
        """Return the last messages sent to the backend, by row number."""
        found: dict[str, Any] = json.loads((self.folder / "asked.json").read_text())
        return found


Make = Callable[..., Case]


@pytest.fixture
def case(tmp_path: Path) -> Make:
    """Write a task, its rows (dataset `rows`) and the answers of its model."""

    def make(
        definition: dict[str, Any], rows: list[dict[str, Any]], answers: dict[str, Any] | None = None, **task: Any
    ) -> Case:  # fmt: skip
        folder = tmp_path / "author"
        folder.mkdir(exist_ok=True)
        document = {
            "key": "t", "display_name": "T", "description": "", **task,
            "definition": {"dataset": {"key": "rows"}, **definition},
        }  # fmt: skip
        (folder / "task.yaml").write_text(yaml.safe_dump(document, allow_unicode=True, sort_keys=False))
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        rules: list[dict[str, Any]] = [
            {"match": {"contains": text}, "reply": reply if isinstance(reply, dict) else {"text": reply}}
            for text, reply in (answers or {}).items()
            if not isinstance(reply, list)
        ]
        rules.append({"default": True, "reply": {"text": "?"}})
        (folder / "answers.jsonl").write_text("".join(f"{json.dumps(rule)}\n" for rule in rules))
        (folder / "answers.json").write_text(json.dumps(answers or {}))
        (folder / "backend.py").write_text(BACKEND)
        return Case(folder)

    return make


Export = Callable[..., Path]


@pytest.fixture
def export(aigo: Run, tmp_path: Path) -> Export:
    """Return a function that calls `aigo-bridge export --to lighteval` and returns the folder."""

    def run(made: Case, *options: object, to: str = "exported") -> Path:
        out = tmp_path / to
        done = aigo("export", made.folder, "--to", "lighteval", "--out", out, "--json", *options)
        assert done.code == 0, done.err
        return out

    return run


@dataclass(frozen=True)
class Direct:
    """Outcome of `aigo-bridge run --engine lighteval`."""

    metrics: dict[str, float]
    scores: list[dict[str, Any]]
    """Scorer → values, of the first trial of each sample."""
    num_errors: int
    asked: list[Any]
    """Messages of the first call of each sample."""


@pytest.fixture
def direct(aigo: Run, tmp_path: Path) -> Callable[..., Direct]:
    """Return a function that calls `aigo-bridge run --engine lighteval`."""

    def run(made: Case, *options: object, model: str | None = None) -> Direct:
        out = tmp_path / "direct"
        done = aigo(
            "run", made.folder, "--engine", "lighteval", "--out", out, "--model", model or made.model, *options
        )  # fmt: skip
        assert done.code in (0, 1), done.err
        (result,) = out.glob("*.tasklog.json")
        evidence = json.loads(result.read_bytes())["evidence"]
        trials = [sample["trials"][0] for sample in evidence["samples"]]
        return Direct(
            metrics={
                f"{metric['scorer_key']}.{name}": value
                for metric in evidence["metrics"]
                for name, value in metric["values"].items()
            },
            scores=[
                {score["scorer_key"]: score["values"] for score in trial["scores"] or []} for trial in trials
            ],
            num_errors=sum(
                all(trial["errors"] for trial in sample["trials"]) for sample in evidence["samples"]
            ),
            asked=[_messages(trial) for trial in trials],
        )

    return run


def _messages(trial: dict[str, Any]) -> list[dict[str, str]]:
    """Return the messages before the last answer."""
    items = (
        ((trial.get("solver") or {}).get("output") or trial.get("solver") or {})
        .get("trace", {})
        .get("items", [])
    )
    found = [
        {"role": item["role"], "content": "".join(part.get("text", "") for part in item["content"])}
        for item in items
    ]
    return found[:-1]
