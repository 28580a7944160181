"""Faults of lighteval 0.13 in its own tasks. They are fixed if the intention is clear, and otherwise refused.

A comment explains the handling of each fault. All were reproduced with release 0.13.0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from lighteval.metrics.metrics_corpus import CorpusLevelTranslationMetric
from lighteval.metrics.utils.metric_utils import MetricGrouping
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.prompt_manager import FewShotSampler
from lighteval.tasks.requests import Doc, SamplingMethod
from lighteval.utils.utils import as_list

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.text.plurals import plural

RUNS_CODE = frozenset({"CodegenMetric", "VerifiableRewardMetric"})
"""Metric classes that execute model-written programs on this machine."""
_ADDRESS = re.compile(r"<function (\S+) at 0x[0-9a-f]+>")
"""Function in a metric's parameters. lighteval names it by its memory address."""


class WholeCorpus(CorpusLevelTranslationMetric):  # type: ignore[misc]  # lighteval is untyped
    """Corpus scores chrF and TER over all documents.

    sacrebleu expects one list per reference position, with one reference of every document. lighteval passes
    one list per document, so only the first documents are scored.
    """

    def __init__(self, metric: CorpusLevelTranslationMetric):
        super().__init__(metric.metric_type, metric.lang)

    def compute_corpus(self, items: list[Any]) -> float:
        """Return the score of all answers, each compared with all of its references."""
        answers = [as_list(item.preds)[0] for item in items]
        golds = [as_list(item.golds) for item in items]
        most = max((len(document_golds) for document_golds in golds), default=0)
        references = [
            [document_golds[number] if number < len(document_golds) else None for document_golds in golds]
            for number in range(most)
        ]
        return float(self.get_metric().corpus_score(answers, references).score)


def mend_metrics(config: LightevalTaskConfig) -> None:
    """Fix metrics with wrong values, and metric names that differ in every process."""
    for metric in config.metrics:
        if isinstance(metric.metric_name, str):
            metric.metric_name = _ADDRESS.sub(r"\1", metric.metric_name)
        function = metric.corpus_level_fn
        if isinstance(function, CorpusLevelTranslationMetric) and function.metric_type != "bleu":
            metric.corpus_level_fn = WholeCorpus(function)


class OtherExamples(FewShotSampler):  # type: ignore[misc]  # lighteval is untyped
    """Few-shot sampler that never uses the question itself as an example.

    If a task has only one split, lighteval draws examples from the evaluated one. Its check for the question
    itself compares fields that always differ.
    """

    def sample_fewshot_examples(
        self,
        num_fewshot: int,
        variance_seed: int,
        sampler: Any = None,
        formatted_doc: Doc | None = None,
    ) -> list[Doc]:
        """Return examples like lighteval, but compare content and row number. `gpqa` reorders its choices
        every time.
        """
        if num_fewshot == 0:
            return []
        self._init_fewshot_pool(num_fewshot=num_fewshot, variance_seed=variance_seed)
        self._check_pool(num_fewshot, len(self._fewshot_cache[variance_seed]))
        examples = self._sample_from_pool(
            num_fewshot=num_fewshot, variance_seed=variance_seed, sampler=sampler
        )
        if self.task.fewshot_split is None and formatted_doc is not None:
            # With several splits, two rows can share a number.
            numbered = len(self.task.evaluation_split) == 1
            examples = [
                example
                for example in examples
                if not _same(example, formatted_doc) and not (numbered and example.id == formatted_doc.id)
            ]
        return list(examples[:num_fewshot])

    def _check_pool(self, wanted: int, num_examples: int) -> None:
        """Refuse a number of examples that lighteval cannot draw or would silently reduce.

        Raises:
            UsageError: the split has too few examples.
        """
        selection = self.few_shots_select.value
        # With these settings lighteval draws one more example, in case the question is among them.
        spare = selection.with_sampling and not selection.fewshotpool_unique
        if num_examples < wanted + spare:
            split = self.task.fewshot_split
            where = "the evaluated split, their source," if split is None else f"its split {split!r}"
            raise UsageError(
                f"task {self.task.name!r} needs {wanted}"
                f" examples{' and one spare example' if spare else ''}, but {where} has {num_examples}",
                code=Code.UNFIT_BENCHMARK,
            )


def _same(one: Doc, two: Doc) -> bool:
    return (one.query, one.choices, one.gold_index) == (two.query, two.choices, two.gold_index)


def refusals(config: LightevalTaskConfig) -> list[str]:
    """Return the reasons why a task is never run: its metrics would be wrong or missing, or it is unsafe."""
    reasons = [
        f"metrics {', '.join(metric.metric_name)} are computed for all documents at once and return several"
        " numbers, which lighteval"
        " separates incorrectly"
        for metric in config.metrics
        if metric.batched_compute and isinstance(metric, MetricGrouping)
    ]
    reasons += [
        f"metric {metric.metric_name!r} runs code that a model wrote, and lighteval does not have a sandbox"
        for metric in config.metrics
        if type(metric.sample_level_fn).__name__ in RUNS_CODE
    ]
    if config.name.partition(":")[0] == "mt_bench":
        reasons.append("it has two turns, and lighteval only runs the first")
    if config.num_samples:
        reasons.append("lighteval ignores its `num_samples`; set it on a metric")
    return reasons


def document_problems(docs: Sequence[Doc], shots: int) -> list[str]:
    """Return the problems of the documents that a run would send."""
    problems = []
    if images := sum(bool(doc.images) for doc in docs):
        problems.append(
            f"{plural(images, 'document has', 'documents have')} images, which would be left out silently"
        )
    if short := sum(len(doc.fewshot_samples) < shots for doc in docs):
        fewest = min(len(doc.fewshot_samples) for doc in docs)
        problems.append(
            f"{shots} examples were requested, {plural(short, 'document has', 'documents have')}"
            f" fewer (down to {fewest})"
        )
    empty = [doc.id for doc in docs if not doc.choices and _is_measured_by_choices(doc)]
    if empty:
        problems.append(
            f"{plural(len(empty), 'document has', 'documents have')} no choices, first document {empty[0]}"
        )
    return problems


def mend_instruction(doc: Doc) -> None:
    """Fix documents whose instruction is the whole question (`mmlu_pro`, `gpqa:mc`), so that examples keep
    theirs.

    lighteval removes a document's instruction from every question and puts it before the first example. That
    example then answers the evaluated question, and empty messages follow.
    """
    if doc.fewshot_samples and doc.instruction and doc.instruction.strip() == doc.query.strip():
        doc.instruction = None
        for example in doc.fewshot_samples:
            example.instruction = None


def _is_measured_by_choices(doc: Doc) -> bool:
    return SamplingMethod.LOGPROBS in doc.sampling_methods
