"""The cases that belong to the tests: each verb, both engines, each area of features, for less than a minute of CPU.

CPU seconds, measured with `make durations ARGS=tests/golden/outputs`: an engine costs ten (lighteval) and four (Inspect) to load, once; then
a run 0.8 on Inspect and 0.4 on lighteval, an export, an import or an explanation 0.3 to 0.6, one of `verbs` or `convert` 1 to 5. What is
dearer than it is worth belongs to `make golden` alone.
"""

from __future__ import annotations

QUICK = frozenset(
    (
        "import/inspect/0.3.199-v3.json",
        "import/inspect/0.3.240.eval",
        "import/inspect/0.3.285-chunked.eval",
        "import/inspect/0.3.50.eval",
        "import/lighteval/0.13.0",
        "import/several",
        "import/formats",
        "import/redaction",
        "validate/broken",
        "convert/records",
        "convert/inspect",
        "convert/lighteval",
        "verbs/stored",
        "verbs/run-file",
        "verbs/list",
        "verbs/schema",
        "verbs/help",
        "explain/tasks/booking-dialogue",
        "explain/tasks/hp-trivia",
        "export/inspect/tasks/gsm8k",
        "export/inspect/features/scorers/bleu",
        "export/inspect/features/solvers/multi-turn-loop-with-terminate-if",
        "export/inspect/features/trials/mean-min-max-pass-k-pass-k",
        "export/lighteval/tasks/mmlu",
        "export/lighteval/features/scorers/string-equals-mcqa",
        "run/inspect/tasks/hp-trivia",
        "run/inspect/tasks/tool-use",
        "run/inspect/features/solvers/post-processor",
        "run/inspect/features/solvers/single-turn-chat",
        "run/inspect/features/scorers/string-equals",
        "run/inspect/features/judges/model-as-a-judge-scorer",
        "run/inspect/features/metrics/mean-min-max-std-dev",
        "run/inspect/features/rules/samples-excluded-by-columns-by-answers-and-by-scores",
        "run/inspect/features/failures/models-that-fail",
        "run/inspect/features/models/reasoning-refusals-cut-off-answers",
        "run/inspect/features/runs/a-run-that-is-resumed-asks-only-what-has-failed",
        "run/lighteval/tasks/singleturn-generic-input",
        "run/lighteval/features/solvers/recorded-traces",
        "run/lighteval/features/scorers/python",
        "run/lighteval/features/judges/model-as-a-judge-classifier",
        "run/lighteval/features/metrics/scores-that-are-missing-or-not-finite",
        "run/lighteval/features/trials/trials-that-fail-are-left-out",
        "run/lighteval/features/rules/rules-over-aggregated-trials-and-failed-scores",
        "run/lighteval/features/data/missing-columns-null-and-NaN",
        "run/lighteval/features/failures/templates-that-cannot-be-rendered",
        "run/lighteval/features/runs/stored-outputs-are-scored-again-by-other-scorers",
    )
)
