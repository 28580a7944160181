"""`aigo-bridge verify`: checks whether a result was modified, and whether its metrics follow from its
content.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aigo_bridge.cli.options import (
    VERB,
    AllowFileOption,
    AllowOption,
    DatasetOption,
    EnvOption,
    JsonOption,
    RootOption,
    SnippetsOption,
    verb_command,
)
from aigo_bridge.cli.result_arguments import RESULTS_HELP
from aigo_bridge.cli.terminal import print_json, printable, short_path
from aigo_bridge.codes import Code
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from aigo_trust.verification.levels import Level, Verification

app = typer.Typer(**VERB)

_MARKS = {"proved": "proved", "failed": "FAILED", "cannot be checked": "cannot be checked"}
_SHOWN = 20


@app.command(
    "verify",
    cls=verb_command(
        "aigo-bridge verify out/capitals.tasklog.json --task task.yaml",
        "aigo-bridge verify capitals.zip --key me.pub.pem",
        exit_codes={
            "0": "no level failed",
            "1": "a level failed",
            "2": "wrong arguments",
            "3": "no level failed, but a requested level could not be checked",
        },
        panels={
            "Compare with": ("task", "log", "rerun_scorers", "replay", "provenance", "dataset"),
            "Signature": ("attestation", "key", "identity", "issuer", "trust_config"),
        },
    ),
)
def verify(
    results: Annotated[
        list[str],
        typer.Argument(
            metavar="RESULT…",
            help=f"{RESULTS_HELP} Also bundles, and samples from `attest --disclose`.",
        ),
    ],
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="TASK", help="Your own task of the result. For a run file: FILE#KEY."),
    ] = None,
    log: Annotated[
        str | None, typer.Option("--log", metavar="LOG", help="Engine log of the result, e.g. logs/run.eval.")
    ] = None,
    rerun_scorers: Annotated[
        bool,
        typer.Option(
            "--rerun-scorers",
            help="Execute the Python scorers and metrics of --task on the stored answers.",
        ),
    ] = False,
    replay: Annotated[
        Path | None,
        typer.Option(
            "--recording",
            "--replay",
            metavar="CASSETTE",
            help="Recording of the run. Stored answers are compared with it, and judge "
            "replies are read from it.",
        ),
    ] = None,
    provenance: Annotated[
        Path | None,
        typer.Option(
            "--provenance",
            metavar="FILE",
            help="Provenance file of the result. [default: the file next to the result]",
        ),
    ] = None,
    attestation: Annotated[
        Path | None,
        typer.Option(
            "--attestation",
            metavar="FILE",
            help="Attestation file of the result. [default: the file next to the result]",
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key", metavar="FILE", help="Public key (PEM) of the required signer, e.g. me.pub.pem."
        ),
    ] = None,
    identity: Annotated[
        str | None,
        typer.Option(
            "--identity",
            metavar="NAME",
            help="Identity of the required keyless signer: an e-mail address or a workflow URL.",
        ),
    ] = None,
    issuer: Annotated[
        str | None,
        typer.Option(
            "--issuer",
            metavar="URL",
            help="Identity provider of --identity, e.g. https://accounts.google.com.",
        ),
    ] = None,
    trust_config: Annotated[
        Path | None,
        typer.Option(
            "--trust-config",
            metavar="FILE",
            help="Sigstore client trust configuration, for --identity with your own services. "
            "[default: public sigstore]",
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
    """Check results: valid log, metrics, scores, answers, checksums, engine log, signature.

    The first line is the verdict: verified, partly verified, or FAILED. Then each level is proved, failed,
    or cannot be checked, with the reason. Code inside a result is never executed; all code and templates
    come from your own task.
    """
    from aigo_bridge.cli.options import pairs
    from aigo_bridge.cli.result_arguments import named_results
    from aigo_bridge.errors import UsageError
    from aigo_trust.verification.levels import worst_exit_code
    from aigo_trust.verification.materials import Materials, identity_of
    from aigo_trust.verification.opening import verify_source

    sources = named_results(results)
    if len(sources) > 1 and (provenance is not None or attestation is not None):
        raise UsageError(
            f"--provenance and --attestation are files of one result, found {plural(len(sources), 'result')}",
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
        _show_verifications(verifications)
    if code := worst_exit_code(verifications):
        raise typer.Exit(code)


def _show_verifications(verifications: Sequence[Verification]) -> None:
    """Print each result. For several results, also print the number of each verdict."""
    for number, verification in enumerate(verifications):
        if number:
            typer.echo("")
        _show_verification(verification)
    if len(verifications) > 1:
        counts = Counter(verification.verdict for verification in verifications)
        shown = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        typer.echo(f"\n{plural(len(verifications), 'result')}: {shown}")


def _show_verification(verification: Verification) -> None:
    """Print the verdict on a result, followed by its levels."""
    typer.echo(printable(verification.summary))
    typer.echo(printable(str(short_path(verification.result))))
    for label, text in verification.facts:
        typer.echo(printable(f"  {label:<10} {text}"))
    for item in verification.levels:
        _show_level(item)
    if verification.verdict == "FAILED":
        reliable = verification.reliable or ("nothing in this file",)
        typer.echo("  you can still rely on:")
        for statement in reliable:
            typer.echo(printable(f"  {'':<10} - {statement}"))


def _show_level(item: Level) -> None:
    reason = "" if item.reason is None else f": {item.reason}"
    typer.echo(printable(f"  {item.name:<10} {_MARKS[item.verdict]}{reason}"))
    if item.verdict == "proved":
        typer.echo(printable(f"  {'':<10}   {item.title}"))
    for finding in item.findings[:_SHOWN]:
        typer.echo(printable(f"  {'':<10} - {finding}"))
    if item.num_findings > _SHOWN:
        typer.echo(f"  {'':<10} - and {item.num_findings - _SHOWN} more")
    for note in item.notes:
        typer.echo(printable(f"  {'':<10}   {note}"))
