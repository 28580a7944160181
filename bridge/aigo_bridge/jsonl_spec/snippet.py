"""The Python scorer of converted tasks: the source of our own rules and metrics, so that both ways give the same scores."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

PARTS = ("post_processing.py", "scores.py")
"""Modules that stand alone."""

_HEAD = """\
# Scores the records of a JSONL task spec: one score per sample, named after its metric.
# bleu_4 needs the package sacrebleu, rouge_l the package rouge-score; code_exec is scored in a sandbox by another scorer.
from __future__ import annotations"""

_TAIL = '''

def compute_scores(sample: dict[str, Any], solver_output: Any) -> dict[str, Any]:
    """The score of one sample under its own metric, after its own post-process rule."""
    if sample["metric_name"] == "code_exec":
        return {"scores": {}, "metadata": {}}
    generation = solver_output.output.choices[0].message.content
    prediction = post_process(sample["post_process"], generation)
    score = metric_score(sample["metric_name"], prediction, sample["targets"])
    return {"scores": {sample["metric_name"]: score}, "metadata": {"prediction": prediction}}
'''


@lru_cache(maxsize=1)
def scorer_snippet() -> str:
    """Source that defines `compute_scores(sample, solver_output)`; needs none of this project."""
    package = files("aigo_bridge.jsonl_spec")
    parts = [_body(package.joinpath(name).read_text("utf-8")) for name in PARTS]
    return "\n\n".join([_HEAD, *parts]) + _TAIL


def _body(source: str) -> str:
    """A module without its docstring and its `from __future__` line."""
    body = source.split('"""', 2)[2]
    return body.replace("from __future__ import annotations\n", "", 1).strip() + "\n"
