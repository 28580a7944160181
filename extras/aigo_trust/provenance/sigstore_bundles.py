"""Statements signed by an identity instead of a key: standard sigstore bundles.

An identity (an account, a job in CI) is vouched for by its provider's token. A certificate authority (Fulcio)
issues a certificate of some minutes for it, and a public log (Rekor) has an entry of the signature, so that
nobody has to keep a key. A bundle holds envelope, certificate and entry: it is checked without a network,
against keys that come with the package `sigstore`, or that a file names.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from aigo_bridge.access.opening import open_regular
from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.process import install_command
from aigo_bridge.redaction.secrets import learn_arguments, redact
from aigo_bridge.text.json_text import read_json
from aigo_trust.provenance.envelope import PAYLOAD_TYPE, payload_of
from aigo_trust.provenance.record import stem_of

if TYPE_CHECKING:
    from sigstore.models import ClientTrustConfig, TrustedRoot
    from sigstore.oidc import IdentityToken

SUFFIX = ".intoto.sigstore.json"
TOKEN = "SIGSTORE_ID_TOKEN"  # noqa: S105  # the name of a variable
"""Variable with an identity token, which sigstore's own tools read, too."""
_ENVELOPE = "dsseEnvelope"
_LARGEST_CONFIG = 1 << 24
_NO_TOKEN = (
    f"a signature without a key needs an identity: there is no token in {TOKEN}, and no job in CI that gives"
    " one. To get one in a browser: python -m sigstore get-identity-token"
)

Sign = Callable[[bytes], dict[str, Any]]
"""Payload → bundle."""


@dataclass(frozen=True)
class Identity:
    """Who has to have signed."""

    name: str
    """As the certificate has it: an e-mail address, or the address of a workflow."""
    issuer: str
    """Address of the provider that vouches for it."""
    trust: Path | None = None
    """Keys of the services that are trusted (a client trust configuration or a trusted root of sigstore);
    `None`: those of sigstore's public services.
    """


def bundle_file(result: Path) -> Path:
    """The file of the sigstore bundle beside a result."""
    return result.with_name(f"{stem_of(result)}{SUFFIX}")


def envelope_in(document: Any) -> Any:
    """The envelope of an attestation: the document itself, or what a sigstore bundle holds."""
    return document[_ENVELOPE] if is_bundle(document) else document


def is_bundle(document: Any) -> bool:
    """Whether an attestation is a sigstore bundle."""
    return isinstance(document, Mapping) and _ENVELOPE in document


def require_sigstore() -> None:
    """Refuse to go on where the extra is missing.

    Raises:
        UsageError: it is; the message has the command.
    """
    try:
        import sigstore.models
        import sigstore.verify  # noqa: F401  # whether they are there
    except ImportError as error:
        command = install_command("sigstore") or "pip install sigstore"
        raise UsageError(
            f"signatures of identities need the package sigstore: {command}", code=Code.MISSING_PACKAGE
        ) from error
    # What it has to say is said here.
    logging.getLogger("sigstore").setLevel(logging.CRITICAL)


# Signing


@contextmanager
def identity_signer(trust: Path | None) -> Iterator[Sign]:
    """Signs statements by the identity of this process; all of them with one certificate.

    Args:
        trust: client trust configuration of other services than sigstore's public ones.

    Raises:
        UsageError: there is no identity, or the services cannot be reached or refuse.
    """
    require_sigstore()
    from sigstore.dsse import Statement
    from sigstore.sign import SigningContext

    token = _token()
    config = _services(trust)

    def sign(payload: bytes) -> dict[str, Any]:
        with _told("sigstore's services did not sign"):
            bundle = signer.sign_dsse(Statement(payload))
        document: dict[str, Any] = orjson.loads(bundle.to_json())
        return document

    with _told("sigstore's services gave no certificate"):
        signing = SigningContext.from_trust_config(config).signer(token)
        signer = signing.__enter__()
    try:
        yield sign
    finally:
        signing.__exit__(None, None, None)


def _token() -> IdentityToken:
    """The identity of this process: of its environment, or of its job in CI."""
    from sigstore.oidc import IdentityError, IdentityToken, detect_credential

    try:
        raw = os.environ.get(TOKEN) or detect_credential()
    except IdentityError as error:
        raise UsageError(
            f"the CI job provides no identity: {redact(str(error))}", code=Code.UNUSABLE_KEY
        ) from None
    if not raw:
        raise UsageError(_NO_TOKEN, code=Code.UNUSABLE_KEY)
    learn_arguments({"token": raw})
    try:
        return IdentityToken(raw.strip())
    except IdentityError as error:
        # Without its origin, which may quote the token.
        raise UsageError(
            f"the identity token is of no use: {redact(str(error))}", code=Code.UNUSABLE_KEY
        ) from None


def _services(trust: Path | None) -> ClientTrustConfig:
    from sigstore.models import ClientTrustConfig

    if trust is not None:
        content = _content(trust)
        with _told(f"{str(trust)!r} is not a sigstore client trust configuration"):
            return ClientTrustConfig.from_json(content.decode())
    with _told("sigstore's public services cannot be reached (others: --trust-config FILE)"):
        return ClientTrustConfig.production()


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Failures of the library and of the network as wrong use."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001  # the library's classes have no common base
        raise UsageError(redact(f"{what}: {_reason(error)}"), code=Code.UNUSABLE_KEY) from None


def _reason(error: BaseException) -> str:
    """What an exception says, or else the one that it came from; on one line."""
    text = " ".join(str(error).split())
    if not text and error.__cause__ is not None:
        return _reason(error.__cause__)
    return f"{text:.300}" if text else type(error).__name__


def _content(file: Path) -> bytes:
    try:
        with open_regular(file) as content:
            return content.read(_LARGEST_CONFIG)
    except OSError as error:
        raise UsageError(
            f"--trust-config: {str(file)!r} cannot be read: {error.strerror or error}",
            code=Code.UNREADABLE_FILE,
        ) from error


# Checking


def identity_problem(bundle: Mapping[str, Any], identity: Identity) -> str | None:
    """Why a bundle is not signed by an identity; `None`: it is. No network is used.

    Raises:
        UsageError: the package is missing, or the trusted keys cannot be read.
    """
    require_sigstore()
    from sigstore.models import Bundle
    from sigstore.verify import Verifier, policy

    trusted = _trusted_root(identity.trust)
    try:
        with _told("the trusted keys are of no use"):
            verifier = Verifier(trusted_root=trusted)
        expected = policy.Identity(identity=identity.name, issuer=identity.issuer)
        kind, payload = verifier.verify_dsse(Bundle.from_json(orjson.dumps(bundle)), expected)
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001  # a stranger's file: whatever is wrong, it proves nothing
        return f"nothing proves that {identity.name!r} has signed it: {_reason(error)}"
    if kind != PAYLOAD_TYPE or payload != payload_of(bundle[_ENVELOPE]):
        return "the signature is of something else"
    return None


def logged_at(bundle: Mapping[str, Any]) -> str | None:
    """When the log of a bundle that holds took the signature in; `None`: its log tells no times."""
    try:
        (entry,) = bundle["verificationMaterial"]["tlogEntries"]
        time = datetime.fromtimestamp(int(entry["integratedTime"]), UTC)
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")


def _trusted_root(trust: Path | None) -> TrustedRoot:
    from sigstore.models import ClientTrustConfig, TrustedRoot

    if trust is None:
        with _told("the keys of sigstore's public services cannot be read"):
            return ClientTrustConfig.production(offline=True).trusted_root
    content = _content(trust)
    with _told(f"{str(trust)!r} is neither a client trust configuration nor a trusted root of sigstore"):
        if "signingConfig" in read_json(content):
            return ClientTrustConfig.from_json(content.decode()).trusted_root
        return TrustedRoot.from_file(str(trust))
