"""aigo-bridge: AI GO evaluation tasks on other engines, and those engines' logs as AI GO evidence.

```python
import aigo_bridge

plan = aigo_bridge.plan_task("examples/capitals")
outcome = aigo_bridge.run(plan, "scripted/examples/capitals/answers.jsonl")
for sample in aigo_bridge.read_log(outcome.result):
    print(sample.sample_id, sample.trials[0].scores)
```

These names are the stable ones. Importing the package loads none of them, and no engine: each name loads
what it needs when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from aigo_bridge.version import __version__

if TYPE_CHECKING:
    from aigo_bridge.api.evidence import import_logs, validate
    from aigo_bridge.api.planning import plan_task
    from aigo_bridge.api.running import gaps, run, translate
    from aigo_bridge.dtypes import SampleEvidence, TaskResultLog
    from aigo_bridge.engine.outcome import Outcome
    from aigo_bridge.engine.protocol import Fidelity, Gap, Progress
    from aigo_bridge.errors import BridgeError, Issue
    from aigo_bridge.evaluation.validation import ValidationReport
    from aigo_bridge.importing.log_import import ImportOptions, ImportReport
    from aigo_bridge.plan.plan import TaskPlan
    from aigo_bridge.results.reading import LogReader, read_log
    from aigo_bridge.results.writing import write_log
    from aigo_report.tables.results import Results, open_results
    from aigo_trust.verification.levels import Verification
    from aigo_trust.verification.opening import verify

_HOMES = {
    "plan_task": "aigo_bridge.api.planning",
    "gaps": "aigo_bridge.api.running",
    "translate": "aigo_bridge.api.running",
    "run": "aigo_bridge.api.running",
    "import_logs": "aigo_bridge.api.evidence",
    "validate": "aigo_bridge.api.evidence",
    "verify": "aigo_trust.verification.opening",
    "open_results": "aigo_report.tables.results",
    "read_log": "aigo_bridge.results.reading",
    "write_log": "aigo_bridge.results.writing",
    "TaskPlan": "aigo_bridge.plan.plan",
    "Gap": "aigo_bridge.engine.protocol",
    "Fidelity": "aigo_bridge.engine.protocol",
    "Progress": "aigo_bridge.engine.protocol",
    "Outcome": "aigo_bridge.engine.outcome",
    "ImportOptions": "aigo_bridge.importing.log_import",
    "ImportReport": "aigo_bridge.importing.log_import",
    "ValidationReport": "aigo_bridge.evaluation.validation",
    "Verification": "aigo_trust.verification.levels",
    "LogReader": "aigo_bridge.results.reading",
    "Results": "aigo_report.tables.results",
    "TaskResultLog": "aigo_bridge.dtypes",
    "SampleEvidence": "aigo_bridge.dtypes",
    "BridgeError": "aigo_bridge.errors",
    "Issue": "aigo_bridge.errors",
}
"""Name → module that has it."""

__all__ = [
    "BridgeError",
    "Fidelity",
    "Gap",
    "ImportOptions",
    "ImportReport",
    "Issue",
    "LogReader",
    "Outcome",
    "Progress",
    "Results",
    "SampleEvidence",
    "TaskPlan",
    "TaskResultLog",
    "ValidationReport",
    "Verification",
    "__version__",
    "gaps",
    "import_logs",
    "open_results",
    "plan_task",
    "read_log",
    "run",
    "translate",
    "validate",
    "verify",
    "write_log",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
