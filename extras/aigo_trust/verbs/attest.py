"""`aigo-bridge attest`: signs a statement of a result, and writes the proof of one sample."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.options import VERB, JsonOption, verb_command
from aigo_bridge.cli.terminal import print_json, printable, short_path
from aigo_bridge.codes import Code

app = typer.Typer(**VERB)


@app.command(
    "attest",
    cls=verb_command(
        "aigo-bridge attest --new-key me.pem",
        "aigo-bridge attest out/capitals.tasklog.json --key me.pem",
        "aigo-bridge attest out/capitals.tasklog.json --disclose 3",
        exit_codes={
            "0": "done",
            "2": "wrong arguments, an invalid key, or no signed result to disclose from",
        },
        panels={"Keyless": ("keyless", "trust_config"), "Single samples": ("disclose", "out")},
    ),
)
def attest(
    results: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RESULT…", help="Result logs (.tasklog.json, also .gz and .zst)."),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option("--key", metavar="FILE", help="Private Ed25519 key (PEM) to sign with, e.g. me.pem."),
    ] = None,
    new_key: Annotated[
        Path | None,
        typer.Option(
            "--new-key",
            metavar="FILE",
            help="Create a key pair: the private key me.pem and the public key me.pub.pem.",
        ),
    ] = None,
    keyless: Annotated[
        bool,
        typer.Option(
            "--keyless",
            help="Sign with an identity through sigstore. This needs network access and "
            "writes to a public log.",
        ),
    ] = False,
    trust_config: Annotated[
        Path | None,
        typer.Option(
            "--trust-config",
            metavar="FILE",
            help="Sigstore client trust configuration, for --keyless with your own services. "
            "[default: public sigstore]",
        ),
    ] = None,
    disclose: Annotated[
        str | None,
        typer.Option(
            "--disclose",
            metavar="ID",
            help="Write one sample with the proof that it belongs to the signed result, "
            "without other samples.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="File for --disclose. [default: next to the result]"
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Sign a result: write an in-toto statement in a DSSE envelope, `<name>.intoto.json`, next to it.

    The signature covers the result file, its metrics, its provenance and all samples (as a Merkle tree).
    Check it with `verify --key`, or with in-toto and DSSE tools.

    With --keyless, the command writes a sigstore bundle, `<name>.intoto.sigstore.json`. The identity comes
    from SIGSTORE_ID_TOKEN or from the CI job. Check it with `verify --identity --issuer`.
    """
    from aigo_bridge.errors import UsageError
    from aigo_trust.provenance.envelope import make_key
    from aigo_trust.verification.attestations import disclose_sample

    written: list[dict[str, str]] = []
    if new_key is not None:
        public = make_key(new_key)
        written.append({"key": str(new_key), "public_key": str(public)})
    if disclose is not None:
        if key is not None or trust_config is not None or not results or len(results) != 1:
            raise UsageError("--disclose accepts one attested result and no key", code=Code.OPTIONS_APART)
        file = disclose_sample(results[0], disclose, out, keyless=keyless)
        written.append({"result": str(results[0]), "disclosure": str(file)})
    elif results:
        if out is not None:
            raise UsageError(
                "--out: only with --disclose; an attestation is written next to its result",
                code=Code.OPTIONS_APART,
            )
        if trust_config is not None and not keyless:
            raise UsageError(
                "--trust-config is for --keyless: a key needs no services", code=Code.OPTIONS_APART
            )
        signing = key or new_key
        written += _by_identity(results, signing, trust_config) if keyless else _by_key(results, signing)
    elif new_key is None:
        raise UsageError("name the results to attest, or --new-key FILE", code=Code.MISSING_ARGUMENT)
    if as_json:
        print_json(written)
        return
    for entry in written:
        for what, file_name in entry.items():
            if what != "result":
                typer.echo(printable(f"{what.replace('_', ' '):<12}{short_path(Path(file_name))}"))


def _by_key(results: list[Path], key: Path | None) -> list[dict[str, str]]:
    from aigo_bridge.errors import UsageError
    from aigo_trust.provenance.envelope import private_key
    from aigo_trust.verification.attestations import attest_result

    if key is None:
        raise UsageError(
            "a signature needs a key, --key FILE, or --new-key FILE for a new one; or an identity: --keyless",
            code=Code.UNUSABLE_KEY,
        )
    signer = private_key(key)
    return [{"result": str(result), "attestation": str(attest_result(result, signer))} for result in results]


def _by_identity(results: list[Path], key: Path | None, trust: Path | None) -> list[dict[str, str]]:
    from aigo_bridge.errors import UsageError
    from aigo_trust.provenance.sigstore_bundles import bundle_file, identity_signer
    from aigo_trust.verification.attestations import attest_with

    if key is not None:
        raise UsageError(
            "--keyless signs without a key: attest once more with --key for both signatures",
            code=Code.OPTIONS_APART,
        )
    with identity_signer(trust) as sign:
        return [
            {"result": str(result), "attestation": str(attest_with(sign, result, bundle_file(result)))}
            for result in results
        ]
