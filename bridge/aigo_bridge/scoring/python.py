"""Scores that the author computes in Python, in the snippet worker: scorers and system tasks.

A system task computes metrics without a model or dataset. Its snippet defines `compute_evidence()` and
returns `{"metrics": {name: {"value": number, "reason": text}}}`; `reason` is optional. The snippet may use
the network, because it often examines a running system.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aigo_bridge.dtypes import SolverOutput
from aigo_bridge.errors import SampleError, SnippetError, Stage
from aigo_bridge.scoring.scorer import RunContext, Score, ScorerType
from aigo_bridge.scoring.variables import last_call
from aigo_bridge.snippets.snippet import Snippet, has_old_scores
from aigo_bridge.spec.scorers import PythonAllSamplesScorer, PythonScorer
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from aigo_bridge.models.protocol import Models
    from aigo_bridge.plan.plan import Sample, TaskPlan
    from aigo_bridge.snippets import SnippetHost


class PythonScores:
    """Scorer that calls `compute_scores(sample, solver_output)`, or `compute_scores(sample)` for tasks
    without a solver.

    The deprecated form is `compute_scores(sample, model_input, model_output)` with the last model input and
    output.
    """

    def __init__(self, snippet: Snippet, host: SnippetHost):
        self._snippet = snippet
        self._host = host
        self._old = has_old_scores(snippet.source)

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Score:
        arguments: tuple[Any, ...] = (sample.data,) if output is None else (sample.data, output)
        if self._old and output is not None:
            arguments = (sample.data, *last_call(output))
        return _entry(await _call(self._host, self._snippet, *arguments), self._snippet.where)


class PythonAllSamplesScores:
    """Scorer that calls `compute_scores(samples)` once for the whole dataset; each sample then gets its
    entry.
    """

    def __init__(self, snippet: Snippet, host: SnippetHost, samples: Sequence[Sample]):
        import anyio

        self._snippet = snippet
        self._host = host
        self._samples = samples
        self._entries: dict[str, Any] | None = None
        self._failure: SampleError | None = None
        self._lock = anyio.Lock()

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Score:
        async with self._lock:
            if self._entries is None and self._failure is None:
                try:
                    self._entries = await self._compute()
                except SampleError as error:
                    # Keep the failure: another call for each sample would fail again.
                    self._failure = error
        if self._entries is None:
            assert self._failure is not None
            raise self._failure.with_traceback(None)
        # Parsed here so that an invalid entry only fails its own sample.
        return _entry(self._entries[str(sample.id)], self._snippet.where)

    async def _compute(self) -> dict[str, Any]:
        where = self._snippet.where
        entries = await _call(self._host, self._snippet, [sample.data for sample in self._samples])
        if not isinstance(entries, list) or len(entries) != len(self._samples):
            kind = (
                plural(len(entries), "entry", "entries")
                if isinstance(entries, list)
                else f"a {type(entries).__name__}"
            )
            raise SampleError(
                f"{where}: compute_scores returned {kind}, expected a list with one entry for each of the"
                f" {plural(len(self._samples), 'sample')}",
                stage="score",
                kind="InvalidScores",
            )
        return {str(sample.id): entry for sample, entry in zip(self._samples, entries, strict=True)}


async def _call(host: SnippetHost, snippet: Snippet, *arguments: Any, stage: Stage = "score") -> Any:
    try:
        return await host.call(snippet, *arguments)
    except SnippetError as error:
        raise SampleError(str(error), stage=stage, kind="SnippetError") from error


def _entry(entry: Any, label: str) -> Score:
    """Parse an entry with only scores, or with `{"scores": {…}, "metadata": {…}}`."""
    if (
        isinstance(entry, Mapping)
        and isinstance(entry.get("scores"), Mapping)
        and set(entry) <= {"scores", "metadata"}
    ):
        metadata = entry.get("metadata") or {}
        if isinstance(metadata, Mapping):
            return Score(dict(entry["scores"]), dict(metadata))
        raise SampleError(
            f"{label}: its metadata is a {type(metadata).__name__}, expected a mapping",
            stage="score",
            kind="InvalidScores",
        )
    if not isinstance(entry, Mapping):
        raise SampleError(
            f"{label}: compute_scores returned a {type(entry).__name__}, expected a mapping of scores",
            stage="score",
            kind="InvalidScores",
        )
    return Score(dict(entry))


def _snippet(source: str, context: RunContext) -> Snippet:
    return Snippet(source, "compute_scores", "compute_scores_snippet").at(context.snippet_place)


def _preview(scorer: PythonScorer | PythonAllSamplesScorer, row: Mapping[str, Any]) -> dict[str, str]:
    lines = len(scorer.compute_scores_snippet.splitlines())
    return {"compute_scores": f"{plural(lines, 'line')} of the author's code; not run here"}


PYTHON = ScorerType(
    PythonScorer,
    lambda scorer, context: PythonScores(_snippet(scorer.compute_scores_snippet, context), context.host),
    preview=_preview,
)
PYTHON_ALL_SAMPLES = ScorerType(
    PythonAllSamplesScorer,
    lambda scorer, context: PythonAllSamplesScores(
        _snippet(scorer.compute_scores_snippet, context), context.host, context.samples
    ),
    preview=_preview,
)


async def compute_evidence(plan: TaskPlan, host: SnippetHost) -> Score:
    """Run a system task's snippet; return numbers by metric name as values, and reasons as metadata.

    Raises:
        SampleError: the snippet failed, or did not return metrics (stage `metric`).
    """
    assert plan.definition.type == "system_task"
    snippet = Snippet(
        plan.definition.compute_evidence_snippet, "compute_evidence", "compute_evidence_snippet"
    ).at(plan.snippet_place("compute_evidence_snippet"))
    output = await _call(host, snippet, stage="metric")
    metrics = output.get("metrics") if isinstance(output, Mapping) else None
    if not isinstance(metrics, Mapping):
        raise _wrong(snippet, f"returned {output!r:.80}, expected a mapping with 'metrics'")
    values: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    for name, entry in metrics.items():
        value = entry.get("value") if isinstance(entry, Mapping) else None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise _wrong(
                snippet, f"metric {name!r} is {entry!r:.80}, expected a mapping with a number as 'value'"
            )
        values[str(name)] = value
        if isinstance(entry.get("reason"), str):
            reasons[str(name)] = entry["reason"]
    metadata = output.get("metadata")
    return Score(values, {"reasons": reasons, **({"metadata": metadata} if metadata else {})})


def _wrong(snippet: Snippet, message: str) -> SampleError:
    return SampleError(snippet.told(message), stage="metric", kind="InvalidEvidence")
