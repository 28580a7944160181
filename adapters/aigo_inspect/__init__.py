"""Inspect AI adapter. It runs AI GO plans as Inspect tasks and converts Inspect logs to AI GO evidence.

```python
from aigo_inspect import import_log, iter_samples, trace_from_sample

log = import_log("logs/2026-01-01T00-00-00-00-00_task.eval")    # a TaskResultLog, all in memory
for sample in iter_samples("s3://bucket/logs/large.eval"):      # one SampleEvidence at a time
    ...
trace = trace_from_sample(sample)                               # an EvalSample, or a list of Inspect's events
```

Importing this package does not import Inspect. Each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aigo_inspect.exporting.log import export_log
    from aigo_inspect.importing.api import import_log, iter_samples, trace_from_sample
    from aigo_inspect.importing.importing import import_logs

_HOMES = {
    "import_log": "importing.api",
    "iter_samples": "importing.api",
    "trace_from_sample": "importing.api",
    "import_logs": "importing.importing",
    "export_log": "exporting.log",
}

__all__ = ["export_log", "import_log", "import_logs", "iter_samples", "trace_from_sample"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
