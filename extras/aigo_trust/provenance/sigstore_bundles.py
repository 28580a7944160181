"""Keyless signatures: statements signed with an identity, as standard sigstore bundles.

An identity is an account or a CI job, confirmed by its provider's token. A certificate authority (Fulcio)
issues a certificate for it that is valid for some minutes. A public log (Rekor) records the signature, so
you do not need to keep a key. A bundle contains the envelope, the certificate and the log entry. It can be
checked offline, with the keys from the `sigstore` package or from a file.
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
TOKEN = "SIGSTORE_ID_TOKEN"  # noqa: S105  # name of an environment variable
"""Environment variable with an identity token. Sigstore's own tools also read it."""
_ENVELOPE = "dsseEnvelope"
_LARGEST_CONFIG = 1 << 24
_NO_TOKEN = (
    f"a signature without a key needs an identity: {TOKEN} does not contain a token, and this is not a CI job"
    " that provides one. To get one in a browser: python -m sigstore get-identity-token"
)

Sign = Callable[[bytes], dict[str, Any]]
"""Function that signs a payload and returns a bundle."""


@dataclass(frozen=True)
class Identity:
    """Identity of the required signer."""

    name: str
    """Name in the certificate: an e-mail address or a workflow URL."""
    issuer: str
    """URL of the identity provider."""
    trust: Path | None = None
    """Trusted keys: a sigstore client trust configuration or trusted root. `None` selects the public sigstore
    services.
    """


def bundle_file(result: Path) -> Path:
    """Return the path of the sigstore bundle of a result."""
    return result.with_name(f"{stem_of(result)}{SUFFIX}")


def envelope_in(document: Any) -> Any:
    """Return the envelope of an attestation, which may be inside a sigstore bundle."""
    return document[_ENVELOPE] if is_bundle(document) else document


def is_bundle(document: Any) -> bool:
    """Return whether an attestation is a sigstore bundle."""
    return isinstance(document, Mapping) and _ENVELOPE in document


def require_sigstore() -> None:
    """Check that the optional dependency is installed.

    Raises:
        UsageError: the package is missing; the message contains the install command.
    """
    try:
        import sigstore.models
        import sigstore.verify  # noqa: F401  # checks the installation
    except ImportError as error:
        command = install_command("sigstore") or "pip install sigstore"
        raise UsageError(
            f"signatures of identities need the package sigstore: {command}", code=Code.MISSING_PACKAGE
        ) from error
    # Our own messages replace the library's log output.
    logging.getLogger("sigstore").setLevel(logging.CRITICAL)


# Signing


@contextmanager
def identity_signer(trust: Path | None) -> Iterator[Sign]:
    """Yield a function that signs statements with the identity of this process. All signatures share one
    certificate.

    Args:
        trust: client trust configuration for services other than public sigstore.

    Raises:
        UsageError: no identity is available, or the services are unreachable or reject the request.
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

    with _told("sigstore's services returned no certificate"):
        signing = SigningContext.from_trust_config(config).signer(token)
        signer = signing.__enter__()
    try:
        yield sign
    finally:
        signing.__exit__(None, None, None)


def _token() -> IdentityToken:
    """Return the identity token from the environment or from the CI job."""
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
        # No exception chaining, because the original error may quote the token.
        raise UsageError(
            f"the identity token cannot be used: {redact(str(error))}", code=Code.UNUSABLE_KEY
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
    """Raise failures of the library and of the network as `UsageError`."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001  # the library lacks a common error class
        raise UsageError(redact(f"{what}: {_reason(error)}"), code=Code.UNUSABLE_KEY) from None


def _reason(error: BaseException) -> str:
    """Return the message of an exception or of its cause, on one line."""
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
    """Return why a bundle is not signed by an identity; `None` if it is. This works offline.

    Raises:
        UsageError: the package is missing, or the trusted keys cannot be read.
    """
    require_sigstore()
    from sigstore.models import Bundle
    from sigstore.verify import Verifier, policy

    trusted = _trusted_root(identity.trust)
    try:
        with _told("the trusted keys cannot be used"):
            verifier = Verifier(trusted_root=trusted)
        expected = policy.Identity(identity=identity.name, issuer=identity.issuer)
        kind, payload = verifier.verify_dsse(Bundle.from_json(orjson.dumps(bundle)), expected)
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001  # an untrusted file may cause any error
        return f"nothing proves that {identity.name!r} has signed it: {_reason(error)}"
    if kind != PAYLOAD_TYPE or payload != payload_of(bundle[_ENVELOPE]):
        return "the signature belongs to other content"
    return None


def logged_at(bundle: Mapping[str, Any]) -> str | None:
    """Return the time when the log recorded the signature of a valid bundle; `None` if the log does not
    record times.
    """
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
