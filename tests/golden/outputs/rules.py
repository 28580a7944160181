"""Where outputs of runs hold chance: times, durations, ids made at random, releases of packages.

They hold for cases with a run among their commands. What an import, an export or a conversion writes has no chance in it, and is held as it is.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """Values of one kind at some places of some files of JSON."""

    files: str
    """Pattern of the files' names; of an archive, `archive!member`."""
    kind: str
    """`time`, `seconds`, `id`, `version`, `digest`; `source`: a file of source code, or a line in it; `traceback`: without its frames;
    `set`: a list whose order is chance; `json`: a text that is JSON itself, in which the rules go on below `@`."""
    places: tuple[str, ...]
    """Keys with dots between, `0` for any index: `*` is any one key, `**.` any number of them."""


@dataclass(frozen=True)
class TextRule:
    """Words in a text that is no JSON."""

    files: str
    pattern: str
    stands: str


ITEMS = ("items", "input_context", "output_items", "*.items")

RULES: tuple[Rule, ...] = (
    # A run's messages, calls and spans have ids made at random, also where one names another.
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
    # Of runs with agents: in imported logs these are what they are.
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
    # Where in the code, and when, a line was written to the log that Inspect's loggers write.
    Rule("*.tasklog.json", "time", ("**.events.0.data.message.created",)),
    Rule(
        "*.tasklog.json",
        "source",
        tuple(f"**.events.0.data.message.{key}" for key in ("filename", "module", "lineno")),
    ),
    # Of a traceback, what was raised; not the files and lines of every library between.
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
    # The results of a run file, together; `--json` prints them.
    Rule("stdout", "time", ("**.started_at", "**.ended_at")),
    Rule("stdout", "seconds", ("**.runtime",)),
    Rule("*evaluation.json", "time", ("**.started_at", "**.ended_at")),
    Rule("*evaluation.json", "seconds", ("**.execution.runtime",)),
    # Inspect's own log of a run.
    Rule("*.eval!header.json", "id", ("eval.eval_id", "eval.run_id", "eval.task_id")),
    Rule("*.eval!header.json", "time", ("eval.created", "stats.started_at", "stats.completed_at")),
    Rule("*.eval!header.json", "version", ("eval.packages.*",)),
    Rule(
        "*.eval!header.json", "set", ("eval.tags.0",)
    ),  # a set of Inspect's, in the order of a process's hashes
    Rule("*.tasklog.json", "set", ("**.trace.metadata.tags.0",)),
    # A stored result that is scored anew is the data set, so that digests have its times in them.
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
    # lighteval's own files of a run.
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
    Rule("*results/*.json", "digest", ("aigo_bridge.numbers.details",)),  # of the table below, with its times
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
    # How far a run is, is said from time to time; that it has come to its end always.
    TextRule("stderr", r"^(\d+)/(?!\1\b)\d+ (trials|samples)\b.*\n", ""),
    # … and that none has ended for a minute, on a machine that has other things to do.
    TextRule("stderr", r"^no (trial|sample) has ended for \d+ s \(.*\n", ""),
)
