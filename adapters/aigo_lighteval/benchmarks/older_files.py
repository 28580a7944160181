"""Task files written for lighteval before 0.11: deprecated syntax, and the syntax of the installed release.

lighteval prints only the name that Python could not import. Here the file is parsed, and every deprecated
part is reported with its line.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import importlib
from collections.abc import Iterator
from pathlib import Path

from lighteval.metrics.metrics import Metrics
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc

_NAMES = {
    "MetricCategory": "use SamplingMethod of lighteval.tasks.requests: GENERATIVE, PERPLEXITY, and"
    " LOGPROBS for MULTICHOICE",
    "MetricUseCase": "remove it, and the argument use_case",
    "RequestType": "use SamplingMethod of lighteval.tasks.requests",
    "GreedyUntilRequest": "models take documents: Doc of lighteval.tasks.requests",
    "LoglikelihoodRequest": "models take documents: Doc of lighteval.tasks.requests",
    "GenerativeResponse": "use ModelResponse of lighteval.models.model_output; answers are in `text`",
    "LoglikelihoodResponse": "use ModelResponse of lighteval.models.model_output; see `logprobs`",
}
"""Old name → what to write."""
_ARGUMENTS = {
    "LightevalTaskConfig": {
        "suite": "remove it, and name the task NAME or NAME|SHOTS",
        "metric": "write metrics=[…]",
        "trust_dataset": "remove it",
        "output_regex": "remove it, and take the answer out of the text in the metric",
        "frozen": "remove it",
    },
    "Doc": {
        "ctx": "remove it: lighteval builds the prompt",
        "num_asked_few_shots": "remove it",
        "num_effective_few_shots": "remove it",
        "target_for_fewshot_sorting": "remove it",
    },
}
"""Class → old argument → what to write."""
_METRICS = frozenset(
    {
        "SampleLevelMetric",
        "SampleLevelMetricGrouping",
        "CorpusLevelMetric",
        "CorpusLevelMetricGrouping",
        "Metric",
    }
)


@dataclasses.dataclass(frozen=True)
class DeprecatedSyntax:
    """A part that the installed release of lighteval writes differently or does not have."""

    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


def deprecated_syntax(path: Path) -> list[DeprecatedSyntax]:
    """Return the syntax of lighteval before 0.11, in the order of lines; empty for a current file."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    found = [
        part
        for node in ast.walk(tree)
        for part in (*_imports(node), *_calls(node, functions), *_members(node))
    ]
    return sorted(dict.fromkeys(found), key=lambda part: part.line)


def _imports(node: ast.AST) -> Iterator[DeprecatedSyntax]:
    if not isinstance(node, ast.ImportFrom) or node.level or not (node.module or "").startswith("lighteval"):
        return
    module = node.module or ""
    try:
        loaded = importlib.import_module(module)
    except Exception:  # noqa: BLE001  # any error of a module that is imported
        loaded = None
    for alias in node.names:
        if alias.name != "*" and not hasattr(loaded, alias.name):
            hint = _NAMES.get(alias.name, "find its new place in lighteval's source")
            yield DeprecatedSyntax(node.lineno, f"{module} does not have {alias.name}: {hint}")


def _calls(node: ast.AST, functions: set[str]) -> Iterator[DeprecatedSyntax]:
    if not isinstance(node, ast.Call):
        return
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    kinds = {"LightevalTaskConfig": LightevalTaskConfig, "Doc": Doc}
    if name in kinds:
        known = {field.name for field in dataclasses.fields(kinds[name])}
        for keyword in node.keywords:
            if keyword.arg is not None and keyword.arg not in known:
                near = difflib.get_close_matches(keyword.arg, known, n=1)
                guess = f"did you mean {near[0]}?" if near else "remove it"
                hint = _ARGUMENTS[name].get(keyword.arg, guess)
                yield DeprecatedSyntax(
                    keyword.value.lineno, f"{name} does not have the argument {keyword.arg}: {hint}"
                )
    if name in _METRICS:
        yield from _metric(node, name, functions)


def _metric(node: ast.Call, name: str, functions: set[str]) -> Iterator[DeprecatedSyntax]:
    for keyword in node.keywords:
        line, value = keyword.value.lineno, keyword.value
        if keyword.arg in ("use_case", "sample_level_formatter"):
            yield DeprecatedSyntax(line, f"{name} does not have the argument {keyword.arg}: remove it")
        if keyword.arg == "metric":
            yield DeprecatedSyntax(line, f"{name} does not have the argument metric: write metric_name=…")
        is_function = isinstance(value, ast.Lambda) or (isinstance(value, ast.Name) and value.id in functions)
        if keyword.arg == "sample_level_fn" and is_function:
            yield DeprecatedSyntax(
                line,
                f"sample_level_fn of {name} is a function: derive a class from SampleLevelComputation of"
                " lighteval.metrics.metrics_sample with compute(self, doc, model_response, **kwargs), and"
                " give an instance",
            )


def _members(node: ast.AST) -> Iterator[DeprecatedSyntax]:
    if (
        not isinstance(node, ast.Attribute)
        or not isinstance(node.value, ast.Name)
        or node.value.id != "Metrics"
    ):
        return
    if not hasattr(Metrics, node.attr):
        near = difflib.get_close_matches(node.attr, list(Metrics.__members__), n=3, cutoff=0.5)
        guess = f"did you mean {' or '.join(near)}?" if near else "see lighteval.metrics.metrics"
        yield DeprecatedSyntax(node.lineno, f"Metrics does not have {node.attr}: {guess}")
