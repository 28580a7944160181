"""`string_equals_mcqa` with likelihoods: torch confirms the values, and the evidence explains each decision."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run
from tests.support.jobs import run_job
from tests.support.tiny_model import CONTEXT, save_tiny_model

from aigo_bridge.dtypes import SolverTrace
from aigo_bridge.engine.registry import require_exact
from aigo_bridge.errors import SampleError, SpecError, UnsupportedPlanError
from aigo_bridge.plan.plan import Sample, TaskPlan
from aigo_bridge.results.records import TrialRecord
from aigo_bridge.scoring.likelihoods import MostLikelyChoice
from aigo_inspect.engine import InspectEngine
from aigo_lighteval.engine import LightevalEngine

pytestmark = pytest.mark.xdist_group("lighteval")

MakePlan = Callable[..., TaskPlan]

ASK = """
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
"""


def compared(**fields: Any) -> str:
    scorer = {
        "type": "string_equals_mcqa",
        "method": "loglikelihood",
        "ground_truth_choice": "{{ sample.a }}",
        "choices": "{{ sample.c }}",
        **fields,
    }
    return f"\n  scorers: [{json.dumps(scorer)}]\n"


ROWS: list[dict[str, Any]] = [
    {"q": "the moon is", "a": "B", "c": ["A", "B", "C"], "t": ["red", "the sea", "é"]},
    {"q": "why? ", "a": "yes", "c": ["yes", "no"], "t": [" yes", " no, the other"]},
    {"q": "the the the the the the", "a": "four", "c": ["a", "b", "c", "four"], "t": ["x", "the", "thethe", "éé"]},
]  # fmt: skip


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {
        "chat": save_tiny_model(folder / "chat"),
        "plain": save_tiny_model(folder / "plain", chat=False),
    }


def ran(made: TaskPlan, out: Path, model: Path | str, **settings: Any) -> list[TrialRecord]:
    engine = LightevalEngine()
    name = model if isinstance(model, str) else f"transformers/{model}"
    return list(engine.read(run_job(engine, made, out, model=name, **settings).path).trials())


def details_of(out: Path) -> list[dict[str, Any]]:
    """Return the rows stored by lighteval."""
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships none

    (file,) = (out / "details").rglob("*.parquet")
    rows: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    return rows


def metadata(record: TrialRecord) -> dict[str, Any]:
    assert record.scores, record.errors
    return dict(record.scores[0].metadata or {})


def by_torch(folder: Path, prompt: str, texts: Sequence[str]) -> list[tuple[float, int]]:
    """Return log-likelihoods and token counts, computed one text and one token at a time."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    model.eval()
    # Spaces at the end of a prompt belong to the continuation, as in lighteval.
    bare = prompt.rstrip()
    found: list[tuple[float, int]] = []
    for text in texts:
        context = tokenizer(bare)["input_ids"]
        tokens = tokenizer(prompt[len(bare) :] + text)["input_ids"]
        total = 0.0
        for token in tokens:
            with torch.no_grad():
                logits = model(torch.tensor([context])).logits[0, -1].double()
            total += float(torch.log_softmax(logits, dim=-1)[token])
            context = [*context, token]
        found.append((total, len(tokens)))
    return found


@pytest.mark.parametrize("settings", ["", ",batch_size=32"])
@pytest.mark.parametrize("form", ["chat", "plain"])
def test_likelihoods_equal_those_computed_by_torch(
    form: str, settings: str, models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    made = make_plan(ROWS, ASK + compared(continuations="{{ sample.t }}"))
    records = ran(made, tmp_path / "out", f"transformers/{models[form]}{settings}")
    assert [record.sample_id for record in records] == [0, 1, 2]
    for row, record in zip(ROWS, records, strict=True):
        prompt = f"<|user|>{row['q']}<end><|assistant|>" if form == "chat" else str(row["q"])
        expected = by_torch(models[form], prompt, row["t"])
        told = metadata(record)
        listed = told["log_likelihoods"]
        assert [each["choice"] for each in listed] == row["c"]
        assert [each["continuation"] for each in listed] == row["t"]
        assert [each["log_likelihood"] for each in listed] == pytest.approx(
            [total for total, _ in expected], abs=2e-4
        )
        assert [each["num_tokens"] for each in listed] == [count for _, count in expected]
        best = max(range(len(expected)), key=lambda number: expected[number][0])
        assert told["predicted_choice"] == row["c"][best]
        assert dict(record.scores[0].values) == {"is_correct": float(row["c"][best] == row["a"])}


def test_predicted_choices_match_the_lighteval_metric(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    """A handwritten lighteval task runs in the lighteval pipeline with `loglikelihood_acc`."""
    import types
    from unittest import mock

    from lighteval.logging.evaluation_tracker import EvaluationTracker
    from lighteval.metrics.metrics import Metrics
    from lighteval.models.transformers.transformers_model import TransformersModelConfig
    from lighteval.pipeline import ParallelismManager, Pipeline, PipelineParameters
    from lighteval.tasks.lighteval_task import LightevalTask, LightevalTaskConfig
    from lighteval.tasks.registry import Registry
    from lighteval.tasks.requests import Doc

    rows = [
        {"q": f"{word} {number}", "a": "b", "c": ["a", "b", "c"], "t": ["the", f"{number}", "xyz"]}
        for number, word in enumerate(["the", "moon", "what", "who?", "éé", "12", "else", "go"])
    ]
    config = LightevalTaskConfig(
        name="by-hand",
        prompt_function=lambda row, task: Doc(
            query=row["q"], choices=row["t"], gold_index=row["c"].index(row["a"])
        ),
        hf_repo="none",
        hf_subset="default",
        metrics=[Metrics.loglikelihood_acc],
        hf_avail_splits=["test"],
        evaluation_splits=["test"],
        few_shots_split="test",
    )
    module = types.ModuleType("by_hand")
    module.TASKS_TABLE = [config]  # type: ignore[attr-defined]
    only = staticmethod(lambda custom_tasks=None, load_multilingual=False: {"by-hand": config})
    own_copy = save_tiny_model(tmp_path / "model")  # lighteval writes its cache next to the weights
    with (
        mock.patch.object(Registry, "load_all_task_configs", only),
        mock.patch.object(
            LightevalTask, "download_dataset_worker", staticmethod(lambda task: {"test": rows})
        ),
    ):
        pipeline = Pipeline(
            tasks="by-hand|0",
            model_config=TransformersModelConfig(model_name=str(own_copy), batch_size=1),
            evaluation_tracker=EvaluationTracker(output_dir=str(tmp_path / "native")),
            pipeline_parameters=PipelineParameters(
                launcher_type=ParallelismManager.NONE, custom_tasks_directory=module, bootstrap_iters=0
            ),
        )
    pipeline.evaluate()
    details = sorted(pipeline.get_details()["by-hand|0"], key=lambda detail: int(detail.doc.id))
    records = ran(
        make_plan(rows, ASK + compared(continuations="{{ sample.t }}")), tmp_path / "out", models["chat"]
    )
    own = [[each["log_likelihood"] for each in metadata(record)["log_likelihoods"]] for record in records]
    assert own == [pytest.approx(detail.model_response.logprobs, abs=1e-5) for detail in details]
    decided = [record.scores[0].values["is_correct"] for record in records]
    assert decided == [detail.metric["acc"] for detail in details]
    assert 0.0 < sum(decided) < len(decided)


@pytest.mark.parametrize("normalisation", ["none", "characters", "tokens"])
def test_likelihoods_are_normalized_as_configured(
    normalisation: str, models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    made = make_plan(ROWS, ASK + compared(continuations="{{ sample.t }}", length_normalisation=normalisation))
    for row, record in zip(ROWS, ran(made, tmp_path / "out", models["chat"]), strict=True):
        told = metadata(record)
        assert told["length_normalisation"] == normalisation
        scores = [
            each["log_likelihood"]
            / {"none": 1, "characters": len(text), "tokens": each["num_tokens"]}[normalisation]
            for text, each in zip(row["t"], told["log_likelihoods"], strict=True)
        ]
        assert [each["score"] for each in told["log_likelihoods"]] == scores
        assert told["predicted_choice"] == row["c"][scores.index(max(scores))]


AGAINST = ASK.replace("chat_completion,", 'chat_completion, unconditioned_query: "so {{ sample.a }}:",')


@pytest.mark.parametrize("form", ["chat", "plain"])
def test_pmi_normalizes_by_unconditioned_likelihoods(
    form: str, models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    """Torch and the formula of lighteval compute pointwise mutual information.

    The lighteval models only compute its first half.
    """
    from lighteval.metrics.normalizations import LogProbPMINorm, normalize_log_probs

    made = make_plan(ROWS, AGAINST + compared(continuations="{{ sample.t }}", length_normalisation="pmi"))
    decided = set()
    for row, record in zip(ROWS, ran(made, tmp_path / "out", models[form]), strict=True):
        prompt, query = str(row["q"]), f"so {row['a']}:"
        if form == "chat":
            prompt, query = (f"<|user|>{text}<end><|assistant|>" for text in (prompt, query))
        behind, alone = (
            [total for total, _ in by_torch(models[form], text, row["t"])] for text in (prompt, query)
        )
        expected = normalize_log_probs(LogProbPMINorm(), behind, alone, None, None)
        told = metadata(record)
        listed = told["log_likelihoods"]
        assert [each["log_likelihood"] for each in listed] == pytest.approx(behind, abs=2e-4)
        assert [each["unconditioned_log_likelihood"] for each in listed] == pytest.approx(alone, abs=2e-4)
        assert [each["score"] for each in listed] == pytest.approx(expected, abs=4e-4)
        assert told["predicted_choice"] == row["c"][expected.index(max(expected))]
        decided.add(behind.index(max(behind)) == expected.index(max(expected)))
        assert isinstance(record.solver, SolverTrace)
        assert len(record.solver.direct_ios) == 2
    assert False in decided  # it matters
    kept = [row["model_response"]["unconditioned_logprobs"] for row in details_of(tmp_path / "out")]
    assert [len(each) for each in kept] == [3, 2, 4]


def test_missing_unconditioned_likelihoods_fail_the_sample(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    """Outputs of a run without them are not reused, and a stored result cannot be scored with PMI."""
    engine = LightevalEngine()
    plain = make_plan(ROWS, AGAINST + compared(continuations="{{ sample.t }}"))
    log = run_job(engine, plain, tmp_path / "out", model=f"transformers/{models['chat']}")
    made = make_plan(ROWS, AGAINST + compared(continuations="{{ sample.t }}", length_normalisation="pmi"))
    assert made.solver_digest != plain.solver_digest

    scored = next(iter(engine.read(log.path).trials()))
    with pytest.raises(
        SampleError, match="no log-likelihoods of these continuations after the unconditioned"
    ):
        asyncio.run(MostLikelyChoice(made.benchmark.scorers[0])(Sample(0, ROWS[0]), scored.solver, {}))  # type: ignore[arg-type]


def test_pmi_needs_an_unconditioned_query(aigo: Run, make_plan: MakePlan, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="'pmi' needs 'unconditioned_query' in a chat_completion input"):
        make_plan(ROWS, ASK + compared(length_normalisation="pmi"))
    assert aigo("validate", tmp_path / "task" / "t.yaml").code == 1
    make_plan(ROWS, AGAINST + compared(length_normalisation="pmi"))
    assert aigo("validate", tmp_path / "task" / "t.yaml").code == 0
    assert "unconditioned_query: 'so B:'" in aigo("explain", tmp_path / "task" / "t.yaml", "-n", 1).out


def test_a_pmi_export_lists_only_the_custom_backend(aigo: Run, make_plan: MakePlan, tmp_path: Path) -> None:
    make_plan(ROWS, AGAINST + compared(continuations="{{ sample.t }}", length_normalisation="pmi"))
    file = tmp_path / "task" / "t.yaml"

    hosted = aigo("export", file, "--to", "lighteval", "--out", "hosted", "--json")
    native = aigo("export", file, "--to", "lighteval", "--native", "--out", "native")

    assert hosted.code == 0, hosted.err
    assert [command.split()[1] for command in hosted.json["commands"]] == ["custom"]
    assert native.code == 1
    assert "unconditioned query" in native.err


def test_a_tie_selects_the_first_choice_and_is_recorded(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    """`argmax` in lighteval does the same."""
    rows = [
        {"q": "a", "a": "one", "c": ["one", "two"], "t": ["x", "x"]},
        {"q": "a", "a": "two", "c": ["one", "two"], "t": ["x", "x"]},
    ]
    records = ran(
        make_plan(rows, ASK + compared(continuations="{{ sample.t }}")), tmp_path / "out", models["chat"]
    )
    assert [metadata(record)["is_tie"] for record in records] == [True, True]
    assert [metadata(record)["predicted_choice"] for record in records] == ["one", "one"]
    assert [record.scores[0].values["is_correct"] for record in records] == [1.0, 0.0]


INVALID: dict[str, tuple[dict[str, Any], str, str]] = {
    "a truth that is no choice": (
        {"a": "D"},
        "score",
        "ground_truth_choice: found 'D', expected one of ['A', 'B']",
    ),
    "another number of continuations": (
        {"t": ["x"]},
        "solver",
        "continuations: found 1, expected one for each of the 2",
    ),
    "an empty continuation": ({"t": ["x", ""]}, "solver", "but an empty text has no likelihood"),
    "one choice": ({"c": ["A"], "t": ["x"]}, "solver", "choices: found ['A'], expected two or more"),
    "a choice twice": ({"c": ["A", "A"]}, "solver", "choices: found ['A', 'A'], which contains a duplicate"),
    "no list": ({"t": "x or y"}, "solver", "continuations: found the text 'x or y', expected a list"),
    "numbers": ({"t": [1, 2]}, "solver", "continuations: found [1, 2], expected a list of texts"),
    "a prompt that does not fit": (
        {"q": "y" * CONTEXT},
        "solver",
        f"prompt and continuation have {CONTEXT + 3} and 1 token; the model accepts {CONTEXT} in total",
    ),
}


def test_an_incomparable_sample_fails_without_failing_others(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    """lighteval truncates prompts that are too long and ranks a continuation without tokens first."""
    good: dict[str, Any] = {"q": "a", "a": "A", "c": ["A", "B"], "t": ["x", "y"]}
    rows = [good, *({**good, **changed} for changed, _, _ in INVALID.values())]
    records = ran(
        make_plan(rows, ASK + compared(continuations="{{ sample.t }}")), tmp_path / "out", models["chat"]
    )
    assert records[0].errors == ()
    for (_, stage, message), record in zip(INVALID.values(), records[1:], strict=True):
        assert record.scores == ()
        (error,) = record.errors
        assert error.stage is not None
        assert (error.stage.value, message in error.message) == (stage, True), error.message


def test_a_run_with_only_failed_samples_has_evidence(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    rows = [{"q": "a", "a": "A", "c": ["A"]}] * 2
    records = ran(make_plan(rows, ASK + compared()), tmp_path / "out", models["chat"])
    assert [[error.error_type for error in record.errors] for record in records] == [["InvalidChoices"]] * 2


def test_no_answer_is_generated_if_no_scorer_needs_one(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    made = make_plan(ROWS, ASK + compared(continuations="{{ sample.t }}"))
    engine = LightevalEngine()
    log = run_job(engine, made, tmp_path / "out", model=f"transformers/{models['chat']}")
    for record in engine.read(log.path).trials():
        assert isinstance(record.solver, SolverTrace)
        assert [item.role.value for item in record.solver.items if hasattr(item, "role")] == ["user"]
        assert len(record.solver.raw_outputs) == len(record.solver.direct_ios) == 1
        calls = [event for event in record.solver.trace.events or [] if event.type == "model_call_event"]
        assert len(calls) == 1
    results = json.loads(log.path.read_bytes())
    assert set(results["results"]["aigo-t|0"]) == {"string_equals_mcqa.accuracy"}
    shown = details_of(tmp_path / "out")
    assert [row["doc"]["choices"] for row in shown] == [row["t"] for row in ROWS]
    assert [row["doc"]["sampling_methods"] for row in shown] == [["LOGPROBS"]] * 3
    assert [len(row["model_response"]["logprobs"]) for row in shown] == [3, 2, 4]


def test_an_answer_is_also_generated_if_a_scorer_needs_it(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    both = (
        compared(continuations="{{ sample.t }}").rstrip()[:-1]
        + ', {type: string_equals, ground_truth: "x"}]\n'
    )
    (record, *_) = ran(
        make_plan(ROWS, ASK + both), tmp_path / "out", f"transformers/{models['chat']},max_new_tokens=4"
    )
    assert [score.scorer_key for score in record.scores] == ["string_equals_mcqa", "string_equals"]
    assert isinstance(record.solver, SolverTrace)
    assert len(record.solver.raw_outputs) == 2
    answer: Any = record.solver.output
    assert (record.scores[1].metadata or {})["answer_pred"] == answer.choices[0].message.content


def test_two_scorers_share_one_likelihood_request(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    scorer = json.loads(compared(continuations="{{ sample.t }}").split("scorers:")[1])[0]
    scorers = [
        {**scorer, "key": "raw"},
        {**scorer, "key": "by-tokens", "length_normalisation": "tokens"},
        {**scorer, "key": "other", "continuations": None},
    ]
    (record, *_) = ran(
        make_plan(ROWS, f"{ASK}\n  scorers: {json.dumps(scorers)}\n"), tmp_path / "out", models["chat"]
    )
    assert [score.scorer_key for score in record.scores] == ["raw", "by-tokens", "other"]
    assert isinstance(record.solver, SolverTrace)
    assert len(record.solver.direct_ios) == 2


def test_stored_likelihoods_are_rescored_without_the_model(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = LightevalEngine()
    model = f"transformers/{models['chat']}"
    made = make_plan(ROWS, ASK + compared(continuations="{{ sample.t }}"))
    first = run_job(engine, made, tmp_path / "out", model=model)
    again = make_plan(ROWS, ASK + compared(continuations="{{ sample.t }}", length_normalisation="tokens"))
    assert again.solver_digest == made.solver_digest
    asked: list[Any] = []
    monkeypatch.setattr(
        "aigo_lighteval.models.batches.weigh", lambda loaded, questions: asked.append(questions)
    )
    log = run_job(engine, again, tmp_path / "out", model=model, earlier="reuse")
    assert log.replayed
    assert not asked
    for before, after in zip(engine.read(first.path).trials(), engine.read(log.path).trials(), strict=True):
        for old, new in zip(
            metadata(before)["log_likelihoods"], metadata(after)["log_likelihoods"], strict=True
        ):
            assert new["score"] == old["log_likelihood"] / old["num_tokens"]


def test_a_run_without_likelihoods_is_not_reused_for_one_with_them(make_plan: MakePlan) -> None:
    likely = make_plan(ROWS, ASK + compared(continuations="{{ sample.t }}"))
    other = make_plan(ROWS, ASK + compared(continuations="{{ sample.c }}"))
    letters = make_plan(ROWS, ASK + compared(method="first_character"))
    assert len({likely.solver_digest, other.solver_digest, letters.solver_digest}) == 3


def test_score_command_rescores_the_likelihoods_of_a_result_log(
    aigo: Run, models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    """The result is scored with another normalization on the engine that has no likelihoods."""
    make_plan(ROWS, ASK + compared(continuations="{{ sample.t }}"))
    model = f"transformers/{models['chat']}"
    done = aigo(
        "run", tmp_path / "task" / "t.yaml", "--engine", "lighteval", "--model", model, "--out", "out"
    )
    assert done.code == 0, done.err
    make_plan(ROWS, ASK + compared(continuations="{{ sample.t }}", length_normalisation="characters"))
    (log,) = Path(tmp_path / "out").glob("*.tasklog.json")
    done = aigo("score", tmp_path / "task" / "t.yaml", log, "--out", "again", "--json")
    assert done.code == 0, done.err
    (log,) = Path(tmp_path / "again").glob("*.tasklog.json")
    for sample in json.loads(log.read_text())["evidence"]["samples"]:
        (score,) = sample["trials"][0]["scores"] if "trials" in sample else sample["scores"]
        for each in score["metadata"]["log_likelihoods"]:
            assert each["score"] == each["log_likelihood"] / len(each["continuation"])


# Models without likelihoods


def test_inspect_refuses_scorers_that_compare_likelihoods(make_plan: MakePlan) -> None:
    made = make_plan(ROWS, ASK + compared())
    with pytest.raises(UnsupportedPlanError) as caught:
        require_exact(InspectEngine().gaps(made), engine="inspect")
    assert "scorers[0] (string_equals_mcqa, loglikelihood): compares log-likelihoods of given texts" in str(
        caught.value
    )
    assert "--engine lighteval --model transformers/PATH" in str(caught.value)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("scripted/nothing.jsonl", "returns texts, but no likelihoods of given texts"),
        ("openai/gpt-x", "use a model of the backend transformers or lighteval/vllm"),
        ("lighteval/sglang/x", "it does not return reliable likelihoods"),
        ("tgi/http://127.0.0.1:9", "it does not return reliable likelihoods"),
    ],
)
def test_models_without_likelihoods_are_refused_before_model_calls(
    model: str, message: str, make_plan: MakePlan, tmp_path: Path
) -> None:
    with pytest.raises(UnsupportedPlanError) as caught:
        ran(make_plan(ROWS, ASK + compared()), tmp_path / "out", model)
    assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("solver", "reason"),
    [
        (
            "\n  solver: {type: multi_turn_solver, message_builders: [{type: generate}]}\n",
            "after one prompt, which 'multi_turn_solver' does not have",
        ),
        (
            ASK
            + "    postprocessor: {type: python, postprocess_snippet: 'def postprocess(sample, solver_output): return []'}\n",
            "rows of a post-processor do not have",
        ),
    ],
)
def test_likelihoods_need_one_prompt_per_row(solver: str, reason: str, make_plan: MakePlan) -> None:
    made = make_plan(ROWS, solver + compared())
    for engine in (LightevalEngine(), InspectEngine()):
        with pytest.raises(UnsupportedPlanError) as caught:
            require_exact(engine.gaps(made), engine=engine.name)
        assert reason in str(caught.value)


def test_explain_shows_the_continuations(aigo: Run, make_plan: MakePlan, tmp_path: Path) -> None:
    make_plan(ROWS, ASK + compared(continuations="{{ sample.t }}", length_normalisation="characters"))
    done = aigo("explain", tmp_path / "task" / "t.yaml", "--num-samples", "1")
    assert done.code == 0, done.err
    shown = " ".join(done.out.split())
    assert '{"A": "red", "B": "the sea", "C": "é"}' in shown
    assert "no text is generated" in shown
    assert "length_normalisation: 'characters'" in shown
    assert "the model's answer" not in shown


@pytest.mark.parametrize("name", ["method", "continuations", "length_normalisation"])
def test_release_317_refuses_the_extension(aigo: Run, make_plan: MakePlan, tmp_path: Path, name: str) -> None:
    make_plan(ROWS, ASK + compared(continuations="{{ sample.t }}", length_normalisation="tokens"))
    file = tmp_path / "task" / "t.yaml"
    assert aigo("validate", file).code == 0
    strict = aigo("validate", file, "--dialect", "aigo-3.17")
    assert strict.code == 1
    assert f"'{name}' is an aigo-bridge extension" in strict.out + strict.err


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"method": "first_character", "continuations": "{{ sample.t }}"},
            "'continuations' has no effect here",
        ),
        (
            {"method": "first_character", "length_normalisation": "tokens"},
            "'length_normalisation' has no effect here",
        ),
        (
            {"choices": ["A", "B"], "continuations": ["x"]},
            "'continuations': found 1, expected one for each of the 2",
        ),
        ({"choices": ["A", ""]}, "'choices': an empty text has no likelihood"),
        ({"method": "likelihood"}, "expected one of 'first_character', 'loglikelihood'"),
    ],
)
def test_contradictions_are_reported_with_their_position(
    fields: dict[str, Any], message: str, aigo: Run, make_plan: MakePlan, tmp_path: Path
) -> None:
    make_plan(ROWS, ASK + compared())
    file = tmp_path / "task" / "t.yaml"
    file.write_text(file.read_text().replace(compared(), compared(**fields)))
    done = aigo("validate", file)
    assert done.code == 1
    assert message in done.out + done.err


def test_choices_may_have_any_length(aigo: Run, make_plan: MakePlan, tmp_path: Path) -> None:
    """Only a comparison by first character needs letters."""
    make_plan(ROWS, ASK + compared(choices=["yes", "no"]))
    assert aigo("validate", tmp_path / "task" / "t.yaml").code == 0


def test_a_missing_column_is_reported_before_the_run(make_plan: MakePlan) -> None:
    with pytest.raises(SpecError, match=r"`sample\.nowhere` is not a column of the dataset"):
        make_plan(ROWS, ASK + compared(continuations="{{ sample.nowhere }}"))
