"""Statements signed by an identity with the sigstore library and local services, and verified offline."""

from __future__ import annotations

import base64
import json
import logging
import os
import runpy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run
from tests.support.results import metric, question, result, write_result
from tests.support.sigstore_services import PROVIDER, Services, running, token

from aigo_bridge.engine.provenance import ResultOrigin
from aigo_bridge.redaction.secrets import KNOWN
from aigo_trust.provenance.record import write_provenance
from aigo_trust.provenance.sigstore_bundles import TOKEN, Identity, bundle_file, identity_signer
from aigo_trust.verification.attestations import attest_with
from aigo_trust.verification.bundling import Contents, write_bundle
from aigo_trust.verification.levels import Level
from aigo_trust.verification.materials import Materials
from aigo_trust.verification.opening import verify_any

ME = "me@example.org"


@pytest.fixture(scope="module")
def services() -> Iterator[Services]:
    with running() as services:
        yield services


@pytest.fixture(scope="module")
def signed(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a signed result, another result's attestation and the trusted keys."""
    folder = tmp_path_factory.mktemp("signed")
    services.write_trust(folder / "trust.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(TOKEN, token(ME))
        with identity_signer(folder / "trust.json") as sign:
            for name, answer in (("r", "a"), ("other", "b")):
                path = made(folder / f"{name}.tasklog.json", answer)
                attest_with(sign, path, bundle_file(path))
    KNOWN.forget()
    return folder


def made(path: Path, answer: str = "a") -> Path:
    samples = [question(number, answer, answer) for number in range(3)]
    write_result(path, result(samples, [metric({"accuracy": 1.0})]))
    write_provenance(path, ResultOrigin("run", "inspect"))
    return path


@pytest.fixture
def folder(signed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the folder without access to the services."""
    shutil.copytree(signed, tmp_path / "copy")
    monkeypatch.delenv(TOKEN, raising=False)
    monkeypatch.setattr("socket.socket.connect", _nobody)
    return tmp_path / "copy"


def _nobody(*_arguments: object) -> None:
    raise AssertionError("a check asks the network")


def checked(folder: Path, name: str = ME, issuer: str = PROVIDER, file: str = "r.tasklog.json") -> Level:
    identity = Identity(name, issuer, folder / "trust.json")
    return verify_any(folder / file, Materials(identity=identity)).levels[-1]


def test_identity_is_verified_offline(folder: Path) -> None:
    level = checked(folder)
    assert level.verdict == "proved", level.findings
    assert level.notes[0].startswith(f"signed by {ME} (says {PROVIDER}), logged 20")
    unasked = verify_any(folder / "r.tasklog.json", Materials()).levels[-1]
    assert (unasked.verdict, "--identity" in str(unasked.reason)) == ("cannot be checked", True)


def test_trusted_root_alone_is_sufficient(folder: Path) -> None:
    trust = folder / "trust.json"
    trust.write_text(json.dumps(json.loads(trust.read_bytes())["trustedRoot"]))
    assert checked(folder).verdict == "proved"


@pytest.mark.parametrize(("name", "code"), [(ME, 0), ("you@example.org", 1)])
def test_sigstore_cli_verifies_the_bundle(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, code: int
) -> None:
    """Use the command from the documentation."""
    trust, bundle = folder / "trust.json", folder / "r.intoto.sigstore.json"
    command = (
        f"sigstore --trust-config {trust} verify identity --offline --bundle {bundle} --cert-identity {name}"
    )
    words = [*command.split(), "--cert-oidc-issuer", PROVIDER, str(folder / "r.tasklog.json")]
    monkeypatch.setattr("sys.argv", words)
    monkeypatch.setattr(logging.root, "handlers", [*logging.root.handlers])  # the command adds a handler
    ended: object = 0
    try:
        runpy.run_module("sigstore", run_name="__main__")
    except SystemExit as end:
        ended = end.code
    assert ended == code, capsys.readouterr().err


# Rejected bundles


def _document(folder: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    file = folder / "r.intoto.sigstore.json"
    document = json.loads(file.read_bytes())
    edit(document)
    file.write_text(json.dumps(document))


def _other(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "other.intoto.sigstore.json").read_bytes())
    return document


def _altered_statement(folder: Path) -> None:
    def edit(document: dict[str, Any]) -> None:
        envelope = document["dsseEnvelope"]
        text = base64.b64decode(envelope["payload"]).replace(b'"value":"1.0"', b'"value":"0.9"')
        envelope["payload"] = base64.b64encode(text).decode()

    _document(folder, edit)


def _no_entry(folder: Path) -> None:
    _document(folder, lambda document: document["verificationMaterial"].pop("tlogEntries"))


def _empty_entries(folder: Path) -> None:
    _document(folder, lambda document: document["verificationMaterial"].update(tlogEntries=[]))


def _entry_of_another(folder: Path) -> None:
    entries = _other(folder)["verificationMaterial"]["tlogEntries"]
    _document(folder, lambda document: document["verificationMaterial"].update(tlogEntries=entries))


def _entry_at_another_time(folder: Path) -> None:
    def edit(document: dict[str, Any]) -> None:
        (entry,) = document["verificationMaterial"]["tlogEntries"]
        entry["integratedTime"] = str(int(entry["integratedTime"]) + 60)

    _document(folder, edit)


def _no_proof(folder: Path) -> None:
    def edit(document: dict[str, Any]) -> None:
        (entry,) = document["verificationMaterial"]["tlogEntries"]
        entry["inclusionProof"]["rootHash"] = base64.b64encode(bytes(32)).decode()

    _document(folder, edit)


def _signature_of_another(folder: Path) -> None:
    signatures = _other(folder)["dsseEnvelope"]["signatures"]
    _document(folder, lambda document: document["dsseEnvelope"].update(signatures=signatures))


def _other_authority(folder: Path) -> None:
    """Replace the certificates with those of another authority."""
    trust = json.loads((folder / "trust.json").read_bytes())
    other = Services(url="http://127.0.0.1:1").trust()["trustedRoot"]
    trust["trustedRoot"]["certificateAuthorities"] = other["certificateAuthorities"]
    (folder / "trust.json").write_text(json.dumps(trust))


def _other_log(folder: Path) -> None:
    trust = json.loads((folder / "trust.json").read_bytes())
    trust["trustedRoot"]["tlogs"] = Services(url="http://127.0.0.1:1").trust()["trustedRoot"]["tlogs"]
    (folder / "trust.json").write_text(json.dumps(trust))


def _other_certificate_log(folder: Path) -> None:
    trust = json.loads((folder / "trust.json").read_bytes())
    trust["trustedRoot"]["ctlogs"] = Services(url="http://127.0.0.1:1").trust()["trustedRoot"]["ctlogs"]
    (folder / "trust.json").write_text(json.dumps(trust))


def _altered_result(folder: Path) -> None:
    file = folder / "r.tasklog.json"
    file.write_bytes(file.read_bytes().replace(b'"accuracy":1.0', b'"accuracy":0.9'))


def _attestation_of_another(folder: Path) -> None:
    (folder / "other.intoto.sigstore.json").replace(folder / "r.intoto.sigstore.json")


@pytest.mark.parametrize(
    ("alter", "said"),
    [
        (_altered_statement, "invalid signature"),
        (_no_entry, "nothing proves"),
        (_empty_entries, "log entry"),
        (_entry_of_another, "log entry"),
        (_entry_at_another_time, "inclusion promise"),
        (_no_proof, "root hash"),
        (_signature_of_another, "invalid signature"),
        (_other_authority, "certificate chain"),
        (_other_log, "invalid signature"),
        (_other_certificate_log, "SCT"),
        (_altered_result, "another digest"),
        (_attestation_of_another, "another digest"),
    ],
)
def test_altered_bundles_are_rejected(folder: Path, alter: Callable[[Path], None], said: str) -> None:
    alter(folder)
    level = checked(folder)
    assert level.verdict == "failed"
    assert said in " ".join(map(str, level.findings))
    assert "r.intoto.sigstore.json" in str(level.findings[0])


def test_another_identity_or_provider_is_rejected(folder: Path) -> None:
    (finding,) = checked(folder, name="you@example.org").findings
    assert "nothing proves that 'you@example.org' has signed it" in finding.message
    assert ME in finding.message
    (finding,) = checked(folder, issuer="https://other.test").findings
    assert PROVIDER in finding.message
    assert "https://other.test" in finding.message


def test_bundle_is_not_trusted_by_the_public_sigstore_root(folder: Path) -> None:
    """The public keys are part of the library."""
    identity = Identity(ME, PROVIDER)
    level = verify_any(folder / "r.tasklog.json", Materials(identity=identity)).levels[-1]
    assert level.verdict == "failed"
    assert "certificate chain" in level.findings[0].message


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"signingConfig": 1}', '{"mediaType": "x"}', "\udcff"])
def test_invalid_keys_are_reported(folder: Path, aigo: Run, content: str) -> None:
    (folder / "trust.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    done = aigo(
        "verify", folder / "r.tasklog.json", "--identity", ME, "--issuer", PROVIDER,
        "--trust-config", folder / "trust.json",
    )  # fmt: skip
    assert done.code == 2, done.out
    assert "trust.json' is neither" in done.err


# With bundles and disclosed samples


def test_bundle_and_disclosed_sample_are_verified_independently(folder: Path, aigo: Run) -> None:
    write_bundle(Contents(folder / "r.tasklog.json", Materials()), folder / "b.zip")
    assert checked(folder, file="b.zip").verdict == "proved"
    assert checked(folder, file="b.zip", name="you@example.org").verdict == "failed"
    done = aigo(
        "attest", folder / "r.tasklog.json", "--keyless", "--disclose", "1", "-o", folder / "one.json"
    )
    assert done.code == 0, done.err
    assert checked(folder, file="one.json").verdict == "proved"
    assert checked(folder, file="one.json", name="you@example.org").verdict == "failed"
    (folder / "one.json").write_text((folder / "one.json").read_text().replace("Question 1", "Question 7"))
    assert "was altered" in str(checked(folder, file="one.json").findings)


def test_result_can_be_signed_with_key_and_identity(folder: Path, aigo: Run) -> None:
    assert aigo("attest", folder / "r.tasklog.json", "--new-key", folder / "k.pem").code == 0
    both = ("--key", folder / "k.pub.pem", "--identity", ME, "--issuer", PROVIDER, "--trust-config")
    done = aigo("verify", folder / "r.tasklog.json", *both, folder / "trust.json")
    assert "signed by key" in done.out
    assert f"signed by {ME}" in done.out
    done = aigo("verify", folder / "r.tasklog.json", "--key", folder / "k.pub.pem")
    assert "signature  proved" in done.out
    assert "r.intoto.sigstore.json: no identity was given" in done.out
    _altered_statement(folder)
    done = aigo("verify", folder / "r.tasklog.json", "--key", folder / "k.pub.pem")
    assert "signature  FAILED" in done.out
    assert done.code == 1


# Signing


@pytest.fixture
def asking(services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder with an unsigned result and the service configuration, outside of CI."""
    for name in [*os.environ]:
        if name.startswith(("GITHUB_", "ACTIONS_", "GITLAB", "BUILDKITE", "CIRCLE", "SIGSTORE_")):
            monkeypatch.delenv(name)
    services.write_trust(tmp_path / "trust.json")
    made(tmp_path / "r.tasklog.json")
    yield tmp_path
    KNOWN.forget()


def test_attest_signs_without_storing_the_token(
    asking: Path, services: Services, aigo: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = token("https://forge.test/workflow@main")
    monkeypatch.setenv(TOKEN, secret)
    done = aigo("attest", "r.tasklog.json", "--keyless", "--trust-config", "trust.json")
    assert done.code == 0, done.err
    assert done.out.split() == ["attestation", "r.intoto.sigstore.json"]
    assert services.bearers[-1] == secret
    written = b"".join(file.read_bytes() for file in asking.iterdir())
    assert secret.encode() not in written + (done.out + done.err).encode()
    monkeypatch.delenv(TOKEN)
    asked = ("--identity", "https://forge.test/workflow@main", "--issuer", PROVIDER)
    assert "signature  proved" in aigo("verify", "r.tasklog.json", *asked, "--trust-config", "trust.json").out


@pytest.mark.parametrize(
    ("bearer", "said"),
    [
        (lambda: None, "SIGSTORE_ID_TOKEN does not contain a token"),
        (lambda: "not.a.token-0123456789", "the identity token cannot be used"),
        (lambda: token(seconds=-60), "the identity token cannot be used"),
        (lambda: f"{token()[:-20]}{'A' * 20}", "sigstore's services returned no certificate: 401"),
    ],
    ids=["none", "malformed", "expired", "refused"],
)
def test_attest_without_an_identity_writes_no_bundle(
    asking: Path, aigo: Run, monkeypatch: pytest.MonkeyPatch, bearer: Callable[[], str | None], said: str
) -> None:
    # Create the token late: it is valid for five minutes, and earlier tests may take longer.
    if (secret := bearer()) is not None:
        monkeypatch.setenv(TOKEN, secret)
    done = aigo("attest", "r.tasklog.json", "--keyless", "--trust-config", "trust.json")
    assert done.code == 2
    assert said in " ".join(done.err.split())
    assert secret is None or secret not in done.err
    assert not bundle_file(asking / "r.tasklog.json").exists()


def test_unreachable_services_are_reported(asking: Path, aigo: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, token())
    (asking / "trust.json").write_text(json.dumps(Services(url="http://127.0.0.1:9").trust()))
    done = aigo("attest", "r.tasklog.json", "--keyless", "--trust-config", "trust.json")
    assert done.code == 2
    assert "returned no certificate" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("attest", "r.tasklog.json", "--keyless", "--key", "k.pem"), "without a key"),
        (("attest", "r.tasklog.json", "--trust-config", "trust.json", "--key", "k.pem"), "is for --keyless"),
        (("attest", "r.tasklog.json", "--keyless", "--out", "o.json"), "--out: only with --disclose"),
        (("verify", "r.tasklog.json", "--identity", ME), "--identity and --issuer go together"),
        (("verify", "r.tasklog.json", "--issuer", PROVIDER), "--identity and --issuer go together"),
        (("verify", "r.tasklog.json", "--trust-config", "trust.json"), "is for signatures of an identity"),
    ],
)
def test_invalid_attest_arguments_exit_with_2(
    asking: Path, aigo: Run, arguments: tuple[str, ...], said: str
) -> None:
    done = aigo(*arguments)
    assert done.code == 2
    assert said in " ".join(done.err.split())
