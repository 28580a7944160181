"""Columns of published datasets that cannot be guessed, in made-up rows, by name pattern."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

SHARED = Path("tests/adapters/lighteval/benchmarks/rows.json")
"""Rows of tasks that run in other tests."""

CHOICES = ["alpha", "beta", "gamma", "delta"]
TESTS = json.dumps([{"input": "1", "output": "2", "testtype": "stdin"}])
PACKED = base64.b64encode(zlib.compress(pickle.dumps(TESTS))).decode()
"""Hidden tests, packed as in LiveCodeBench."""

LIGHTEVAL: dict[str, dict[str, Any]] = {
    "mmlu:*": {"question": "alpha", "subject": "algebra", "choices": CHOICES, "answer": 1},
    "lcb:*": {
        "question_content": "alpha", "starter_code": "", "public_test_cases": TESTS,
        "private_test_cases": PACKED, "metadata": "{}",
    },
    "wmt*": {"translation": {"en": "alpha", "de": "beta"}},
    "the_pile:*": {"text": "alpha"},
    "bigbench_hard:*": {
        "input": "alpha", "choices": CHOICES, "target_idx": 1, "task_prefix": "beta",
        "example_input_prefix": "\nQ: ", "choice_prefix": "\n", "example_output_prefix": "\nA: ",
    },
    "bigbench:*": {
        "inputs": "alpha", "targets": ["beta"], "multiple_choice_targets": ["beta", "gamma"],
        "multiple_choice_scores": [1, 0],
    },
    "bold*": {"text": "alpha"},
    "xwinograd:*": {"sentence": "alpha _ beta", "option1": "gamma", "option2": "delta", "answer": "1"},
    "olympiad_bench:*": {
        "subject": "Math", "language": "English", "unit": "", "is_multiple_answer": False,
        "answer_type": "Numerical", "final_answer": ["2"], "question": "alpha",
    },
    "twitterAAE:*": {"tweet": "alpha"},
    "boolq:contrastset": {
        "question": "alpha?", "passage": "beta", "answer": "Yes",
        "contrast_inputs": {"passage": ["gamma"], "question": ["delta?"]},
    },
    "super_glue:copa": {
        "premise": "alpha.", "question": "cause", "choice1": "Beta", "choice2": "Gamma", "label": 1,
    },
    "xcopa:*": {"premise": "alpha.", "question": "cause", "choice1": "Beta", "choice2": "Gamma", "label": 1},
    "imdb": {"input": "alpha", "reference": "Positive"},
    "imdb:contrastset": {
        "contrast_input": "alpha", "contrast_inputs": "alpha", "contrast_references": "Positive",
    },
    "mathqa": {
        "Problem": "alpha", "option_a": "1", "option_b": "2", "option_c": "3", "option_d": "4",
        "option_e": "5", "correct": "b",
    },
    "race:high": {
        "article": "alpha", "problems": "[{'question': 'beta', 'options': ['c', 'd'], 'answer': 'A'}]",
    },
    "real_toxicity_prompts": {"text": "alpha"},
    "wikitext:*": {"page": "alpha"},
    "ethics:*": {"label": "1", "scenario": "alpha", "excuse": "beta", "text": "alpha"},
}  # fmt: skip


def lighteval_row(name: str) -> dict[str, Any] | None:
    """Return a row like those of a task's dataset; `None` if it must be guessed."""
    shared: Any = json.loads(SHARED.read_text("utf-8")).get(name)
    if shared is not None:
        rows = shared if isinstance(shared, list) else next(iter(shared.values()))
        return dict(rows[0])
    return next((row for pattern, row in LIGHTEVAL.items() if fnmatchcase(name, pattern)), None)


PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
IMAGE = {"bytes": PNG, "path": "alpha.png"}

INSPECT: dict[str, dict[str, Any]] = {
    "*ai2_arc *": {"question": "alpha", "choices": {"text": CHOICES, "label": [*"ABCD"]}, "answerKey": "B"},
    "*big_bench_hard few_shot_prompts*": {
        "dataset_name": "date_understanding", "answer_only_prompt": "alpha",
        "chain_of_thought_prompt": "alpha",
    },
    "*big_bench_hard *": {
        "question": "alpha", "choices": {"text": CHOICES, "label": [*"ABCD"]}, "target": "(B)",
    },
    "*coconot *": {
        "id": "alpha", "prompt": "alpha", "category": "beta", "subcategory": "False presumptions",
    },
    "*fortress_public *": {
        "ID": 1, "adversarial_prompt": "alpha", "benign_prompt": "alpha", "rubric": ["beta?"],
        "risk_domain": "alpha", "risk_subdomain": "Illegal Weapons",
    },
    "*MATH-lighteval *": {
        "problem": "alpha", "solution": "So $\\boxed{2}$", "level": "Level 1", "type": "Algebra",
    },
    "*MathVista *": {
        "image": "alpha.png", "decoded_image": IMAGE, "question": "alpha", "query": "alpha", "choices": CHOICES,
        "question_type": "multi_choice", "answer": "beta", "answer_type": "text", "pid": "alpha",
        "metadata": {},
    },
    "*PubMedQA *": {
        "context": {"contexts": ["alpha"]}, "question": "alpha", "final_decision": "yes", "pubid": 1,
        "long_answer": "beta",
    },
    "*SciKnowEval *": {
        "question": "alpha", "choices": {"text": CHOICES, "label": [*"ABCD"]}, "prompt": {"default": "beta"},
        "answerKey": "B", "answer": "", "domain": "Biology", "type": "mcq-4-choices",
        "details": {"level": "L1", "task": "alpha", "subtask": "beta"},
    },
    "*SEVENLLM*": {
        "id": 1, "instruction": {"question": "alpha", "choice": dict.fromkeys("ABCD", "beta")},
        "input": "beta", "output": "A", "category": "alpha", "thought": "beta",
    },
    "*stereoset *": {
        "id": "alpha", "context": "alpha", "bias_type": "profession", "target": "beta",
        "sentences": {"sentence": ["alpha", "beta", "gamma"], "gold_label": [1, 0, 2]},
    },
    "*are_you_sure*": {
        "prompt": [{"type": "human", "content": "alpha"}],
        "base": {"dataset": "beta", "correct_answer": "gamma", "question": "alpha", "answer": "gamma"},
        "metadata": {}, "dataset": "are_you_sure",
    },
    "*XSTest *": {"prompt": "alpha", "type": "homonyms", "note": "", "label": "safe", "focus": "beta"},
    "*pre-flight*": {"prompt": "alpha", "choices": CHOICES, "answer": "B"},
    "*personality/data*": {
        "input": "alpha", "choices": CHOICES, "target": [*"ABCD"], "metadata": {},
    },
    "*EleutherAI/drop *": {
        "query_id": "alpha", "passage": "alpha", "question": "beta?", "section_id": "alpha",
        "answer": {"number": "7", "date": {"day": "", "month": "", "year": ""}, "spans": []},
        "validated_answers": {"number": [], "date": [], "spans": []},
    },
    "*DocVQA *": {
        "image": IMAGE, "question": "alpha", "answers": ["beta"], "questionId": "alpha", "docId": 1,
    },
    "*anima dimensions *": {
        "dimension": "alpha", "description": "alpha", "guiding_question": "beta?", "scoring": "gamma",
        "weight": 1.0,
    },
    "*InfiniteBench *math_find*": {
        "id": "alpha", "context": "[1, 2]", "answer": ["2"],
        "input": "You should answer with only one number, no other words."
        " The largest number of the list is: ",
    },
    "*thai-onet*": {
        "isAnswerable": True, "isMultipleChoice": True, "isSingleChoiceSolution": True,
        "instruction": "alpha", "input": "1) beta\n2) gamma\n3) delta\n4) alpha", "result": "1) beta",
        "year": "2564", '"no"': '"1"', "no": "1",
    },
    "*HLE-Verified *": {"id": "alpha", "Verified_Classes": "Gold subset"},
    "cais/hle *": {
        "id": "alpha", "question": "alpha", "image": "", "author_name": "alpha", "rationale": "beta",
        "raw_subject": "gamma", "category": "Math", "answer_type": "exactMatch", "answer": "2",
    },
    "*vqa-rad *": {"image": IMAGE, "question": "alpha", "answer": "yes"},
    "*lab-bench FigQA *": {
        "id": "alpha", "question": "alpha", "ideal": "beta", "distractors": ["gamma", "delta"],
        "figure": IMAGE,
    },
    "*lingOly *": {
        "prompt": "alpha", "completion": '{"a": "beta"}', "question_n": "1", "overall_question_n": 1,
        "obfuscated": "True", "obfuscated_question_n": "1", "question": "alpha",
    },
    "*MaCBench *": {
        "uuid": "alpha", "preferred_score": "multiple_choice_grade", "relative_tolerance": None,
        "examples": [
            "{'input': 'alpha', 'target_scores': '{\"beta\": 1, \"gamma\": 0}', 'target': None}",
        ],
    },
    "*ChemBench *": {
        "uuid": "alpha", "preferred_score": "multiple_choice_grade", "name": "alpha",
        "examples": [{"input": "alpha", "target_scores": '{"beta": 1, "gamma": 0}', "target": None}],
    },
    "*browse_comp*": {
        "problem": "G0AGAAA=", "answer": "G0AGAAA=", "canary": "alpha", "problem_topic": "alpha",
    },
}  # fmt: skip


def inspect_row(source: str) -> dict[str, Any] | None:
    """Return a row like those of an inspect-evals source, by path, subset and split."""
    return next((row for pattern, row in INSPECT.items() if fnmatchcase(source, pattern)), None)
