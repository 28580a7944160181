"""`aigo-bridge verify`: whether a result was altered, and whether its numbers follow from what stands in
it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.looking import RESULTS_HELP
from aigo_bridge.cli.options import (
    VERB,
    AllowFileOption,
    AllowOption,
    DatasetOption,
    EnvOption,
    JsonOption,
    RootOption,
    SnippetsOption,
    choose_confinement,
)
from aigo_bridge.cli.terminal import print_json
from aigo_bridge.codes import Code

app = typer.Typer(**VERB)


@app.command("verify")
def verify(
    results: Annotated[
        list[str],
        typer.Argument(
            metavar="RESULT…",
            help=f"{RESULTS_HELP} Also bundles of `aigo-bridge bundle`, and samples of `attest --disclose`.",
        ),
    ],
    task: Annotated[
        str | None,
        typer.Option(
            "--task", metavar="TASK", help="Your own task (of a run file FILE#KEY) that the result is of."
        ),
    ] = None,
    log: Annotated[
        str | None, typer.Option("--log", metavar="LOG", help="The native log that the result is of.")
    ] = None,
    rerun_scorers: Annotated[
        bool,
        typer.Option(
            "--rerun-scorers",
            help="With --task: run its scorers and metrics in Python on the stored outputs.",
        ),
    ] = False,
    replay: Annotated[
        Path | None,
        typer.Option(
            "--recording",
            "--replay",
            metavar="CASSETTE",
            help="Recording of the run: the model's answers are compared with it, and the replies of judges"
            " are taken from it.",
        ),
    ] = None,
    provenance: Annotated[
        Path | None,
        typer.Option("--provenance", metavar="FILE", help="Its provenance. [the file beside it]"),
    ] = None,
    attestation: Annotated[
        Path | None,
        typer.Option("--attestation", metavar="FILE", help="Its attestation. [the file beside it]"),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key", metavar="FILE", help="Public key (PEM) that has to have signed the attestation."
        ),
    ] = None,
    identity: Annotated[
        str | None,
        typer.Option(
            "--identity",
            metavar="NAME",
            help="Who has to have signed without a key: an e-mail address, or the address of a workflow.",
        ),
    ] = None,
    issuer: Annotated[
        str | None,
        typer.Option("--issuer", metavar="URL", help="With --identity: the provider that vouches for it."),
    ] = None,
    trust_config: Annotated[
        Path | None,
        typer.Option(
            "--trust-config",
            metavar="FILE",
            help="With --identity: keys of other services than sigstore's public ones.",
        ),
    ] = None,
    dataset: DatasetOption = None,
    root: RootOption = None,
    snippets: SnippetsOption = None,
    allow: AllowOption = None,
    env: EnvOption = None,
    allow_file: AllowFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check results: valid log, numbers, scores, answers, digests, native log, signature.

    The first line is the verdict: verified, partly verified, or FAILED. Then each level is proved, failed, or
    cannot be checked, with the reason. Code in a result is never executed: code and templates are those of
    your own task.
    Exit code: 0 no level has failed, 1 one has failed, 2 wrong use, 3 none has failed, but a level that you
    have asked for with an option could not be checked.
    """
    from aigo_bridge.cli.failing import reported
    from aigo_bridge.cli.levels import show_verifications
    from aigo_bridge.cli.looking import named_results
    from aigo_bridge.cli.options import pairs
    from aigo_bridge.errors import UsageError
    from aigo_bridge.text.plurals import plural
    from aigo_trust.verification.levels import worst_exit_code
    from aigo_trust.verification.materials import Materials, identity_of
    from aigo_trust.verification.opening import verify_source

    with reported():
        choose_confinement(snippets, allow)
        sources = named_results(results)
        if len(sources) > 1 and (provenance is not None or attestation is not None):
            raise UsageError(
                "--provenance and --attestation are files of one result,"
                f" found {plural(len(sources), 'result')}",
                code=Code.OPTIONS_APART,
            )
        materials = Materials(
            task=task,
            datasets={name: str(Path(file).resolve()) for name, file in pairs("--dataset", dataset).items()},
            root=None if root is None else str(root.resolve()),
            log=log,
            rerun_scorers=rerun_scorers,
            replay=replay,
            provenance=provenance,
            attestation=attestation,
            key=key,
            identity=identity_of(identity, issuer, trust_config),
        )
        verifications = [verify_source(source, materials) for source in sources]
    if as_json:
        content = [verification.to_json() for verification in verifications]
        print_json(content[0] if len(content) == 1 else content)
    else:
        show_verifications(verifications)
    if code := worst_exit_code(verifications):
        raise typer.Exit(code)
