"""Exchange formats of other evaluation projects: one package for each format, and their entries in the format
table.

A format is not an engine: it does not run tasks, and the package of its project is not required. Code in a
file is never executed. A module is imported only when its feature is used.
"""

from __future__ import annotations

from collections.abc import Callable

from aigo_bridge.access.file_kinds import Head, eee_kind, is_lm_eval_results, is_lm_eval_samples
from aigo_bridge.engine.engine import LogImporter, TaskExporter
from aigo_bridge.engine.formats import Format, ResultExport, TaskConverter, TraceFormat


def _lm_eval_logs() -> LogImporter:
    from aigo_formats.lm_eval.importing import LmEvalResults

    return LmEvalResults()


def _is_lm_eval(head: Head, name: str) -> bool:
    return is_lm_eval_results(head) or is_lm_eval_samples(head)


def _lm_eval_tasks() -> TaskConverter:
    from aigo_formats.lm_eval.tasks.files import convert_tasks

    return convert_tasks


def _every_eval_ever_results() -> ResultExport:
    from aigo_formats.every_eval_ever.exporting import export_result

    return export_result


def _every_eval_ever_logs() -> LogImporter:
    from aigo_formats.every_eval_ever.importing import EveryEvalEver

    return EveryEvalEver()


def _is_every_eval_ever(head: Head, name: str) -> bool:
    return eee_kind(head) is not None


def _hub_tasks() -> TaskConverter:
    from aigo_formats.inspect_hub.files import convert_tasks

    return convert_tasks


def _hub_export() -> TaskExporter:
    from aigo_formats.inspect_hub.exporting import HubTasks

    return HubTasks()


def _traces(source: str) -> Callable[[], TraceFormat]:
    def load() -> TraceFormat:
        from aigo_formats.traces.datasets import SourceTraces

        return SourceTraces(source)

    return load


LM_EVAL = Format("lm-evaluation-harness", logs=_lm_eval_logs, is_log=_is_lm_eval, tasks=_lm_eval_tasks)
EVERY_EVAL_EVER = Format(
    "Every Eval Ever",
    logs=_every_eval_ever_logs,
    is_log=_is_every_eval_ever,
    results=_every_eval_ever_results,
)
INSPECT_HUB = Format("Inspect", tasks=_hub_tasks, task_export=_hub_export)
CLAUDE_CODE = Format("Claude Code", traces=_traces("claude_code"))
OPENTELEMETRY = Format("OpenTelemetry", traces=_traces("opentelemetry"))
LANGSMITH = Format("LangSmith", traces=_traces("langsmith"))
PHOENIX = Format("Phoenix", traces=_traces("phoenix"))
