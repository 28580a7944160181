"""Write small results with the installed version of lm-evaluation-harness. The golden results were made with this script.

    python -m venv old && old/bin/pip install lm-eval==0.4.11 && old/bin/python make_lm_eval_results.py OUT

The script works with 0.4.5 to 0.4.13 without a network (before 0.4.11, it needs torch and transformers): it makes the tasks and rows, and
the model answers from a table. The output is stored in `<version>.zip`, with the path of the folder replaced.
"""

# mypy: ignore-errors
# ruff: noqa: E402  # the variable comes first
# Runs in environments with lm-evaluation-harness, which the project's environment does not contain.

import hashlib
import json
import os
import random
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
random.seed(7)

import lm_eval
from lm_eval.api.model import LM
from lm_eval.evaluator import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

ROWS = [
    {"q": "2 + 2?", "a": "4", "choices": ["3", "4", "5"], "gold": 1, "text": "two and two are four"},
    {
        "q": "Capital of Österreich?",
        "a": "Wien",
        "choices": ["Wien", "Graz", "Linz"],
        "gold": 0,
        "text": "Wien.",
    },
    {
        "q": "“Quoted”\tand tabbed?",
        "a": "yes",
        "choices": ["yes", "no", "日本"],
        "gold": 0,
        "text": "ja\nnein",
    },
    {"q": "Last?", "a": "no", "choices": ["yes", "no", "maybe"], "gold": 1, "text": "the end"},
]
MEAN = {"aggregation": "mean", "higher_is_better": True}
TASKS = {
    "tiny_gen": """
task: tiny_gen
output_type: generate_until
doc_to_text: "Q: {{q}}\\nA:"
doc_to_target: "{{a}}"
repeats: 2
generation_kwargs: {until: ["\\n"], do_sample: true, temperature: 0.5}
filter_list:
  - {name: strict, filter: [{function: take_first}]}
  - {name: words, filter: [{function: regex, regex_pattern: "([A-Za-z]+)"}, {function: take_first}]}
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true, ignore_case: true}
""",
    "tiny_once": """
task: tiny_once
output_type: generate_until
description: "Answer.\\n"
doc_to_text: "{{q}}"
doc_to_target: "{{a}}"
num_fewshot: 1
generation_kwargs: {until: ["\\n"], do_sample: false}
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true}
  - {metric: bleu, aggregation: bleu, higher_is_better: true}
""",
    "tiny_choice": """
task: tiny_choice
output_type: multiple_choice
doc_to_text: "Q: {{q}}\\nA:"
doc_to_target: gold
doc_to_choice: "{{choices}}"
num_fewshot: 1
metric_list:
  - {metric: acc}
  - {metric: acc_norm}
  - {metric: acc_mutual_info}
  - {metric: mcc}
""",
    "tiny_likely": """
task: tiny_likely
output_type: loglikelihood
doc_to_text: "{{q}}"
doc_to_target: "{{a}}"
metric_list:
  - {metric: acc, aggregation: mean, higher_is_better: true}
  - {metric: perplexity, aggregation: perplexity, higher_is_better: false}
""",
    "tiny_text": """
task: tiny_text
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{text}}"
should_decontaminate: true
doc_to_decontamination_query: "{{text}}"
metric_list:
  - {metric: word_perplexity}
  - {metric: byte_perplexity}
  - {metric: bits_per_byte}
""",
}


class Table(LM):
    """Model whose answers depend only on the question."""

    tokenizer_name = "table"

    def _number(self, *parts):
        return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:4], "big") / 2**32

    def loglikelihood(self, requests, **_):
        return [(-8 * self._number(r.args), self._number("greedy", r.args) > 0.6) for r in requests]

    def loglikelihood_rolling(self, requests, **_):
        # Some releases pass a number, others a tuple with a number.
        return [-20 * self._number(r.args) for r in requests]

    def generate_until(self, requests, **_):
        answers = []
        for number, request in enumerate(requests):
            row = next(row for row in reversed(ROWS) if row["q"] in request.args[0][-80:])
            answers.append(row["a"] if self._number(row["a"], number % 2) > 0.3 else f"it is {row['a']}")
        return answers

    def apply_chat_template(self, messages, add_generation_prompt=True):
        return "".join(f"<{m['role']}>{m['content']}" for m in messages) + "<assistant>"

    def chat_template(self, *_):
        return "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"


def tasks_in(folder):
    folder.mkdir(parents=True)
    rows = folder / "rows.jsonl"
    rows.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS), encoding="utf-8")
    for name, text in TASKS.items():
        source = f"dataset_path: json\ndataset_kwargs: {{data_files: {{test: {rows}}}}}\ntest_split: test\n"
        (folder / f"{name}.yaml").write_text(
            text.lstrip() + source + "metadata: {version: 1.0}\n", encoding="utf-8"
        )
    (folder / "group.yaml").write_text(
        "group: tiny\ntask: [tiny_gen, tiny_once, tiny_choice]\n"
        "aggregate_metric_list: [{metric: exact_match, weight_by_size: true, filter_list: [none, strict]}]\n"
        "metadata: {version: 0}\n"
    )


def save(results, writer):
    samples = results.pop("samples")
    writer.save_results_aggregated(results=results, samples=samples)
    for name in results["configs"]:
        writer.save_results_samples(task_name=name, samples=samples[name])


def run(out, tasks, **settings):
    writer = EvaluationTracker(output_path=str(out))
    settings["evaluation_tracker"] = writer
    manager = TaskManager(include_path=str(tasks), include_defaults=False)
    names = settings.pop("names")
    results = simple_evaluate(
        model=Table(), model_args="pretrained=org/table,dtype=float", tasks=names, log_samples=True,
        bootstrap_iters=10, task_manager=manager, **settings,
    )  # fmt: skip
    save(results, writer)


def main(out):
    tasks = out.parent / f"{out.name}-tasks"
    tasks_in(tasks)
    run(out / "all", tasks, names=["tiny", "tiny_likely", "tiny_text"])
    run(out / "first", tasks, names=["tiny_choice"], limit=2)
    chat = {"apply_chat_template": True, "fewshot_as_multiturn": True, "system_instruction": "Be short."}
    run(out / "chat", tasks, names=["tiny_once"], **chat)
    run(out / "predicted", tasks, names=["tiny_once"], predict_only=True)
    for path in out.rglob("*.json*"):
        text = path.read_text(encoding="utf-8").replace(str(tasks), "tasks").replace(str(out.parent), ".")
        path.write_text(text, encoding="utf-8")
        content = json.loads(text) if path.suffix == ".json" else None
        if content is not None and content.get("pretty_env_info"):
            content["pretty_env_info"] = "PyTorch version: N/A"  # identifies the machine
            path.write_text(json.dumps(content, indent=2, ensure_ascii=False), encoding="utf-8")
    print(getattr(lm_eval, "__version__", ""), sorted(p.name for p in out.rglob("*.json*")))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
