"""Model classes of lighteval on a tiny model: their silent changes to a task do not happen."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run
from tests.support.jobs import run_job
from tests.support.tiny_model import CHAT_TEMPLATE, CONTEXT, save_tiny_model

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import SolverTrace
from aigo_bridge.engine.protocol import Progress
from aigo_bridge.errors import UnsupportedPlanError, UsageError
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.results.records import TrialRecord
from aigo_lighteval.engine import LightevalEngine
from aigo_lighteval.models.backends import BACKENDS, backend_model

pytestmark = pytest.mark.xdist_group("lighteval")

MakePlan = Callable[..., TaskPlan]

BODY = """
  solver:
    type: single_turn_solver
    input_builder: {type: generic, template: "{{ sample.body | tojson }}"}
"""
ASK_TEMPLATE = """
  solver:
    type: single_turn_solver
    input_builder:
      type: generic
      template: >-
        {"messages": [{"role": "user", "content": "QUESTION"}], "max_tokens": 2, "stop": ["", "x"]}
"""
EQUALS = """
  scorers: [{type: string_equals, ground_truth: "{{ sample.a }}"}]
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write a model with a chat template and the same model without one."""
    folder = tmp_path_factory.mktemp("models")
    return {
        "chat": save_tiny_model(folder / "chat"),
        "plain": save_tiny_model(folder / "plain", chat=False),
    }


def ran(made: TaskPlan, out: Path, model: str, **settings: Any) -> list[TrialRecord]:
    engine = LightevalEngine()
    return list(engine.read(run_job(engine, made, out, model=model, **settings).path).trials())


def solved(record: TrialRecord) -> SolverTrace:
    assert isinstance(record.solver, SolverTrace), record.errors
    return record.solver


def answer(record: TrialRecord) -> str:
    output: Any = solved(record).output
    text: str = output.choices[0].message.content
    return text


def usage(record: TrialRecord) -> tuple[int | None, int | None]:
    output: Any = solved(record).output
    return output.usage.num_prompt_tokens, output.usage.num_completion_tokens


def sent(record: TrialRecord) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(solved(record).direct_ios[0].direct_input.body)
    return body


def body(*messages: tuple[str, str], **options: Any) -> dict[str, Any]:
    return {
        "body": {"messages": [{"role": role, "content": text} for role, text in messages], **options},
        "a": "x",
    }


def greedy(folder: Path, prompt: str, size: int) -> tuple[str, int, int]:
    """Generate the most likely tokens directly; return the text, prompt tokens and answer tokens."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    model.eval()
    tokens = tokenizer(prompt)["input_ids"]
    written: list[int] = []
    with torch.no_grad():
        while len(written) < size and tokenizer.eos_token_id not in written:
            logits = model(torch.tensor([tokens + written])).logits[0, -1]
            written.append(int(logits.argmax()))
    return str(tokenizer.decode(written, skip_special_tokens=True)), len(tokens), len(written)


QUESTIONS = ["why?", "the the the the", "how many letters has the alphabet", "é😀", "x"]


@pytest.mark.parametrize("settings", ["", ",batch_size=4"])
@pytest.mark.parametrize("form", ["chat", "plain"])
def test_answers_are_the_most_likely_tokens(
    form: str, settings: str, models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    rows = [body(("user", text), max_tokens=9) for text in QUESTIONS]
    records = ran(make_plan(rows, BODY + EQUALS), tmp_path / "out", f"transformers/{models[form]}{settings}")
    assert [record.sample_id for record in records] == list(range(len(QUESTIONS)))
    for text, record in zip(QUESTIONS, records, strict=True):
        prompt = f"<|user|>{text}<end><|assistant|>" if form == "chat" else text
        assert sent(record)["prompt"] == prompt
        expected, asked, written = greedy(models[form], prompt, 9)
        assert answer(record) == expected
        assert usage(record) == (asked, written)


def test_examples_and_system_messages_become_chat_turns(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    """lighteval has one system prompt for each model; here, every row has its own."""
    rows = [
        body(("system", f"be {number}"), ("user", "a"), ("assistant", "b "), ("user", "c"), max_tokens=3)
        for number in range(3)
    ]
    records = ran(
        make_plan(rows, BODY + EQUALS), tmp_path / "out", f"transformers/{models['chat']},batch_size=3"
    )
    prompt = "<|system|>be {}<end><|user|>a<end><|assistant|>b <end><|user|>c<end><|assistant|>"
    assert [sent(record)["prompt"] for record in records] == [prompt.format(number) for number in range(3)]
    expected = [greedy(models["chat"], prompt.format(number), 3)[0] for number in range(3)]
    assert [answer(record) for record in records] == expected


def test_stop_sequences_apply_with_a_chat_template(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    """With a chat template, lighteval generates up to the end of the turn."""
    whole, _, _ = greedy(models["chat"], "<|user|>why?<end><|assistant|>", 9)
    stop = whole[3]
    records = ran(
        make_plan([body(("user", "why?"), max_tokens=9, stop=[stop])], BODY + EQUALS),
        tmp_path / "out",
        f"transformers/{models['chat']}",
    )
    assert answer(records[0]) == whole.split(stop)[0] != whole
    message: Any = solved(records[0]).items[-1]
    assert message.status.value == "completed"


def test_a_prompt_that_is_too_long_fails_its_sample(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    """lighteval removes the beginning of the prompt without a message."""
    rows = [body(("user", "y" * length), max_tokens=4) for length in (5, CONTEXT, CONTEXT + 400)]
    records = ran(
        make_plan(rows, BODY + EQUALS), tmp_path / "out", f"transformers/{models['plain']},batch_size=3"
    )
    assert [[error.error_type for error in record.errors] for record in records] == [
        [], ["BackendError"], ["BackendError"],
    ]  # fmt: skip
    assert f"the prompt has {CONTEXT} tokens; the model accepts {CONTEXT}" in records[1].errors[0].message


def test_prompts_are_not_truncated_to_the_length_of_others_in_the_batch(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    """lighteval treats the prompt with the most characters as the longest, although another has more tokens."""
    few, many = "the" * 20, "é" * 25
    rows = [body(("user", text), max_tokens=2) for text in (few, many)]
    records = ran(
        make_plan(rows, BODY + EQUALS), tmp_path / "out", f"transformers/{models['plain']},batch_size=2"
    )
    for text, record in zip((few, many), records, strict=True):
        expected, asked, _ = greedy(models["plain"], text, 2)
        assert (answer(record), usage(record)[0]) == (expected, asked)


def test_a_length_in_the_model_string_does_not_truncate_prompts(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    """In lighteval, this setting also limits prompts."""
    rows = [body(("user", "a question of some length")), body(("user", "short"), max_tokens=2)]
    records = ran(
        make_plan(rows, BODY + EQUALS), tmp_path / "out", f"transformers/{models['plain']},max_new_tokens=5"
    )
    expected, asked, written = greedy(models["plain"], "a question of some length", 5)
    assert (answer(records[0]), usage(records[0])) == (expected, (asked, written))
    assert usage(records[1])[1] == 2


def test_unencodable_text_fails_its_sample(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    """Rows never contain such text, but a template can create it.

    Empty questions and stop sequences are valid.
    """
    half = ASK_TEMPLATE.replace("QUESTION", "{{ sample.q if sample.q != 'half' else '\\ud800' }}")
    made = make_plan([{"q": "fine", "a": ""}, {"q": "half", "a": ""}, {"q": "", "a": ""}], half + EQUALS)
    records = ran(made, tmp_path / "out", f"transformers/{models['chat']}")
    assert [bool(record.errors) for record in records] == [False, True, False]


def test_nothing_is_cached_in_the_model_folder(make_plan: MakePlan, tmp_path: Path) -> None:
    """The cache of lighteval is in the folder of a local model and would return old answers."""
    folder = save_tiny_model(tmp_path / "model", chat=False)
    before = sorted(path.name for path in folder.rglob("*"))
    made = make_plan([body(("user", "why?"), max_tokens=9)], BODY + EQUALS)
    first = ran(made, tmp_path / "out", f"transformers/{folder}")
    assert sorted(path.name for path in folder.rglob("*")) == before
    save_tiny_model(folder, chat=False, seed=8)
    second = ran(made, tmp_path / "out", f"transformers/{folder}")
    assert answer(second[0]) == greedy(folder, "why?", 9)[0] != answer(first[0])


def test_a_temperature_samples_tokens_and_a_seed_reproduces_them(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    """lighteval passes a temperature without enabling sampling."""
    made = make_plan([body(("user", "why?"), max_tokens=20)], BODY + EQUALS)
    model = f"transformers/{models['plain']}"
    texts = [
        answer(ran(made, tmp_path / "out", model + settings)[0])
        for settings in ("", ",temperature=1.5,seed=1", ",temperature=1.5,seed=1", ",temperature=1.5,seed=2")
    ]
    assert texts[1] == texts[2]
    assert len(set(texts)) == 3


def test_a_request_refused_by_the_chat_template_fails_only_its_sample(
    make_plan: MakePlan, tmp_path: Path
) -> None:
    folder = save_tiny_model(tmp_path / "model")
    refusing = (
        "{% if 'boom' in messages[0].content %}{{ raise_exception('no booms') }}{% endif %}" + CHAT_TEMPLATE
    )
    (folder / "chat_template.jinja").write_text(refusing)
    rows = [body(("user", text), max_tokens=2) for text in ("fine", "boom", "fine too")]
    records = ran(make_plan(rows, BODY + EQUALS), tmp_path / "out", f"transformers/{folder}")
    assert [[error.error_type for error in record.errors] for record in records] == [
        [], ["ChatTemplateError"], [],
    ]  # fmt: skip
    assert "no booms" in records[1].errors[0].message


def test_a_document_that_fails_its_batch_does_not_fail_others(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One exception would end a lighteval run."""
    from lighteval.models.transformers.transformers_model import TransformersModel

    whole = TransformersModel.greedy_until

    def breaking(self: Any, docs: list[Any]) -> Any:
        if any("boom" in doc.query for doc in docs):
            raise MemoryError("out of memory")
        return whole(self, docs)

    monkeypatch.setattr(TransformersModel, "greedy_until", breaking)
    rows = [body(("user", text), max_tokens=2) for text in ("one", "boom", "three", "four")]
    seen: list[Progress] = []
    records = ran(
        make_plan(rows, BODY + EQUALS),
        tmp_path / "out",
        f"transformers/{models['chat']},batch_size=4",
        on_progress=seen.append,
    )
    assert [[error.error_type for error in record.errors] for record in records] == [
        [], ["MemoryError"], [], [],
    ]  # fmt: skip
    assert [(each.done, each.failed) for each in seen] == [
        (done, each.failed) for done, each in enumerate(seen)
    ]
    assert (seen[-1].done, seen[-1].total, seen[-1].failed) == (4, 4, 1)


CHAT = "\n  solver: {type: single_turn_solver, input_builder: {type: chat_completion, input_messages: %s}}\n"
REFUSED = {
    "a conversation": (
        "\n  solver: {type: multi_turn_solver, message_builders: [{type: chat_message, role: user, content: a}, {type: generate}]}\n",
        "solver (multi_turn_solver): lighteval's transformers backend: a document is one question",
    ),
    "the last word of the assistant": (
        CHAT % "[{role: user, content: a}, {role: assistant, content: b}]",
        "its last message is not from the user",
    ),
    "two questions in a row": (
        CHAT % "[{role: user, content: a}, {role: user, content: b}]",
        "not examples and a question",
    ),
}


@pytest.mark.parametrize(("solver", "message"), REFUSED.values(), ids=REFUSED)
def test_unsupported_requests_are_refused_before_loading(
    solver: str, message: str, make_plan: MakePlan, tmp_path: Path
) -> None:
    (tmp_path / "no-model").mkdir()
    with pytest.raises(UnsupportedPlanError) as caught:
        ran(make_plan([{"a": "b"}], solver + EQUALS), tmp_path / "out", f"transformers/{tmp_path}/no-model")
    assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.5}, "do not support temperature=0.5; the model uses 0.0"),
        ({"seed": 3}, "do not support seed=3"),
        ({"logprobs": True}, "do not support logprobs"),
        ({"max_tokens": "5"}, "max_tokens: found '5', expected a whole number from 1"),
        ({"max_tokens": 0}, "max_tokens: found 0, expected a whole number from 1"),
        ({"stop": [1]}, "stop: found [1], expected a text or a list of texts"),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "schema": {"type": "object"}, "strict": True},
                }
            },
            "structured outputs",
        ),
    ],
)
def test_options_without_a_document_field_are_refused(
    options: dict[str, Any], message: str, make_plan: MakePlan, tmp_path: Path
) -> None:
    (tmp_path / "no-model").mkdir()
    made = make_plan([body(("user", "a")), body(("user", "b"), **options)], BODY + EQUALS)
    with pytest.raises(UnsupportedPlanError) as caught:
        ran(made, tmp_path / "out", f"transformers/{tmp_path}/no-model")
    assert message in str(caught.value)


def test_an_option_equal_to_the_model_string_is_accepted(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    rows = [body(("user", "a"), temperature=0.5, max_tokens=2), body(("user", "b"), max_tokens=2)]
    records = ran(
        make_plan(rows, BODY + EQUALS), tmp_path / "out", f"transformers/{models['chat']},temperature=0.5"
    )
    assert [record.errors for record in records] == [(), ()]


def test_without_a_chat_template_only_one_message_is_accepted(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    model = f"transformers/{models['plain']}"
    (record,) = ran(
        make_plan([body(("user", " as it is "), max_tokens=2)], BODY + EQUALS), tmp_path / "out", model
    )
    assert sent(record)["prompt"] == " as it is "
    both = [body(("system", "s"), ("user", "u"))]
    for forced in (
        "",
        ",revision=main",
        f",tokenizer={models['plain']}",
    ):  # the last is known only when it is loaded
        with pytest.raises(UnsupportedPlanError, match="the model does not have a chat template"):
            ran(make_plan(both, BODY + EQUALS), tmp_path / "other", model + forced)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    "name", ["lighteval/vllm", "lighteval/sglang", "litellm", "lighteval/litellm", "tgi"]
)
def test_a_missing_package_is_reported_with_the_install_command(
    name: str, make_plan: MakePlan, tmp_path: Path
) -> None:
    backend = BACKENDS[name.removeprefix("lighteval/")]
    with pytest.raises(UsageError) as caught:
        ran(make_plan([body(("user", "a"))], BODY + EQUALS), tmp_path / "out", f"{name}/some/model")
    assert str(caught.value).endswith(f"not installed here; run: {backend.remedy}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            "lighteval/nanotron/x",
            "unknown backend 'nanotron' of lighteval; expected one of transformers, vllm",
        ),
        ("transformers/", "found no model, expected transformers/MODEL"),
        ("transformers/./nowhere", "'./nowhere' is not a folder"),
        ("transformers/{empty}", "cannot be loaded: "),
        (
            "transformers/{empty},batchsize=3",
            "unknown setting 'batchsize'; expected one of add_special_tokens, ",
        ),
        ("transformers/{empty},batch_size=none", "batch_size: Input should be a valid integer"),
        ("transformers/{empty},system_prompt=x", "'system_prompt' cannot be set: the task sets it"),
        (
            "transformers/{empty},continuous_batching=true",
            "'continuous_batching' cannot be set: it truncates",
        ),
        ("transformers/{empty},presence_penalty=1", "does not pass presence_penalty on to transformers"),
        (
            "transformers/{empty},pairwise_tokenization=true",
            "'pairwise_tokenization' cannot be set: it has no effect",
        ),
        ("inference-providers/some/model", "provider: Field required"),
        (
            "inference-providers/some/model,provider=x,top_k=3",
            "does not pass top_k on to inference-providers",
        ),
        ("vllm/x", "set VLLM_BASE_URL; lighteval/vllm/x loads it in this process"),
    ],
)
def test_models_that_cannot_be_loaded_are_reported(
    model: str, message: str, make_plan: MakePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VLLM_BASE_URL", raising=False)
    (tmp_path / "empty").mkdir()
    made = make_plan([body(("user", "a"))], BODY + EQUALS)
    with pytest.raises(UsageError) as caught:
        ran(made, tmp_path / "out", model.format(empty=tmp_path / "empty"))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("offline", "said"), [(True, "nothing is downloaded in offline mode"), (False, "as a model from the hub")]
)
def test_a_missing_model_is_reported_as_a_missing_folder_first(
    offline: bool, said: str, make_plan: MakePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    from aigo_lighteval.models import loading

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    made = make_plan([body(("user", "a"))], BODY + EQUALS)
    with pytest.raises(UsageError) as caught:
        ran(made, tmp_path / "out", "transformers/nonexist")
    start = "model 'transformers/nonexist' cannot be loaded: folder 'nonexist' does not exist, "
    assert str(caught.value).startswith(start)
    assert caught.value.code == Code.FAILED_MODEL_LOAD
    # The online message is tested without a network.
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
    assert said in loading._not_here("nonexist")


def test_keys_in_model_strings_are_refused() -> None:
    """The model name is part of the evidence."""
    from aigo_lighteval.models.loading import _config

    class Module:
        from lighteval.models.endpoints.litellm_model import LiteLLMModelConfig

    asked = backend_model("litellm/openai/gpt-x,api_key=sk-secret")
    assert asked is not None
    with pytest.raises(UsageError, match="set LITELLM_API_KEY in the environment"):
        _config(asked, Module)


@pytest.mark.parametrize(
    ("name", "model", "settings"),
    [
        ("transformers/org/name", "org/name", {}),
        ("transformers//models/a,b/c", "/models/a,b/c", {}),
        ("transformers/m,dtype=float32, batch_size = 2", "m", {"dtype": "float32", "batch_size": "2"}),
        ("lighteval/vllm/m=1,x", "m=1,x", {}),
        ("tgi/http://127.0.0.1:8080", "http://127.0.0.1:8080", {}),
    ],
)
def test_model_strings_are_parsed(name: str, model: str, settings: dict[str, str]) -> None:
    asked = backend_model(name)
    assert asked is not None
    assert (asked.model, asked.settings) == (model, settings)


@pytest.mark.parametrize("name", [None, "openai/gpt-x", "vllm/x", "sglang/x", "scripted/a", "model.yaml", ""])
def test_other_strings_are_not_backends(name: str | None) -> None:
    assert backend_model(name) is None


GROUP = """
  solver:
    type: grouped_single_turn_solver
    input_builder: {type: generic, template: "{{ sample.bodies | tojson }}"}
  scorers: [{type: python, compute_scores_snippet: "def compute_scores(sample, solver_output): return {'n': len(solver_output.solver_outputs)}"}]
"""


def test_grouped_questions_are_asked_one_by_one(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    bodies = [body(("user", text), max_tokens=2)["body"] for text in ("a", "b")]
    (record,) = ran(
        make_plan([{"bodies": bodies}], GROUP), tmp_path / "out", f"transformers/{models['chat']}"
    )
    assert [dict(score.values) for score in record.scores] == [{"n": 2}]
    bodies[1]["seed"] = 3
    with pytest.raises(UnsupportedPlanError, match="do not support seed=3"):
        ran(make_plan([{"bodies": bodies}], GROUP), tmp_path / "out", f"transformers/{models['chat']}")


JUDGED = """
  scorers:
    - type: model_as_a_judge_scorer
      model_key: judge
      user_prompt: "rate {{ model_output.choices[0].message.content }}"
      use_structured_outputs: %s
"""


def test_a_backend_judge_is_loaded_once(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aigo_lighteval.models.loading import load as whole

    loads: list[str] = []

    def counted(prepared: Any) -> Any:
        loads.append(prepared.asked_as.name)
        return whole(prepared)

    monkeypatch.setattr("aigo_lighteval.models.batches.load", counted)
    model = f"transformers/{models['chat']},max_new_tokens=4"
    made = make_plan([body(("user", "a"))], BODY + JUDGED % "false")
    records = ran(made, tmp_path / "out", model, model_map={"judge": model})
    assert loads == [model]
    # A random model returns no number, so the judge fails and its call is recorded.
    assert [error.stage and error.stage.value for error in records[0].errors] == ["score"]
    with pytest.raises(UnsupportedPlanError, match=r"scorers\[0\] .*do not support structured outputs"):
        ran(
            make_plan([body(("user", "a"))], BODY + JUDGED % "true"),
            tmp_path / "o",
            model,
            model_map={"judge": model},
        )


def test_a_finished_run_loads_nothing(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_plan([body(("user", "a"), max_tokens=2)], BODY + EQUALS)
    model = f"transformers/{models['chat']}"
    ran(made, tmp_path / "out", model)

    def fail(prepared: Any) -> Any:
        raise AssertionError("loaded")

    monkeypatch.setattr("aigo_lighteval.models.batches.load", fail)
    log = run_job(LightevalEngine(), made, tmp_path / "out", model=model, earlier="resume")
    assert log.reused == 1


def test_trials_and_limits_apply_to_backends(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    made = replace(make_plan([body(("user", "why?"), max_tokens=5)], BODY + EQUALS), num_trials=3)
    records = ran(made, tmp_path / "out", f"transformers/{models['chat']}")
    assert [record.index for record in records] == [0, 1, 2]
    assert len({answer(record) for record in records}) == 1
    records = ran(made, tmp_path / "out", f"transformers/{models['chat']}", token_limit=3)
    assert [[error.error_type for error in record.errors] for record in records] == [["LimitExceeded"]] * 3


def test_an_interrupted_run_is_resumed(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The current batch ends first, because a model cannot be stopped within a batch."""
    from lighteval.models.transformers.transformers_model import TransformersModel

    whole = TransformersModel.greedy_until

    def slow(self: Any, docs: list[Any]) -> Any:
        if docs[0].query == "slow":
            threading.Timer(0.3, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT]).start()
            time.sleep(1.0)
        return whole(self, docs)

    monkeypatch.setattr(TransformersModel, "greedy_until", slow)
    rows = [body(("user", text), max_tokens=2) for text in ("fast", "slow", "late")]
    made, engine = make_plan(rows, BODY + EQUALS), LightevalEngine()
    options: dict[str, Any] = {"model": f"transformers/{models['chat']}", "max_samples": 1}
    log = run_job(engine, made, tmp_path / "out", **options)
    assert engine.read(log.path).execution.status == "cancelled"
    monkeypatch.setattr(TransformersModel, "greedy_until", whole)
    finished = run_job(engine, made, tmp_path / "out", earlier="resume", **options)
    assert [record.errors for record in engine.read(finished.path).trials()] == [(), (), ()]


def test_the_command_line_runs_a_local_model(
    aigo: Run, models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    make_plan([body(("user", "a"), max_tokens=2), body(("user", "b"), max_tokens=2)], BODY + EQUALS)
    model = f"transformers/{models['chat']}"
    done = aigo(
        "run",
        tmp_path / "task" / "t.yaml",
        "--engine",
        "lighteval",
        "--model",
        model,
        "--out",
        "out",
        "--json",
    )
    assert done.code == 0, done.err
    assert [metric["value"] for metric in done.json["metrics"]] == [0.0]
    (log,) = Path(tmp_path / "out").glob("*.tasklog.json")
    execution = json.loads(log.read_text())["execution"]
    assert execution["model_usage"]["num_completion_tokens"] == 4


OFFLINE = """
    import socket, sys
    def connect(self, address):
        print("CONNECTED", address); raise OSError("offline")
    whole = socket.socket.connect
    socket.socket.connect = lambda self, address: (
        whole(self, address) if self.family == socket.AF_UNIX else connect(self, address)
    )
    def lookup(host, *a, **k):
        print("LOOKED UP", host); raise OSError("offline")
    socket.getaddrinfo = lookup
    from aigo_bridge.cli import main
    sys.argv = ["aigo-bridge", "run", *sys.argv[1:], "--engine", "lighteval"]
    main()
"""


def test_a_local_model_runs_without_a_network(
    models: dict[str, Path], make_plan: MakePlan, tmp_path: Path
) -> None:
    """lighteval would request the revision of a folder from the hub and write a cache to the home folder."""
    make_plan([body(("user", "a"), max_tokens=2)], BODY + EQUALS)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(OFFLINE), str(tmp_path / "task" / "t.yaml"),
         "--model", f"transformers/{models['chat']}", "-o", "out"],
        cwd=tmp_path, env={**environment, "HOME": str(tmp_path / "home"), "HF_HOME": str(tmp_path / "hf")},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "CONNECTED" not in done.stdout
    assert "LOOKED UP" not in done.stdout
    assert "1 of 1 sample scored" in done.stdout
    assert "warning" not in done.stderr.lower()
    assert not list((tmp_path / "home").rglob("lighteval")) if (tmp_path / "home").exists() else True


def test_a_call_time_limit_sets_the_backend_timeout_or_is_refused() -> None:
    from aigo_lighteval.models.loading import prepare  # loads lighteval

    def prepared(name: str) -> Any:
        model = backend_model(name)
        assert model is not None
        return prepare(model, 5).config

    assert prepared("inference-providers/org/m,provider=nebius").timeout == 5
    assert prepared("inference-providers/org/m,provider=nebius,timeout=7").timeout == 7
    with pytest.raises(
        UsageError, match=r"--attempt-timeout: .*'inference-endpoint/m' cannot limit the time"
    ):
        prepared("inference-endpoint/m")
