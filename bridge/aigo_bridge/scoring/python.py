"""Scorers that the author writes in Python; they run in the snippet worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from aigo_bridge.dtypes import SolverOutput
from aigo_bridge.errors import SampleError, SnippetError
from aigo_bridge.models import Models
from aigo_bridge.plan import Sample
from aigo_bridge.scoring.outcome import Outcome
from aigo_bridge.scoring.variables import last_call
from aigo_bridge.snippets import Snippet, SnippetHost
from aigo_bridge.snippets.signatures import has_old_scores


class PythonScores:
    """`compute_scores(sample, solver_output)`, or `compute_scores(sample)` for tasks without a solver.

    In the older form it is `compute_scores(sample, model_input, model_output)`: what the model was given last, and what it gave.
    """

    def __init__(self, snippet: Snippet, host: SnippetHost):
        self._snippet = snippet
        self._host = host
        self._old = has_old_scores(snippet.source)

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Outcome:
        arguments: tuple[Any, ...] = (sample.data,) if output is None else (sample.data, output)
        if self._old and output is not None:
            arguments = (sample.data, *last_call(output))
        return _entry(await _call(self._host, self._snippet, *arguments), self._snippet.where)


class PythonAllSamplesScores:
    """`compute_scores(samples)`, called once for the whole data set; each sample then gets its entry."""

    def __init__(self, snippet: Snippet, host: SnippetHost, samples: Sequence[Sample]):
        self._snippet = snippet
        self._host = host
        self._samples = samples
        self._entries: dict[str, Any] | None = None
        self._failure: SampleError | None = None
        self._lock = anyio.Lock()

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Outcome:
        async with self._lock:
            if self._entries is None and self._failure is None:
                try:
                    self._entries = await self._compute()
                except SampleError as error:
                    # One failure of the whole: asking again for each sample would fail as often.
                    self._failure = error
        if self._entries is None:
            assert self._failure is not None
            raise self._failure.with_traceback(None)
        # Read here: an entry that cannot be is the failure of its own sample only.
        return _entry(self._entries[str(sample.id)], self._snippet.where)

    async def _compute(self) -> dict[str, Any]:
        where = self._snippet.where
        entries = await _call(self._host, self._snippet, [sample.data for sample in self._samples])
        if not isinstance(entries, list) or len(entries) != len(self._samples):
            found = f"{len(entries)} entries" if isinstance(entries, list) else f"a {type(entries).__name__}"
            raise SampleError(
                f"{where}: compute_scores returned {found}, expected a list with one entry for each of the"
                f" {len(self._samples)} samples",
                stage="score",
                kind="InvalidScores",
            )
        return {str(sample.id): entry for sample, entry in zip(self._samples, entries, strict=True)}


async def _call(host: SnippetHost, snippet: Snippet, *arguments: Any) -> Any:
    try:
        return await host.call(snippet, *arguments)
    except SnippetError as error:
        raise SampleError(str(error), stage="score", kind="SnippetError") from error


def _entry(entry: Any, label: str) -> Outcome:
    """Scores alone, or `{"scores": {…}, "metadata": {…}}`."""
    if (
        isinstance(entry, Mapping)
        and isinstance(entry.get("scores"), Mapping)
        and set(entry) <= {"scores", "metadata"}
    ):
        metadata = entry.get("metadata") or {}
        if isinstance(metadata, Mapping):
            return Outcome(dict(entry["scores"]), dict(metadata))
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
    return Outcome(dict(entry))
