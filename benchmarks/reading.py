"""Task files validated per second on one core, compared with bare `yaml.compose` with the C loader.

    python benchmarks/reading.py [files]

All files differ, so that caches of templates and snippets do not help. Imports are warm.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import yaml
from ratios import record

from aigo_bridge.reading import read, validate_paths
from aigo_bridge.spec.task import TaskSpec

TASK = """\
key: trivia-{n}
display_name: "Trivia {n}"
description: "Asks questions about {n}."
config_spec:
  - {{type: dataset, key: dataset_key, display_name: Data, default_value: trivia}}
definition:
  dataset:
    key: << config.dataset_key >>
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages:
        - {{role: system, content: You are helper number {n}.}}
        - {{role: user, content: "Answer in {n} words. {{{{ sample.question }}}}"}}
  scorers:
    - type: model_as_a_judge_classifier
      model_key: openai$gpt-4-1-nano
      system_prompt: |
        You compare answer {n} with the right one.
        Say only 'correct' or 'incorrect'.
      user_prompt: |
        Right: {{{{ sample.answer }}}}
        Given to {n}: {{{{ solver_output.output }}}}
      correct_labels: [correct]
      incorrect_labels: [incorrect]
    - type: string_equals
      ground_truth: "{{{{ sample.answer }}}}"
      metrics:
        - {{type: mean, field: is_correct, name: Accuracy}}
"""
EXTRAS = {
    "plain": "",
    "with Jinja blocks": (
        "    - type: bleu\n"
        '      ground_truth: "{{% if sample.a == {n} %}}{{{{ sample.b | upper }}}}{{% endif %}}"\n'
    ),
    "with a snippet": (
        "    - type: python\n      compute_scores_snippet: |\n"
        "        def compute_scores(sample, solver_output):\n            return {{'score': {n}}}\n"
    ),
    "with an included snippet": "    - {{type: python, compute_scores_snippet: !include code-{n}.py}}\n",
}


def rate(work: Callable[[Path], object], paths: list[Path]) -> float:
    """Return the files per second in one round. A second round would find compiled templates."""
    start = time.process_time()
    for path in paths:
        work(path)
    return len(paths) / (time.process_time() - start)


def composed(path: Path) -> object:
    return yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


def main(count: int) -> None:
    print(f"{count} different files each; files per second")
    print(f"{'':28}{'yaml.compose':>14}{'read':>12}{'refused':>12}")
    for name, extra in EXTRAS.items():
        with tempfile.TemporaryDirectory() as folder:
            paths, broken = [], []
            for n in range(count):
                paths.append(Path(folder, f"{n}.yaml"))
                paths[-1].write_text((TASK + extra).format(n=n), encoding="utf-8")
                Path(folder, f"code-{n}.py").write_text(
                    f"def compute_scores(sample, solver_output):\n    return {{'score': {n}}}\n",
                    encoding="utf-8",
                )
                broken.append(Path(folder, f"{n}.yml"))
                text = (TASK + extra).format(n=f"{n}-b").replace("type: string_equals", "type: string_equal")
                broken[-1].write_text(text.replace("tags", "tag"), encoding="utf-8")
            read(TaskSpec, paths[0])  # builds the models
            bare = rate(composed, paths)
            valid = rate(partial(read, TaskSpec), paths)
            refused = rate(lambda path: list(validate_paths([path])), broken)
            print(f"{name:28}{bare:14,.0f}{valid:12,.0f}{refused:12,.0f}")
            record(f"{name}, read", bare / valid)
            record(f"{name}, refused", bare / refused)
            data = read(TaskSpec, paths[0]).data
    start = time.perf_counter()
    for _ in range(2000):
        TaskSpec.model_validate(data)
    print(f"TaskSpec alone: {(time.perf_counter() - start) / 2000 * 1e6:.0f} µs")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
