"""Exported files with the transformers backend of lighteval, and tasks that only one form or no form
supports."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run
from tests.support.tiny_model import save_tiny_model

from aigo_bridge.errors import UnsupportedPlanError

from .conftest import Direct, Export, Lighteval, Make, Ran

pytestmark = pytest.mark.xdist_group("lighteval")

RunDirect = Callable[..., Direct]
EQUALS = {"type": "string_equals", "ground_truth": "{{ sample.w }}"}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a model with a chat template."""
    return save_tiny_model(tmp_path_factory.mktemp("model"))


def accelerate(lighteval: Lighteval, folder: Path, tiny: Path, cache: Path, number: int = 0) -> Ran:
    """Return `lighteval accelerate` with the arguments or the configuration of the export."""
    configuration = folder / "t" / "model.yaml"
    if configuration.exists():
        named = json.loads(configuration.read_text())
        named["model_parameters"] |= {"model_name": str(tiny), "batch_size": 2, "cache_dir": str(cache)}
        configuration.write_text(json.dumps(named))
        model = "t/model.yaml"
    else:
        model = f"model_name={tiny},batch_size=2,cache_dir={cache}"
    return lighteval(folder, "accelerate", model, f"aigo-t|{number}", "--custom-tasks", "t.py")


ROWS = [{"w": "a"}, {"w": "the sea"}, {"w": "é"}]


@pytest.mark.parametrize("system", [None, "Be brief: the answer, alone."])
def test_generated_answers_get_the_scores_of_a_direct_run(
    system: str | None,
    case: Make,
    direct: RunDirect,
    export: Export,
    lighteval: Lighteval,
    tiny: Path,
    tmp_path: Path,
) -> None:
    """Equal prompts give equal tokens and scores. The system prompt is in the model configuration."""
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": "Say {{ sample.w }}"})
    template = (
        '{"messages": ' + json.dumps(messages).replace('{{ sample.w }}', '{{ sample.w }}') + ', "max_tokens": 6}'
    )  # fmt: skip
    solver = {"type": "single_turn_solver", "input_builder": {"type": "generic", "template": template}}
    bleu = {"type": "bleu", "ground_truth": "the {{ sample.w }}"}
    made = case({"solver": solver, "scorers": [EQUALS, bleu]}, ROWS)
    wanted = direct(made, model=f"transformers/{tiny}")
    hosted = accelerate(lighteval, export(made), tiny, tmp_path / "cache-1")
    native = accelerate(lighteval, export(made, "--native", to="native"), tiny, tmp_path / "cache-2")

    assert hosted.metrics == {**wanted.metrics, "num_errors": 0.0}
    assert native.metrics == wanted.metrics
    texts = [detail["model_response"]["text"] for detail in hosted.details]
    assert texts == [detail["model_response"]["text"] for detail in native.details]
    assert len({text[0] for text in texts}) > 1
    kept = json.loads(hosted.values[0]["aigo"])[0]["string_equals"][0][1]["metadata"]["answer_pred"]
    assert kept == texts[0][0]


@pytest.mark.parametrize("normalisation", ["none", "characters"])
def test_likelihoods_get_the_scores_of_a_direct_run(
    normalisation: str,
    case: Make,
    direct: RunDirect,
    export: Export,
    lighteval: Lighteval,
    tiny: Path,
    tmp_path: Path,
) -> None:
    solver = {
        "type": "single_turn_solver",
        "input_builder": {
            "type": "chat_completion",
            "input_messages": [{"role": "user", "content": "What is {{ sample.w }}?"}],
        },
    }
    scorer = {
        "type": "string_equals_mcqa",
        "method": "loglikelihood",
        "length_normalisation": normalisation,
        "choices": ["A", "B", "C"],
        "continuations": "{{ sample.c }}",
        "ground_truth_choice": "{{ sample.a }}",
    }
    rows = [
        {"w": "one", "c": ["the", "a long one", "x"], "a": "A"},
        {"w": "two", "c": ["é", "b", "longer, still"], "a": "B"},
        {"w": "three", "c": ["x y z", "the the the", "q"], "a": "C"},
        {"w": "four", "c": ["u", "v", "w"], "a": "A"},
    ]
    made = case({"solver": solver, "scorers": [scorer]}, rows)
    wanted = direct(made, model=f"transformers/{tiny}")
    hosted = accelerate(lighteval, export(made), tiny, tmp_path / "cache-1")
    native = accelerate(lighteval, export(made, "--native", to="native"), tiny, tmp_path / "cache-2")
    assert hosted.metrics == {**wanted.metrics, "num_errors": 0.0}
    assert native.metrics == wanted.metrics
    assert native.values == wanted.scores
    scored = [json.loads(value["aigo"])[0]["string_equals_mcqa"][0][1]["values"] for value in hosted.values]
    assert scored == [scores["string_equals_mcqa"] for scores in wanted.scores]


def test_a_changed_export_does_not_reuse_cached_answers(
    case: Make, export: Export, lighteval: Lighteval, tiny: Path, tmp_path: Path
) -> None:
    """lighteval caches answers by task and row number, so the version of a task distinguishes changed
    prompts."""
    solver = {
        "type": "single_turn_solver",
        "input_builder": {
            "type": "generic",
            "template": '{"messages": [{"role": "user", "content": {{ sample.w | tojson }}}], "max_tokens": 4}',
        },
    }
    cache = tmp_path / "cache-of-answers"
    first = case({"solver": solver, "scorers": [EQUALS]}, [{"w": "one"}, {"w": "two"}])
    one = accelerate(lighteval, export(first, "--native", to="one"), tiny, cache)
    changed = case({"solver": solver, "scorers": [EQUALS]}, [{"w": "the other"}, {"w": "é é"}])
    two = accelerate(lighteval, export(changed, "--native", to="two"), tiny, cache)
    assert [row["doc"]["query"] for row in two.details] == ["the other", "é é"]
    assert [row["model_response"]["text"] for row in two.details] != [
        row["model_response"]["text"] for row in one.details
    ]


def test_a_model_with_other_settings_is_refused(
    case: Make, export: Export, lighteval: Lighteval, tiny: Path, tmp_path: Path
) -> None:
    """Metrics of lighteval do not receive the system prompt, so the model is checked."""
    solver = {
        "type": "single_turn_solver",
        "input_builder": {
            "type": "chat_completion",
            "input_messages": [
                {"role": "system", "content": "Be brief"}, {"role": "user", "content": "{{ sample.w }}"}
            ],
        },
    }  # fmt: skip
    folder = export(case({"solver": solver, "scorers": [EQUALS]}, ROWS[:1]))
    (folder / "t" / "model.yaml").unlink()
    with pytest.raises(UnsupportedPlanError, match="the task needs system_prompt 'Be brief'"):
        accelerate(lighteval, folder, tiny, tmp_path / "cache-1")


def test_a_truncated_prompt_is_not_scored(
    case: Make, export: Export, lighteval: Lighteval, tiny: Path, tmp_path: Path
) -> None:
    """lighteval removes the beginning of the prompt without a message."""
    solver = {
        "type": "single_turn_solver",
        "input_builder": {
            "type": "generic",
            "template": '{"messages": [{"role": "user", "content": {{ sample.w | tojson }}}], "max_tokens": 2}',
        },
    }
    made = case({"solver": solver, "scorers": [EQUALS]}, [{"w": "short"}, {"w": "x" * 300}])
    hosted = accelerate(lighteval, export(made), tiny, tmp_path / "cache-1")
    assert hosted.metrics["num_errors"] == 1.0
    (failure,) = [
        value["aigo"] for value in hosted.values if "string_equals" not in json.loads(value["aigo"])[0]
    ]
    (trial,) = json.loads(failure)
    assert (list(trial), trial["failure"]["kind"]) == (["failure"], "UntrustedAnswer")


def test_task_records_are_scored_with_their_own_metrics(
    aigo: Run, case: Make, direct: RunDirect, export: Export, lighteval: Lighteval, tmp_path: Path
) -> None:
    """The records have examples in the prompt, all post-processing rules except the one for code, and five
    metrics."""
    shots = [{"prompt": "Question: 2 + 2\nAnswer:", "completion": "4"}]
    kinds = [
        ("arithmetic", "exact_match", ["41", "forty-one"], "strip_whitespace", " 41\n"),
        ("arithmetic", "accuracy", ["7"], "extract_first_line", "\n 7 \nand more"),
        ("mcq", "exact_match", ["B"], "extract_letter", "It is B."),
        ("classification", "f1", ["yes, it is"], "lower", "YES it was"),
        ("summary", "rouge_l", ["the cat sat on the mat"], "none", "a cat on a mat"),
        ("summary", "bleu_4", ["the cat sat on the mat"], "none", "the cat sat on a mat"),
    ]
    records = [
        {
            "task_id": f"r{number}",
            "category": category,
            "prompt": f"Question number {number}\nAnswer:",
            "targets": targets,
            "metric_name": metric,
            "post_process": rule,
            **({"few_shot_examples": shots} if number % 2 else {}),
        }
        for number, (category, metric, targets, rule, _) in enumerate(kinds)
    ]
    file = tmp_path / "records.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    from aigo_bridge.jsonl_spec import load_tasks, to_aigo, write_aigo

    answers = {f"number {number}": kind[-1] for number, kind in enumerate(kinds)}
    made = case({"scorers": []}, [], answers)
    write_aigo(to_aigo(load_tasks(file), key="t"), made.folder)
    wanted = direct(made)
    assert len(wanted.metrics) == 5
    words = ("custom", "scripted", made.backend, "aigo-t|0", "--custom-tasks", "t.py")
    hosted = lighteval(export(made), *words)
    native = lighteval(export(made, "--native", to="native"), *words)
    assert [made.asked[str(number)] for number in range(len(kinds))] == wanted.asked
    assert hosted.metrics == {**wanted.metrics, "num_errors": 0.0}
    assert native.metrics == wanted.metrics
    found = [
        {name: value for name, value in values["task_metric"].items() if value is not None}
        for values in native.values
    ]
    assert found == [scores["task_metric"] for scores in wanted.scores]
    assert not any(math.isnan(value) for values in found for value in values.values())


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"scorers": [{"type": "python", "compute_scores_snippet": "def compute_scores(s, o):\n    return {}", "metrics": []}]},
        "scorers[0] (python)",
    ),
    (
        {"scorers": [{"type": "model_as_a_judge_scorer", "model_key": "j", "user_prompt": "x"}]},
        "approximate: lighteval's judge uses another prompt",
    ),
    ({"scorers": []}, "lighteval only calls a model for a metric"),
    ({"solver": {"type": "multi_turn_solver", "message_builders": [{"type": "generate"}, {"type": "generate"}]}}, "one answer"),
    ({"solver": None, "scorers": [{**EQUALS, "value": "{{ sample.w }}"}]}, "always do"),
]  # fmt: skip


@pytest.mark.parametrize(("definition", "reason"), REFUSED)
def test_tasks_without_a_native_form_are_refused_with_every_reason(
    definition: dict[str, Any], reason: str, case: Make, aigo: Run, tmp_path: Path
) -> None:
    solver = {
        "type": "single_turn_solver",
        "input_builder": {"type": "chat_completion", "input_messages": [{"role": "user", "content": "x"}]},
    }
    whole = {"solver": solver, "scorers": [EQUALS], **definition}
    made = case({name: value for name, value in whole.items() if value is not None}, ROWS)
    done = aigo("export", made.folder, "--to", "lighteval", "--native", "--out", tmp_path / "out")
    assert done.code == 1
    assert "cannot be exported as plain lighteval code" in done.err
    assert reason in " ".join(done.err.split())
    assert not (tmp_path / "out").exists()


def test_samples_that_would_fail_are_reported(case: Make, aigo: Run, tmp_path: Path) -> None:
    solver = {
        "type": "single_turn_solver",
        "input_builder": {
            "type": "chat_completion",
            "input_messages": [{"role": "user", "content": "{{ sample.w + 1 }}"}],
        },
    }
    made = case({"solver": solver, "scorers": [EQUALS]}, [{"w": 1}, {"w": "one"}])
    done = aigo("export", made.folder, "--to", "lighteval", "--native", "--out", tmp_path / "out")
    assert done.code == 1
    assert "1 would fail in a run: sample 1" in " ".join(done.err.split())


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (
            {"definition": {"type": "system_task", "compute_evidence_snippet": "def compute_evidence():\n    return {}"}},
            "lighteval does not run tasks without documents",
        ),
        (
            {"definition": {"dataset": {"key": "rows"}, "solver": {"type": "single_turn_solver", "input_builder": {"type": "chat_completion", "input_messages": [{"role": "user", "content": "x"}]}}, "scorers": [{"type": "code_exec", "tests": "w"}]}},
            "does not have a sandbox",
        ),
        (
            {"definition": {"dataset": {"key": "rows"}, "solver": {"type": "agent_solver", "input_builder": {"type": "chat_completion", "input_messages": [{"role": "user", "content": "x"}]}}, "scorers": []}},
            "solver (agent_solver): runs code that a model wrote",
        ),
    ],
)  # fmt: skip
def test_tasks_that_lighteval_cannot_run_are_refused(
    document: dict[str, Any], reason: str, case: Make, aigo: Run, tmp_path: Path
) -> None:
    made = case({}, ROWS)
    whole = {"key": "t", "display_name": "T", "description": "", **document}
    (made.folder / "task.yaml").write_text(json.dumps(whole))
    done = aigo("export", made.folder, "--to", "lighteval", "--out", tmp_path / "out")
    assert done.code == 1, done.err
    assert reason in " ".join(done.err.split())


def test_exported_parameters_can_be_edited(case: Make, export: Export, lighteval: Lighteval) -> None:
    """Invalid parameters are refused, as is a task with changed files."""
    solver = {
        "type": "single_turn_solver",
        "input_builder": {
            "type": "chat_completion",
            "input_messages": [{"role": "user", "content": "Say {{ sample.w }}, << config.tone >>"}],
        },
    }
    parameter = {"type": "categorical", "key": "tone", "display_name": "Tone", "allowed_values": ["dry", "warm"], "default_value": "dry"}  # fmt: skip
    made = case(
        {"solver": solver, "scorers": [EQUALS]}, ROWS, {"a, warm": "a", "a, dry": "b"}, config_spec=[parameter]
    )  # fmt: skip
    folder = export(made)
    assert '| `tone` | `str` | Tone; one of dry, warm | `"dry"` |' in (folder / "README.md").read_text()
    words = ("custom", made.model, "t/model.py", "aigo-t|0", "--custom-tasks", "t.py")
    assert lighteval(folder, *words).metrics["string_equals.accuracy"] == 0.0
    code = (folder / "t.py").read_text()
    (folder / "t.py").write_text(code.replace('"tone": "dry"', '"tone": "warm"'))
    assert lighteval(folder, *words).metrics["string_equals.accuracy"] == pytest.approx(1 / 3)
    # Another length: Python would use the bytecode of a file with the same size and second.
    (folder / "t.py").write_text(code.replace('"tone": "dry"', '"tone": "friendly"'))
    with pytest.raises(Exception, match="friendly"):
        lighteval(folder, *words)
    (folder / "t.py").write_text(code)
    with (folder / "t" / "samples.jsonl").open("a") as file:
        file.write('{"w": "more"}\n')
    with pytest.raises(Exception, match=r"samples\.jsonl has changed"):
        lighteval(folder, *words)


def test_two_tasks_are_exported_to_one_folder(
    case: Make, aigo: Run, export: Export, lighteval: Lighteval
) -> None:
    """A task for Inspect shares the folder and README.

    Rows of an earlier export are not reused for a later one.
    """
    solver = {
        "type": "single_turn_solver",
        "input_builder": {"type": "chat_completion", "input_messages": [{"role": "user", "content": "Say {{ sample.w }}"}]},
    }  # fmt: skip
    made = case({"solver": solver, "scorers": [EQUALS]}, ROWS, {"Say": "a"})
    folder = export(made)
    words = ("custom", made.model, "t/model.py", "aigo-t|0", "--custom-tasks", "t.py")
    assert lighteval(folder, *words).metrics["string_equals.accuracy"] == pytest.approx(1 / 3)
    case({"solver": solver, "scorers": [EQUALS]}, [{"w": "a"}], {"Say": "a"})
    export(made, "--force")
    assert lighteval(folder, *words).metrics["string_equals.accuracy"] == 1.0
    case({"solver": solver, "scorers": [EQUALS]}, ROWS, {"Say": "a"}, key="other")
    done = aigo("export", made.folder, "--to", "inspect", "--out", folder, "--force")
    assert done.code == 0, done.err
    readme = (folder / "README.md").read_text()
    assert "lighteval custom" in readme
    assert "inspect eval other.py" in readme


def test_native_code_is_formatted_and_passes_the_linter(case: Make, export: Export, command: Run) -> None:
    from aigo_bridge.exporting.manifest import read_manifest

    made = case(
        {
            "solver": {
                "type": "single_turn_solver",
                "input_builder": {
                    "type": "chat_completion",
                    "input_messages": [
                        {"role": "system", "content": 'Be "brief"'},
                        {"role": "user", "content": "Say a"},
                        {"role": "assistant", "content": "a"},
                        {"role": "user", "content": "Say {{ sample.w }}"},
                    ],
                },
            },
            "scorers": [
                {**EQUALS, "key": "over_trials"},
                {"type": "bleu", "key": "a-rather-long-key-of-a-scorer-with-many-words", "ground_truth": "x"},
            ],
            "trials": {"num_trials": 2},
        },
        ROWS,
    )
    folder = export(made, "--native")
    assert (folder / "requirements.txt").read_text().splitlines()[1:] == [
        "huggingface_hub<2",
        *(f"{name}=={version}" for name, version in _pinned()),
        "xxhash<4",
    ]
    assert read_manifest(folder / "t").commands == (
        "lighteval accelerate t/model.yaml 'aigo-t|1' --custom-tasks t.py --save-details",
    )
    for words in (("format", "--isolated", "--check"), ("check", "--isolated")):
        done = command("ruff", *words, folder / "t.py")
        assert done.code == 0, done.out + done.err
    assert "aigo_bridge" not in (folder / "t.py").read_text()


def _pinned() -> list[tuple[str, str]]:
    import importlib.metadata

    return [(name, importlib.metadata.version(name)) for name in ("lighteval", "sacrebleu")]


def test_an_export_runs_in_a_separate_lighteval_process(
    case: Make, export: Export, command: Run, tmp_path: Path
) -> None:
    """The printed command runs in another folder without the original files."""
    import shutil

    made = case({"solver": {"type": "pass_through_solver", "trace_column": "trace"}, "scorers": [EQUALS]}, [
        {"w": "x", "trace": [{"type": "message", "id": "", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "x", "annotations": []}]}]},
    ])  # fmt: skip
    folder = export(made)
    shutil.move(folder, tmp_path / "far away")
    shutil.rmtree(made.folder)
    manifest = json.loads((tmp_path / "far away" / "t" / "export.json").read_text())
    (line,) = manifest["commands"]
    assert line == "lighteval custom none t/model.py 'aigo-t|0' --custom-tasks t.py --save-details"
    start = (
        "import sys, types; sys.argv[0] = 'lighteval'\n"
        "for name in ('tiny_benchmarks', 'mix_eval.main', 'mt_bench.main'):\n"
        "    sys.modules['lighteval.tasks.tasks.' + name] = types.ModuleType(name)\n"
        "import nltk; nltk.download = lambda *_, **__: True\n"
        "from lighteval.__main__ import app; app()"
    )
    words = [word.strip("'") for word in line.split()[1:]]
    done = command("python", "-c", start, *words, "--output-dir", "out", cwd=tmp_path / "far away")
    assert done.code == 0, done.err[-2000:]
    (results,) = (tmp_path / "far away" / "out").glob("results/**/*.json")
    assert json.loads(results.read_text())["results"]["aigo-t|0"] == {"string_equals.accuracy": 1.0, "num_errors": 0.0}  # fmt: skip


@pytest.mark.parametrize("form", [(), ("--native",)])
def test_inspect_export_refuses_likelihoods(form: tuple[str, ...], case: Make, aigo: Run, tmp_path: Path) -> None:  # fmt: skip
    """Inspect models have no likelihoods, and comparing the first character would give another score."""
    solver = {
        "type": "single_turn_solver",
        "input_builder": {"type": "chat_completion", "input_messages": [{"role": "user", "content": "x"}]},
    }
    scorer = {"type": "string_equals_mcqa", "method": "loglikelihood", "choices": ["a", "b"], "ground_truth_choice": "a"}  # fmt: skip
    made = case({"solver": solver, "scorers": [scorer]}, ROWS)
    done = aigo("export", made.folder, "--to", "inspect", *form, "--out", tmp_path / "out")
    assert done.code == 1
    assert "likel" in done.err
    assert not (tmp_path / "out").exists()
