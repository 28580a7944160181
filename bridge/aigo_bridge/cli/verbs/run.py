"""`aigo-bridge run`: a task, or a whole evaluation, on an engine."""

from __future__ import annotations

import typer

from aigo_bridge.cli.engine_options import RunCommand
from aigo_bridge.cli.options import VERB, with_options
from aigo_bridge.cli.run_options import RunOptions

app = typer.Typer(**VERB)


@app.command("run", cls=RunCommand)
@with_options(RunOptions)
def run(options: RunOptions) -> None:
    """Run an AI GO task, or all tasks of a run file, on an engine and write the evidence.

    A benchmark of Inspect (`inspect:…`) also takes the options of `inspect eval`, such as --temperature.
    DIR then holds the engine's native logs and one `<key>.tasklog.json` per task, an AI GO TaskResultLog; of
    a run file also `evaluation.json`.
    Exit code: 0 all samples were scored and all policies hold, 1 some failed, a metric has no value, a policy
    does not hold or engines differ,
    2 wrong use or an invalid task, 3 all is right but invalid task records were left out, 130, 143, 129
    stopped by ctrl-C, SIGTERM, SIGHUP
    (finished samples are kept, --resume goes on).
    """
    from aigo_bridge.cli.cluster.options import refuse_without_cluster
    from aigo_bridge.cli.cluster.servers import model_servers
    from aigo_bridge.cli.failing import reported
    from aigo_bridge.cli.options import choose_confinement
    from aigo_bridge.cli.runs import run_one
    from aigo_bridge.cli.variants import run_variants, variants
    from aigo_bridge.execution.progress import tolerated

    with reported():
        tolerated(options.fail_on_error, 0)
        choose_confinement(options.snippets, options.allow)
        refuse_without_cluster(options)
        if options.on is not None:
            from aigo_bridge.cli.cluster.running import run_on_ray

            if code := run_on_ray(options):
                raise typer.Exit(code)
            return
        runs = variants(options)
        with model_servers(options):
            if options.shard is not None:
                from aigo_bridge.cli.shards import run_one_shard

                code = run_one_shard(options)
            else:
                code = run_one(options) if len(runs) == 1 else run_variants(runs, options)
    if code:
        raise typer.Exit(code)
