"""Usage of the evaluated model in imported logs: unknown counts are missing, and other models are not
included."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.support.inspect_logs.small import imported, written

Json = dict[str, Any]
EVALUATED, JUDGE = "openai/m", "openai/judge"
TOKENS = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
ANSWER = {
    "choices": [{"message": {"role": "assistant", "content": "4"}, "stop_reason": "stop"}],
    "model": "m",
}
KNOWN = {"num_prompt_tokens": 5, "num_completion_tokens": 2}
ZERO = {"num_samples": 0, "num_prompt_tokens": 0, "num_completion_tokens": 0}


def call(model: str) -> Json:
    event = {"event": "model", "timestamp": "2026-01-02T03:04:05+00:00", "model": model, "input": []}
    return event | {"tools": [], "tool_choice": "auto", "config": {}, "output": ANSWER}


def sample(sample_id: int, epoch: int = 1, **fields: Any) -> Json:
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "4"}]
    return {"id": sample_id, "epoch": epoch, "input": "q", "target": "4", "messages": messages, **fields}


def log(samples: list[Json], used: Json) -> bytes:
    spec = {"task": "t", "model": EVALUATED, "dataset": {}, "config": {}}
    header = {"version": 2, "status": "success", "eval": spec, "stats": {"model_usage": used}}
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for each in samples:
            archive.writestr(f"samples/{each['id']}_epoch_{each['epoch']}.json", json.dumps(each))
        archive.writestr("header.json", json.dumps(header))
    return data.getvalue()


CASES: dict[str, tuple[list[Json], Json, Json | None]] = {
    "answers without usage of their own, as in 2024": (
        [sample(1, output=ANSWER), sample(2, output=ANSWER)],
        {EVALUATED: TOKENS},
        {"num_samples": 2, **KNOWN},
    ),
    "a transcript without usage, its models without provider": (
        [sample(1, events=[call("m")]), sample(2)],
        {EVALUATED: TOKENS},
        {"num_samples": 1, **KNOWN},
    ),
    "six epochs of one sample": (
        [sample(1, epoch, model_usage={EVALUATED: TOKENS}) for epoch in range(1, 7)],
        {EVALUATED: TOKENS},
        {"num_samples": 1, **KNOWN},
    ),
    "only a judge": ([sample(1, model_usage={JUDGE: TOKENS})], {JUDGE: TOKENS}, ZERO),
    "only a judge in an unfinished log": (
        [sample(1, events=[call(JUDGE)], model_usage={JUDGE: TOKENS})],
        {},
        ZERO,
    ),
    "an answer without usage, and a judge with usage": (
        [sample(1, output=ANSWER, model_usage={JUDGE: TOKENS})],
        {JUDGE: TOKENS},
        {"num_samples": 1},
    ),
    "tokens, and no sample that called": ([], {EVALUATED: TOKENS}, None),
    "nothing known": ([sample(1)], {}, None),
}


@pytest.mark.parametrize("case", CASES)
def test_usage_counts_only_the_evaluated_model(case: str, tmp_path: Path) -> None:
    samples, used, expected = CASES[case]
    result = imported(log(samples, used), tmp_path)
    evidence = written(result)
    assert evidence["execution"].get("model_usage") == expected
    assert evidence["specification"]["config"]["inspect"]["stats"]["model_usage"] == used
