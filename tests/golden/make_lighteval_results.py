"""Write small results with the installed version of lighteval. The golden results were made with this script.

    python -m venv old && old/bin/pip install lighteval==0.11.0 'xxhash<4' && old/bin/python make_lighteval_results.py OUT

The script works with 0.11.0 to 0.13.0 without a network: it makes the tasks and rows, and the model answers from a table. Release 0.11
also needs the packages emoji, langdetect and syllapy, and an empty `tinyBenchmarks.pkl` next to `tiny_benchmarks/main.py`, which it would
otherwise download. The output is stored in `<version>.zip`, because its file names contain characters that some file systems reject.
"""

# mypy: ignore-errors
# Runs in environments with older releases of lighteval, which have other types.

import dataclasses
import json
import math
import sys
import types
from unittest import mock

import numpy as np
from lighteval.logging.evaluation_tracker import EvaluationTracker
from lighteval.metrics.metrics import Metrics
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.sample_preparator import GenerativePreparator
from lighteval.metrics.utils.metric_utils import (
    CorpusLevelMetric,
    SampleLevelMetric,
    SampleLevelMetricGrouping,
)
from lighteval.models.abstract_model import LightevalModel, ModelConfig
from lighteval.models.model_output import ModelResponse
from lighteval.pipeline import ParallelismManager, Pipeline, PipelineParameters
from lighteval.tasks.lighteval_task import LightevalTask, LightevalTaskConfig
from lighteval.tasks.prompt_manager import PromptManager
from lighteval.tasks.registry import Registry
from lighteval.tasks.requests import Doc, SamplingMethod

CAPITALS = [
    ("France", ["Paris", "Lyon", "Nice", "Lille"], 0, "Paris"),
    ("Japan", ["Osaka", "Tokyo", "Kyoto", "Nara"], 1, "It is Tokyo"),
    ("Türkiye", ["İstanbul", "İzmir", "Ankara", "Bursa"], 2, "Ankara"),
    ("Österreich 🙂", ["Graz", "Linz", "Wels", "Wien"], 3, "Graz"),
    ("Peru", ["Lima", "Cusco", "Ica", "Puno"], 0, ""),
]
SHOTS = [("Italy", ["Rome"], 0, "Rome"), ("Spain", ["Madrid"], 0, "Madrid"), ("Chile", ["Santiago"], 0, "")]


def row_doc(row, *, choices=None, gold=None, **fields):
    country, cities, right, _ = CAPITALS[row["n"]] if not row["shot"] else SHOTS[row["n"]]
    return Doc(
        query=f"Capital of {country}?",
        choices=cities if choices is None else choices,
        gold_index=right if gold is None else gold,
        **fields,
    )


def asked(row, task_name):
    return row_doc(row, instruction="Answer with one word.\n", specific={"country": CAPITALS[row["n"]][0]})


def chosen(row, task_name):
    return row_doc(row, unconditioned_query="Answer:")


def several_right(row, task_name):
    return row_doc(row, gold=[CAPITALS[row["n"]][2], 3], specific={"aliases": ["x", "y"], "weight": 0.5})


def told(row, task_name):
    country, cities, right, _ = CAPITALS[row["n"]]
    text = f"The capital of {country} is {cities[right]}."
    return Doc(query=text, choices=[text], gold_index=0, original_query=text)


class Said(SampleLevelComputation):
    def compute(self, doc, model_response, **kwargs):
        return float(doc.get_golds()[0] in model_response.text[0])


class Odd(SampleLevelComputation):
    """Values that are not plain numbers."""

    def compute(self, doc, model_response, **kwargs):
        n = int(doc.id)
        return {
            "nan": math.nan if n == 1 else 1.0,
            "flag": np.bool_(n == 0),
            "list": [n > 0, True],
            "tiny": 1e-12,
        }


def share_of_all(values):
    return float(np.mean([np.mean(value) for value in values]))


def grouping(cls=SampleLevelMetricGrouping):
    names = ["nan", "flag", "list", "tiny"]
    return cls(
        metric_name=names,
        higher_is_better=dict.fromkeys(names, True),
        category=SamplingMethod.GENERATIVE,
        sample_level_fn=Odd(),
        corpus_level_fn={"nan": np.mean, "flag": np.mean, "list": share_of_all, "tiny": np.mean},
    )


def share_of_hits(items):
    return float(np.mean([item.preds[0] in item.golds for item in items]))


PAIRS = CorpusLevelMetric("hits", True, SamplingMethod.GENERATIVE, GenerativePreparator(), share_of_hits)
SAID = SampleLevelMetric("said", True, SamplingMethod.GENERATIVE, Said(), np.mean)


def config(name, prompt, metrics, **fields):
    known = {field.name for field in dataclasses.fields(LightevalTaskConfig)}
    fields = {
        "name": name,
        "prompt_function": prompt,
        "hf_repo": "memory",
        "hf_subset": "default",
        "hf_avail_splits": ["train", "test"],
        "evaluation_splits": ["test"],
        "few_shots_split": "train",
        "few_shots_select": "sequential",
        "metrics": metrics,
        "generation_size": 16,
        "stop_sequence": ["\n"],
        "version": 1,
        "suite": ["community"],
        **fields,
    }
    return LightevalTaskConfig(**{key: value for key, value in fields.items() if key in known})


def tasks():
    # In 0.11, the average does not set its number of samples.
    several = (
        Metrics.avg_at_n({"n": 3}) if hasattr(Metrics, "avg_at_n") else Metrics.pass_at_k({"k": 1, "n": 3})
    )
    return [
        (config("demo:gen", asked, [Metrics.exact_match, SAID]), 2),
        (config("demo:odd", asked, [grouping(), SAID]), 0),
        (config("choice", chosen, [Metrics.loglikelihood_acc, Metrics.loglikelihood_f1]), 0),
        (config("several", several_right, [Metrics.f1_score, PAIRS]), 0),
        (config("samples", asked, [several]), 0),
        (config("perplexity", told, [Metrics.word_perplexity, Metrics.byte_perplexity]), 0),
        (config("group:one", asked, [SAID]), 0),
        (config("group:two", chosen, [SAID]), 0),
        (config("mixed", asked, [SAID, Metrics.loglikelihood_acc]), 0),
    ]


class NoCache:
    def _init_registry(self, registry):
        pass


class Table(LightevalModel):
    tokenizer, add_special_tokens, max_length = None, False, 4096

    def __init__(self):
        self.config, self._cache = ModelConfig(model_name="org/table", system_prompt="Be brief."), NoCache()
        self._prompts = PromptManager(use_chat_template=True, system_prompt="Be brief.")

    def _answer(self, doc):
        return next(said for country, _, _, said in CAPITALS if country in doc.query)

    def greedy_until(self, docs):
        found = []
        for doc in docs:
            count = max(1, doc.num_samples)
            texts = [self._answer(doc) if n != 1 else "<think>hm</think> no idea" for n in range(count)]
            found.append(
                ModelResponse(
                    input=self._prompts.prepare_prompt_api(doc),
                    text=texts,
                    reasonings=[None if n else "I know maps." for n in range(count)],
                    input_tokens=list(range(12)),
                    output_tokens=[[1, 2, 3]] * count,
                )
            )
        return found

    def loglikelihood(self, docs):
        return [
            ModelResponse(
                input=self._prompts.prepare_prompt_api(doc),
                logprobs=[-0.5 - ((n + int(doc.id)) % len(doc.choices)) for n in range(len(doc.choices))],
                argmax_logits_eq_gold=[n == 0 for n in range(len(doc.choices))],
                input_tokens=[5, 6, 7],
                output_tokens=[[n] for n in range(len(doc.choices))],
                unconditioned_logprobs=[-1.0] * len(doc.choices),
            )
            for doc in docs
        ]

    def loglikelihood_rolling(self, docs):
        return [
            ModelResponse(input=doc.query, logprobs=[-1.5, -2.25], input_tokens=[1, 2, 3]) for doc in docs
        ]


def main(out):
    configs = tasks()
    module = types.ModuleType("golden_tasks")
    module.__file__ = __file__
    module.TASKS_TABLE = [config for config, _ in configs]
    table = {config.name: config for config in module.TASKS_TABLE}
    rows = {
        "test": [{"n": n, "shot": False} for n in range(len(CAPITALS))],
        "train": [{"n": n, "shot": True} for n in range(len(SHOTS))],
    }
    for shot in rows["train"]:
        shot["n"] %= len(SHOTS)
    old = hasattr(module.TASKS_TABLE[0], "suite")
    names = [f"community|{c.name}|{shots}" if old else f"{c.name}|{shots}" for c, shots in configs]
    loader = "download_dataset_worker"
    with mock.patch.object(LightevalTask, loader, staticmethod(lambda *args, **kwargs: rows)):
        patched = staticmethod(lambda *args, **kwargs: table)
        hidden = "load_all_task_configs"
        context = (
            mock.patch.object(Registry, hidden, patched) if hasattr(Registry, hidden) else mock.MagicMock()
        )
        with context:
            pipeline = Pipeline(
                tasks=",".join(names),
                model=Table(),
                evaluation_tracker=EvaluationTracker(output_dir=out, save_details=True),
                pipeline_parameters=PipelineParameters(
                    launcher_type=ParallelismManager.NONE, custom_tasks_directory=module, bootstrap_iters=50
                ),
            )
        pipeline.evaluate()
    pipeline.save_and_push_results()
    print(json.dumps(pipeline.get_results()["results"], default=str, indent=1))


if __name__ == "__main__":
    main(sys.argv[1])
