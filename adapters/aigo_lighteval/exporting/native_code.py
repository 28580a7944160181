"""The file of a task as plain lighteval code: documents, scores, metrics, task."""

from __future__ import annotations

import ast
from textwrap import dedent, indent
from typing import Any

from aigo_bridge.exporting.answer_templates import answer_methods
from aigo_bridge.exporting.comparisons import SCORES, has_own_value, metrics_of, value_name
from aigo_bridge.exporting.folders import MARK
from aigo_bridge.exporting.manifest import Manifest
from aigo_bridge.exporting.names import LONGEST, unique_names
from aigo_bridge.exporting.python_code import (
    WIDTH,
    call,
    docstring,
    literal,
    one_line,
    opened,
    text_literal,
    with_text,
    wrapped,
)
from aigo_bridge.metrics.trials import aggregated_name
from aigo_bridge.plan import TaskPlan
from aigo_bridge.scoring import scorer_keys
from aigo_lighteval.exporting.questions import Shared
from aigo_lighteval.exporting.rows import EXAMPLES, FOLDER, SPLIT, mark, version
from aigo_lighteval.golds import is_of_records
from aigo_lighteval.translate import task_name


def native_code(plan: TaskPlan, manifest: Manifest, shared: Shared) -> str:
    """The task's file."""
    scorers = plan.benchmark.scorers
    keys = scorer_keys(scorers)
    compared = [getattr(scorer, "method", None) == "loglikelihood" for scorer in scorers]
    blocks = [_documents(shared), LIKELIHOODS if all(compared) else ANSWERS, SCORES_OF_SAMPLE]
    blocks.append(_trials(plan) if plan.num_trials > 1 else ONE_TRIAL)
    if any(metrics_of(scorer) for scorer in scorers):
        blocks.append(NUMBERS)
    reserved = {node.name for block in blocks for node in ast.parse(block).body if hasattr(node, "name")}
    # No key has a space in it, so the metrics have keys of their own.
    named = unique_names([*keys, *(f"{key} metrics" for key in keys)], RESERVED | reserved, longest=LONGEST)
    for key, scorer in zip(keys, scorers, strict=True):
        blocks += [_score(named[key], scorer), _metrics(key, named[f"{key} metrics"], scorer)]
    blocks.append(
        _table(plan, manifest, shared, {key: (named[key], named[f"{key} metrics"]) for key in keys})
    )
    body = "\n\n\n".join(block.strip("\n") for block in blocks)
    constants = [
        f"FILES = Path(__file__).resolve().parent / {text_literal(manifest.module)}",
        f"EXPORT = {text_literal(mark(manifest))}",
        f"TRIALS = {plan.num_trials}",
        f"EXAMPLES = {len(shared.examples)}",
        f"STOP = {literal(list(shared.stop))}",
    ]
    if any(map(is_of_records, scorers)):
        constants.append('RECORD_SCORES = runpy.run_path(str(FILES / "record_scores.py"))')
    return f"{_head(manifest)}\n\n{_imports(body)}\n\n" + "\n".join(constants) + f"\n\n\n{body}\n"


def _head(manifest: Manifest) -> str:
    about = (
        f"Written by {MARK} from the AI GO task {one_line(manifest.key)} (plan {manifest.digest[:12]}). Prompts and expected answers are"
        f" rendered: they stand in {manifest.module}/samples.jsonl."
    )
    lines = [
        *wrapped(opened(f"{one_line(manifest.display_name)}."), indent=0),
        "",
        *(f"    {one_line(command)}" for command in manifest.commands),
        "",
        *wrapped(about, indent=0),
        '"""',
    ]
    return "\n".join(lines)


def _imports(body: str) -> str:
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    standard = ["import json", *(["import math"] if "math" in used else [])]
    if "RECORD_SCORES" in used:
        standard.append("import runpy")
    if "statistics" in used:
        standard.append("import statistics")
    if "Counter" in used:
        standard.append("from collections import Counter")
    standard += ["from collections.abc import Callable", "from pathlib import Path", "from typing import Any"]
    packages = [
        "from lighteval.metrics.metrics_sample import SampleLevelComputation, SamplingMetric",
        "from lighteval.metrics.utils.metric_utils import SampleLevelMetric",
        "from lighteval.models.model_output import ModelResponse",
        "from lighteval.tasks.lighteval_task import LightevalTaskConfig",
        "from lighteval.tasks.requests import Doc, SamplingMethod",
        *(["from sacrebleu.metrics.bleu import BLEU"] if "BLEU" in used else []),
    ]
    return "\n".join(standard) + "\n\n" + "\n".join(packages)


def _block(text: str) -> str:
    return dedent(text).strip("\n")


RESERVED = frozenset(
    {
        "Any", "BLEU", "Callable", "Counter", "Doc", "EXAMPLES", "EXPORT", "FILES", "LightevalTaskConfig", "ModelResponse", "Path",
        "RECORD_SCORES", "SampleLevelComputation", "SampleLevelMetric", "SamplingMethod", "SamplingMetric", "STOP", "TASKS_TABLE",
        "TRIALS", "answer", "bleu", "count", "deviation", "dict", "expected", "float", "found", "json", "len", "list", "map", "math",
        "max", "min", "name", "numbers", "percent", "predicted", "prediction", "runpy", "statistics", "str", "sum", "text", "truth",
        "values", "weights",
    }
)  # fmt: skip
"""Names that the code uses for other things than scorers."""


# Documents

_READ = _block(
    '''
    def documents(name: str) -> list[dict[str, Any]]:
        """Fields of documents: one JSON object a line."""
        with (FILES / name).open(encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    '''
)

_PROMPT = _block(
    '''
    def prompt(row: dict[str, Any], task: str | None = None) -> Doc:
        """The document of a row; rows are numbers, and say of which export."""
        if row["export"] != EXPORT:
            message = "the rows are a copy of another export's: clear HF_DATASETS_CACHE"
            raise ValueError(message)
        {of_row}
    '''
)


def _documents(shared: Shared) -> str:
    if not shared.examples:
        of_row = 'return Doc(**SAMPLES[row["sample"]])'
        tables = ['SAMPLES = documents("samples.jsonl")']
    else:
        of_row = (
            'table = SHOWN_FIRST if row["__few_shots"] else SAMPLES\n    return Doc(**table[row["sample"]])'
        )
        tables = ['SAMPLES = documents("samples.jsonl")', 'SHOWN_FIRST = documents("examples.jsonl")']
    return "\n\n\n".join([_READ, "\n".join(tables), _PROMPT.replace("{of_row}", of_row)])


# Scores

ANSWERS = _block(
    '''
    def said(doc: Doc, response: ModelResponse) -> list[str]:
        """The answers of all trials, as far as the first stop sequence."""
        if len(doc.fewshot_samples) != EXAMPLES:
            raise ValueError(f"it has {EXAMPLES} examples: put |{EXAMPLES} behind its name")
        if len(response.text) != TRIALS:
            raise ValueError(f"document {doc.id} has {len(response.text)} answers")
        answers = list(response.text)
        for stop in STOP:
            # Some models are let to go on behind it.
            answers = [answer.split(stop, 1)[0] for answer in answers]
        return answers
    '''
)

LIKELIHOODS = _block(
    '''
    def said(doc: Doc, response: ModelResponse) -> list[list[tuple[str, float]]]:
        """The choices with their log-likelihoods, which are the same in all trials."""
        if len(doc.fewshot_samples) != EXAMPLES:
            raise ValueError(f"it has {EXAMPLES} examples: put |{EXAMPLES} behind its name")
        numbers = [float(number) for number in response.logprobs]
        if len(numbers) != len(doc.choices) or not all(map(math.isfinite, numbers)):
            raise ValueError(f"document {doc.id} has the likelihoods {numbers}")
        return [list(zip(doc.choices, numbers))] * TRIALS
    '''
)

SCORES_OF_SAMPLE = _block(
    '''
    class Scores(SamplingMetric, SampleLevelComputation):
        """The scores of a sample by name; None if the task's rules leave it out of the metrics."""

        def __init__(
            self, key: str, score: Callable[[Any, dict[str, Any]], dict[str, float]]
        ):
            self.key = key
            self.score = score

        def num_samples(self) -> int:
            """Answers to each document."""
            return TRIALS

        def __str__(self) -> str:
            return f"{self.key} of {EXPORT}"

        def compute(
            self, doc: Doc, model_response: ModelResponse, **_: Any
        ) -> dict[str, float] | None:
            about = json.loads(doc.specific["expected"])
            if about["excluded"]:
                return None
            expected = about["scorers"][self.key]
            answers = said(doc, model_response)
            return over_trials([self.score(each, expected) for each in answers])
    '''
)

ONE_TRIAL = _block(
    '''
    def over_trials(scores: list[dict[str, float]]) -> dict[str, float]:
        """The scores of a sample: there is one trial."""
        (only,) = scores
        return only
    '''
)

NUMBERS = _block(
    '''
    def numbers_of(values: list[dict[str, float] | None], name: str) -> list[float]:
        """The scores of that name, of the samples that have it and are not left out."""
        return [value[name] for value in values if value is not None and name in value]
    '''
)

_EQUALS = 'return {"is_correct": 1.0 if answer == truth else 0.0}'
_MCQA = 'return {"is_correct": 1.0 if answer[:1] == truth else 0.0}'
_BLEU = """bleu = BLEU(
    effective_order=True,
    tokenize="13a",
    smooth_method="exp",
    max_ngram_order=4,
)
percent = bleu.sentence_score(answer, [truth]).score
return {"bleu_score": min(percent / 100, 1.0)}"""
_RECORD = """name = expected["metric_name"]
prediction = RECORD_SCORES["post_process"](expected["post_process"], answer)
return {name: RECORD_SCORES["metric_score"](name, prediction, expected["targets"])}"""
_LIKELY = """weights = [number{divided} for {text}, number in answer]
return {"is_correct": 1.0 if weights.index(max(weights)) == expected["right"] else 0.0}"""

_BODIES = {
    "string_equals": ("1.0 if the answer equals the truth, character for character.", _EQUALS),
    "string_equals_mcqa": ("1.0 if the answer's first character is the right choice's letter.", _MCQA),
    "bleu": ("Sentence BLEU of the answer, from 0 to 1.", _BLEU),
}
"""Type of the scorer → what its function says and does."""


def _score(name: str, scorer: Any) -> str:
    lines: list[str] = []
    kind = "str"
    if is_of_records(scorer):
        doc, body = "The score under the record's own metric, after its own rule.", _RECORD
    elif getattr(scorer, "method", None) == "loglikelihood":
        by_length = scorer.length_normalisation == "characters"
        kind = "list[tuple[str, float]]"
        doc = "1.0 if the right choice is the most likely; of equals it is the first."
        body = _LIKELY.replace("{divided}", " / len(text)" if by_length else "").replace(
            "{text}", "text" if by_length else "_"
        )
    else:
        doc, body = _BODIES[scorer.type]
        lines.append('    truth = expected["ground_truth"]')
        if has_own_value(scorer):
            lines.append('    answer = expected["value"]')
        else:
            methods = answer_methods(getattr(scorer, "value", None)) or ()
            lines += [f"    answer = answer.{method}" for method in methods]
    head = f"def {name}(answer: {kind}, expected: dict[str, Any]) -> dict[str, float]:"
    if len(head) > WIDTH:
        arguments = [f"answer: {kind}", "expected: dict[str, Any]"]
        head = "\n".join(call(f"def {name}(", arguments, ") -> dict[str, float]:"))
    return "\n".join([head, *docstring(doc, indent=4), *lines, indent(body, "    ")])


# Metrics

_FORMULAS = {
    "mean": "float(statistics.mean(numbers))",
    "min": "min(numbers)",
    "max": "max(numbers)",
    "std_dev": "deviation",
}


def _metrics(key: str, name: str, scorer: Any) -> str:
    lines = [
        *call(f"def {name}(", ["values: list[dict[str, float] | None]"], ") -> dict[str, float]:"),
        *docstring(f"Metrics of {one_line(key)[:60]}.", indent=4),
        "    found: dict[str, float] = {}",
    ]
    for metric in metrics_of(scorer):
        lines += _metric(key, metric)
    return "\n".join([*lines, "    return found"])


def _metric(key: str, metric: Any) -> list[str]:
    arguments = ["values", text_literal(metric.field)]
    if metric.type == "frequency":
        return [
            *call("numbers = numbers_of(", arguments, indent=4),
            "    for text, count in Counter(map(str, numbers)).items():",
            *with_text("found[{} + text] = count / len(numbers)", f"{key}.{metric.field}_", indent=8),
        ]
    lines = call("if numbers := numbers_of(", arguments, "):", indent=4)
    if metric.type == "std_dev":
        lines.append("        deviation = statistics.stdev(numbers) if len(numbers) > 1 else 0.0")
    given = f"{key}.{value_name(metric)}"
    return [*lines, *with_text(f"found[{{}}] = {_FORMULAS[metric.type]}", given, indent=8)]


def _trials(plan: TaskPlan) -> str:
    own = plan.benchmark.trials
    entries = (own.score_aggregators or ()) if own is not None else ()
    given = {SCORES[scorer.type] for scorer in plan.benchmark.scorers}
    lines = [
        "def over_trials(scores: list[dict[str, float]]) -> dict[str, float]:",
        '    """The scores of a sample over its trials."""',
        "    found: dict[str, float] = {}",
        "    for name in scores[0]:",
        "        numbers = [each[name] for each in scores]",
        "        found[name] = float(statistics.mean(numbers))",
    ]
    for score_name in dict.fromkeys(entry.score_name for entry in entries if entry.score_name in given):
        of_score = [entry for entry in entries if entry.score_name == score_name]
        lines.append(f"        if name == {text_literal(score_name)}:")
        if any(entry.aggregator.function in ("pass@k", "pass^k") for entry in of_score):
            lines.append("            share = sum(numbers) / len(numbers)")
        for entry in of_score:
            lines += with_text(f"found[{{}}] = {_aggregate(entry)}", aggregated_name(entry), indent=12)
    return "\n".join([*lines, "    return found"])


def _aggregate(entry: Any) -> str:
    match entry.aggregator.function:
        case "mean":
            return "float(statistics.mean(numbers))"
        case "pass@k":
            return f"1.0 - (1.0 - share) ** {entry.aggregator.k}"
        case "pass^k":
            return f"share**{entry.aggregator.k}"
        case function:
            return f"{function}(numbers)"


# The task


def _table(plan: TaskPlan, manifest: Manifest, shared: Shared, named: dict[str, tuple[str, str]]) -> str:
    compared = any(getattr(scorer, "method", None) == "loglikelihood" for scorer in plan.benchmark.scorers)
    method = "SamplingMethod.LOGPROBS" if compared else "SamplingMethod.GENERATIVE"
    lines = [
        "TASKS_TABLE = [",
        "    LightevalTaskConfig(",
        f"        name={text_literal(task_name(plan))},",
        "        prompt_function=prompt,",
        f'        hf_repo=str(FILES / "{FOLDER}"),',
        '        hf_subset="default",',
        f'        hf_avail_splits=["{SPLIT}", "{EXAMPLES}"],',
        f'        evaluation_splits=["{SPLIT}"],',
        f'        few_shots_split="{EXAMPLES}",',
        '        few_shots_select="sequential",',
        f"        generation_size={shared.size},",
        "        stop_sequence=STOP,",
        # The cache of answers goes by it.
        f"        version={version(manifest.digest)},",
        "        metrics=[",
    ]
    for key, (score, metrics) in named.items():
        lines += [
            "            SampleLevelMetric(",
            f"                metric_name={text_literal(key)},",
            "                higher_is_better=True,",
            f"                category={method},",
            *call("sample_level_fn=Scores(", [text_literal(key), score], "),", indent=16),
            f"                corpus_level_fn={metrics},",
            "            ),",
        ]
    return "\n".join([*lines, "        ],", "    )", "]"])
