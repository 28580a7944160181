"""Positions of random values in the outputs of runs: times, durations, random ids, package versions.

The rules apply to cases with a run among their commands. Outputs of imports, exports and conversions contain no random values and are
compared unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """Values of one kind at certain positions in certain JSON files."""

    files: str
    """Pattern of the file names; `archive!member` for archives."""
    kind: str
    """`time`, `seconds`, `id`, `version`, `digest`; `source`: a source file, or a line in it; `traceback`: without its frames;
    `set`: a list in random order; `json`: a JSON text, to which rules below `@` apply."""
    places: tuple[str, ...]
    """Keys separated by dots, with `0` for any index: `*` matches one key, `**.` any number of keys."""


@dataclass(frozen=True)
class TextRule:
    """Words in a text that is not JSON."""

    files: str
    pattern: str
    stands: str


ITEMS = ("items", "input_context", "output_items", "*.items")

RULES: tuple[Rule, ...] = (
    # Messages, calls and spans of a run have random ids, also in references.
    Rule(
        "*.tasklog.json",
        "id",
        (
            *(f"**.{items}.0.{key}" for items in ITEMS for key in ("id", "call_id")),
            *(f"**.events.0.{key}" for key in ("id", "call_id", "span_id", "parent_span_id")),
            "**.trace.span_id",
            "**.trace.metadata.trace_id",
            "**.events.0.data.sample.input.0.id",
            "**.events.0.data.sample.input.0.tool_calls.0.id",
            "**.events.0.data.sample.input.0.tool_call_id",
            "**.choices.0.message.id",
        ),
    ),
    Rule("*.tasklog.json", "time", ("**.events.0.timestamp", "execution.started_at", "execution.ended_at")),
    Rule("*.tasklog.json", "seconds", ("execution.runtime", "**.events.0.total_time")),
    Rule(
        "*.tasklog.json",
        "seconds",
        tuple(
            f"**.metadata.inspect.{key}"
            for key in (
                *("working_start", "working_time", "output_time", "total_time", "waiting_time"),
                "call.time",
            )
        ),
    ),
    Rule("*.tasklog.json", "time", ("**.metadata.inspect.completed",)),
    # Only for runs with agents: imported logs have fixed values.
    *(
        rule
        for files in ("*-small.tasklog.json", "*feature.tasklog.json")
        for rule in (
            Rule(files, "time", ("**.events.0.data.completed",)),
            Rule(files, "seconds", ("**.events.0.working_time",)),
            Rule(
                files,
                "id",
                (
                    "**.events.0.agent_span_id",
                    "**.events.0.model_call_id",
                    "**.metadata.inspect.message_id",
                ),
            ),
        )
    ),
    # Source position and time of a line written by the loggers of Inspect.
    Rule("*.tasklog.json", "time", ("**.events.0.data.message.created",)),
    Rule(
        "*.tasklog.json",
        "source",
        tuple(f"**.events.0.data.message.{key}" for key in ("filename", "module", "lineno")),
    ),
    # A traceback keeps only the exception, without the files and lines of libraries.
    Rule("*.tasklog.json", "traceback", ("**.events.0.traceback", "**.metadata.inspect.traceback")),
    Rule(
        "*.tasklog.json",
        "time",
        ("**.trace.metadata.created_at", "**.trace.metadata.extra.inspect.completed_at"),
    ),
    Rule(
        "*.tasklog.json",
        "seconds",
        tuple(
            f"**.trace.metadata.{key}"
            for key in ("total_time", "extra.inspect.total_time", "extra.inspect.working_time")
        ),
    ),
    # Joint results of a run file, printed by `--json`.
    Rule("stdout", "time", ("**.started_at", "**.ended_at")),
    Rule("stdout", "seconds", ("**.runtime",)),
    Rule("*evaluation.json", "time", ("**.started_at", "**.ended_at")),
    Rule("*evaluation.json", "seconds", ("**.execution.runtime",)),
    # Log of a run written by Inspect.
    Rule("*.eval!header.json", "id", ("eval.eval_id", "eval.run_id", "eval.task_id")),
    Rule("*.eval!header.json", "time", ("eval.created", "stats.started_at", "stats.completed_at")),
    Rule("*.eval!header.json", "version", ("eval.packages.*",)),
    Rule(
        "*.eval!header.json", "set", ("eval.tags.0",)
    ),  # a set in Inspect, ordered by the hashes of a process
    Rule("*.tasklog.json", "set", ("**.trace.metadata.tags.0",)),
    # A rescored result is the dataset, so its digests depend on times.
    Rule("stdout", "digest", ("0.digest",)),
    *(
        Rule(
            f"{folder}/*.eval!header.json",
            "digest",
            (
                "eval.task_args.digest",
                "eval.task_args_passed.digest",
                *(f"**.aigo_bridge.{key}" for key in ("digest", "solver_digest", "dataset.digest")),
            ),
        )
        for folder in ("scored", "again", "native")
    ),
    Rule("scored/results/*.json", "digest", ("**.digest", "**.solver_digest")),
    # Files of a run written by lighteval.
    Rule(
        "*results/*.json",
        "seconds",
        (
            "config_general.start_time",
            "config_general.end_time",
            "config_general.total_evaluation_time_secondes",
        ),
    ),
    Rule("*results/*.json", "time", ("aigo_bridge.started_at", "aigo_bridge.ended_at")),
    Rule(
        "*results/*.json", "digest", ("aigo_bridge.numbers.details",)
    ),  # for the table below, with its times
    Rule("*details/*.parquet", "json", ("model_response.aigo", "metric.aigo")),
    Rule(
        "*details/*.parquet",
        "id",
        tuple(
            f"*.aigo.@.**.{items}.0.{key}"
            for items in (*ITEMS, "input", "output")
            for key in ("id", "call_id")
        ),
    ),
    Rule(
        "*details/*.parquet",
        "time",
        tuple(f"*.aigo.@.**.{key}" for key in ("started_at", "ended_at", "timestamp")),
    ),
    Rule("*details/*.parquet", "seconds", ("*.aigo.@.**.total_time",)),
)

TEXTS: tuple[TextRule, ...] = (
    # Progress is printed from time to time, the end of a run always.
    TextRule("stderr", r"^(\d+)/(?!\1\b)\d+ (trials|samples)\b.*\n", ""),
    # A busy machine may also print that no sample has ended for a minute.
    TextRule("stderr", r"^no (trial|sample) has ended for \d+ s \(.*\n", ""),
)
