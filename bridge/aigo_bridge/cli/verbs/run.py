"""`aigo-bridge run`: run a task, run file or benchmark."""

from __future__ import annotations

import typer

from aigo_bridge.cli.engine_options import RunCommand
from aigo_bridge.cli.options import VERB, verb_command, with_options
from aigo_bridge.cli.run_options import PANELS, RunOptions

app = typer.Typer(**VERB)


@app.command(
    "run",
    cls=verb_command(
        "aigo-bridge run examples/capitals --model openai/gpt-4.1-mini",
        "aigo-bridge run task.yaml --model anthropic/claude-haiku-4-5 -n 20 --num-trials 3",
        "aigo-bridge run inspect:inspect_evals/arc_easy --model ollama/llama3.2",
        exit_codes={
            "0": "all samples were scored and all policies passed",
            "1": "samples or trials failed, a metric has no value, a policy failed, or engines differ",
            "2": "wrong arguments or an invalid task",
            "3": "complete, but invalid task records were skipped",
            "130": "stopped by ctrl-C; finished samples are kept, continue with --resume",
            "129, 143": "stopped by SIGHUP or SIGTERM, as for ctrl-C",
        },
        panels=PANELS,
        base=RunCommand,
    ),
)
@with_options(RunOptions)
def run(options: RunOptions) -> None:
    """Run an AI GO task, all tasks of a run file, or a benchmark of an engine, and write the evidence.

    DIR then contains the engine logs and one `<key>.tasklog.json` per task, an AI GO TaskResultLog. A run
    file also gets `evaluation.json`. A benchmark of Inspect (`inspect:…`) also accepts the options of
    `inspect eval`, such as --temperature.
    """
    from aigo_bridge.cli.cluster_options import refuse_without_cluster
    from aigo_bridge.cli.hooks import DistributedRuns
    from aigo_bridge.cli.runs import run_one
    from aigo_bridge.cli.variants import run_variants, variants
    from aigo_bridge.execution.progress import tolerated
    from aigo_bridge.hooks import load_hook

    tolerated(options.fail_on_error, 0)
    refuse_without_cluster(options)
    if options.on is not None:
        code = load_hook("distributed runs", DistributedRuns).run_on_cluster(options)
    else:
        runs = variants(options)
        if options.shard is not None:
            code = load_hook("distributed runs", DistributedRuns).run_shard(options)
        else:
            code = run_one(options) if len(runs) == 1 else run_variants(runs, options)
    if code:
        raise typer.Exit(code)
