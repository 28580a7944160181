"""Write tests/golden/every_eval_ever/records: Every Eval Ever files in the shapes written by its collectors.

python -m tests.golden.make_every_eval_ever
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]

RECORDS = Path(__file__).resolve().parent / "every_eval_ever" / "records"
HUB = {
    "dataset_name": "quiz",
    "source_type": "hf_dataset",
    "hf_repo": "org/quiz",
    "hf_split": "test",
    "samples_number": 3,
}
URL = {"dataset_name": "board", "source_type": "url", "url": ["https://board.example/results.csv"]}
KNOWN = {"deployment_type": "self_deployed", "model_availability": "open_weights"}
PRIVATE = {"dataset_name": "inhouse", "source_type": "other"}


def metric(name: str = "accuracy", score: float = 0.5, **fields: Any) -> Json:
    """Return an entry of `evaluation_results`."""
    config = {"metric_id": name, "metric_name": name, "lower_is_better": False, "score_type": "continuous"}
    config |= {"min_score": 0, "max_score": 1, **fields.pop("config", {})}
    return {
        "evaluation_result_id": f"r-{name}",
        "evaluation_name": "quiz",
        "source_data": HUB,
        "metric_config": config,
        "score_details": {"score": score, **fields.pop("details", {})},
        **fields,
    }


def instance(number: int, score: float = 1.0, **fields: Any) -> Json:
    """Return a line of an instances file."""
    wanted, got = "Paris", "Paris" if score else "Rome"
    return {
        "evaluation_name": "quiz",
        "evaluation_result_id": "r-accuracy",
        "sample_id": f"s{number}",
        "sample_hash": None,
        "interaction_type": "single_turn",
        "input": {"raw": f"Question {number}?", "formatted": None, "reference": [wanted], "choices": None},
        "output": {"raw": [got], "reasoning_trace": None},
        "messages": None,
        "answer_attribution": [attribution(got)],
        "evaluation": {"score": score, "is_correct": score == 1},
        **fields,
    }


def attribution(text: str, turn: int = 0) -> Json:
    return {
        "turn_idx": turn,
        "source": "output.raw" if turn == 0 else f"messages[{turn}].content",
        "extracted_value": text,
        "extraction_method": "exact_match",
        "is_terminal": True,
    }


def turns(*messages: tuple[str, str | None], **more: Any) -> Json:
    """Return the fields of an instance with several turns."""
    listed = [{"turn_idx": at, "role": role, "content": text} for at, (role, text) in enumerate(messages)]
    kind = more.pop("kind", "multi_turn")
    at = len(listed) - 1
    shown = [attribution(messages[at][1] or "", at)]
    return {"interaction_type": kind, "output": None, "messages": listed, "answer_attribution": shown, **more}


def tool_turns() -> Json:
    fields = turns(
        ("system", "Use tools."), ("user", "Weather in Oslo and Łódź?"), ("assistant", None), ("tool", "4 °C"),
        ("tool", "9 °C"), ("assistant", "4 and 9"), kind="agentic",
    )  # fmt: skip
    calls = [
        {"id": f"c{n}", "name": "weather", "arguments": {"city": city}}
        for n, city in enumerate(("Oslo", "Łódź"))
    ]
    fields["messages"][2]["tool_calls"] = calls
    fields["messages"][3]["tool_call_id"], fields["messages"][4]["tool_call_id"] = ["c0"], ["c1"]
    fields["messages"][5]["reasoning_trace"] = "Both are there."
    return fields


JUDGE: Json = {
    "judges": [
        {
            "model_info": {"name": "judge", "id": "org/judge", "additional_details": KNOWN},
            "temperature": 0,
            "weight": 1,
        }
    ],
    "input_prompt": "Is this right?",
    "aggregation_method": "majority_vote",
}


def cases() -> Iterator[tuple[str, Sequence[Json], Sequence[Json] | None, Json]]:
    """Return metrics, instances (or none) and other record fields by case name."""
    error = {"standard_error": {"value": 0.02, "method": "analytic"}}
    interval = {
        "confidence_interval": {"lower": 0.4, "upper": 0.6, "confidence_level": 0.95, "method": "bootstrap"}
    }
    board = {
        "source_metadata": {
            "source_type": "documentation",
            "source_organization_name": "Board",
            "evaluator_relationship": "third_party",
        }
    }
    both = [instance(1), instance(2, 0.0)]
    yield "leaderboard", [metric(source_data=URL, details={"uncertainty": error})], None, board
    yield (
        "leaderboard-of-many",
        [
            metric(name, 0.1 * at, source_data=URL, evaluation_name=name)
            for at, name in enumerate(("mmlu", "gsm8k", "ifeval"), 1)
        ],
        None,
        board,
    )
    yield "binary", [metric(config={"score_type": "binary"})], both, {}
    yield (
        "continuous",
        [metric("f1", 0.625, config={"max_score": 1})],
        [instance(1, evaluation_result_id="r-f1"), instance(2, 0.25, evaluation_result_id="r-f1")],
        {},
    )
    levels = {
        "score_type": "levels",
        "level_names": ["poor", "fair", "good"],
        "has_unknown_level": False,
        "min_score": 0,
        "max_score": 2,
    }
    yield (
        "levels",
        [metric("grade", 1.5, config=levels)],
        [instance(1, evaluation_result_id="r-grade"), instance(2, 2.0, evaluation_result_id="r-grade")],
        {},
    )
    two = [line | {"evaluation_result_id": f"r-{name}"} for name in ("accuracy", "f1") for line in both]
    yield "two-metrics", [metric(), metric("f1", 0.5)], two, {}
    yield (
        "two-evaluations",
        [metric(), metric("acc", 1.0, evaluation_name="riddles")],
        [*both, instance(1, evaluation_name="riddles", evaluation_result_id="r-acc")],
        {},
    )
    listed = {"raw": "Which?", "formatted": "Which?\nA) x\nB) y", "reference": ["B"], "choices": ["x", "y"]}
    yield (
        "choices",
        [metric(score=1.0)],
        [instance(1, input=listed, output={"raw": ["B"], "reasoning_trace": None})],
        {},
    )
    yield (
        "multi-turn",
        [metric(score=1.0)],
        [
            instance(
                1, **turns(("user", "Hi"), ("assistant", "Hello"), ("user", "And?"), ("assistant", "Paris"))
            )
        ],
        {},
    )
    yield (
        "agentic",
        [metric(score=1.0)],
        [
            instance(
                1,
                **tool_turns(),
                evaluation={"score": 1.0, "is_correct": True, "num_turns": 6, "tool_calls_count": 2},
            )
        ],
        {},
    )
    yield (
        "reasoning",
        [metric(score=1.0)],
        [instance(1, output={"raw": ["Paris"], "reasoning_trace": ["Capital of France."]})],
        {},
    )
    yield (
        "several-answers",
        [metric(score=1.0)],
        [instance(1, output={"raw": ["Paris", "Paris", "Rome"], "reasoning_trace": None})],
        {},
    )
    yield "repeated", [metric(score=2 / 3)], [instance(1), instance(1, 0.0), instance(1)], {}
    yield (
        "errors",
        [metric(score=0.5)],
        [
            instance(1),
            instance(2, 0.0, output={"raw": [""], "reasoning_trace": None}, error="Timeout after 60 s"),
        ],
        {},
    )
    tokens = {
        "input_tokens": 12,
        "output_tokens": 5,
        "total_tokens": 17,
        "input_tokens_cache_read": 3,
        "reasoning_tokens": 2,
    }
    speed = {"latency_ms": 812.5, "time_to_first_token_ms": 90, "generation_time_ms": 700}
    yield "tokens-and-times", [metric(score=1.0)], [instance(1, token_usage=tokens, performance=speed)], {}
    yield (
        "unicode",
        [metric(score=1.0)],
        [
            instance(
                1,
                sample_id="Ł-例-🙂",
                input={"raw": "¿Qué? \u2028 <script>", "reference": ["東京"]},
                output={"raw": ["東京\x00"]},
            )
        ],
        {},
    )
    yield (
        "judged",
        [metric("judge", 0.5, config={"llm_scoring": JUDGE, "metric_kind": "judge"})],
        [line | {"evaluation_result_id": "r-judge"} for line in both],
        {},
    )
    yield (
        "lower-is-better",
        [metric("wer", 0.3, config={"lower_is_better": True, "metric_unit": "proportion"})],
        [instance(1, 0.3, evaluation_result_id="r-wer")],
        {},
    )
    yield "private-data", [metric(source_data=PRIVATE)], both, {}
    yield (
        "unbounded",
        [metric("loglikelihood", -12.5, config={"min_score": "-Infinity", "max_score": 0})],
        [instance(1, -12.5, evaluation_result_id="r-loglikelihood")],
        {},
    )
    spread = {
        "uncertainty": {
            **error,
            **interval,
            "standard_deviation": 0.5,
            "num_samples": 3,
            "num_bootstrap_samples": 1000,
        }
    }
    yield "uncertain", [metric(details={**spread, "details": {"note": "three seeds"}})], both, {}
    plan = {
        "agentic_eval_config": {
            "available_tools": [{"name": "bash", "description": "shell", "parameters": {"timeout": "30"}}]
        },
        "eval_limits": {"time_limit": 60, "message_limit": 20, "token_limit": 1000},
        "sandbox": {"type": "docker", "config": "compose.yaml"},
        "max_attempts": 1,
    }
    yield (
        "generation",
        [
            metric(
                generation_config={
                    "generation_args": {
                        "temperature": 0.2,
                        "top_p": None,
                        "max_tokens": 256,
                        "reasoning": False,
                        "prompt_template": "{q}",
                        **plan,
                    },
                    "additional_details": {"seed": "1"},
                }
            )
        ],
        both,
        {},
    )
    yield (
        "metadata",
        [metric(score=1.0)],
        [instance(1, metadata={"subject": "geography", "year": "1999"}, sample_hash="ab" * 32)],
        {},
    )
    yield (
        "no-result-ids",
        [{name: value for name, value in metric().items() if name != "evaluation_result_id"}],
        [{name: value for name, value in line.items() if name != "evaluation_result_id"} for line in both],
        {},
    )
    yield (
        "no-reference",
        [metric(score=0.5)],
        [
            instance(
                1,
                0.5,
                input={"raw": "Write a poem.", "reference": []},
                output={"raw": ["Roses"]},
                answer_attribution=[],
            )
        ],
        {},
    )


def written(name: str, metrics: Sequence[Json], instances: Sequence[Json] | None, more: Json) -> None:
    """Write one record with its instances file."""
    folder = RECORDS / name
    folder.mkdir(parents=True, exist_ok=True)
    # Equal names give equal files.
    stem = str(uuid.UUID(bytes=hashlib.md5(name.encode()).digest(), version=4))  # a name, not a secret
    record: Json = {
        "schema_version": "0.3.0",
        "evaluation_id": f"quiz/org_model/{name}",
        "evaluation_timestamp": "1767225600",
        "retrieved_timestamp": "1767312000.5",
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": "Org",
            "evaluator_relationship": "first_party",
        },
        "eval_library": {"name": "own", "version": "1.2"},
        "model_info": {
            "name": "Model 1",
            "id": "org/model-1",
            "developer": "org",
            "inference_platform": "local",
            "additional_details": KNOWN,
        },
        "evaluation_results": list(metrics),
        **more,
    }
    if instances is not None:
        around = {
            "schema_version": "0.3.0",
            "evaluation_id": record["evaluation_id"],
            "model_id": "org/model-1",
        }
        lines = [json.dumps({**around, **line}, ensure_ascii=False) + "\n" for line in instances]
        data = "".join(lines).encode()
        (folder / f"{stem}_samples.jsonl").write_bytes(data)
        record["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": f"data/quiz/org/model-1/{stem}_samples.jsonl",
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(data).hexdigest(),
            "total_rows": len(lines),
        }
    (folder / f"{stem}.json").write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", "utf-8")


def main() -> None:
    for name, metrics, instances, more in cases():
        written(name, metrics, instances, more)


if __name__ == "__main__":
    main()
