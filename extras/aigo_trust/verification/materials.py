"""Materials for verifying a result: files, and the required signer of the attestation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_trust.provenance.envelope import key_id, public_key, signature_problem
from aigo_trust.provenance.sigstore_bundles import Identity, identity_problem, is_bundle, logged_at

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


NO_KEY = "no public key was given (--key): without it, the signer is unknown"
NO_IDENTITY = "no identity was given (--identity, --issuer): without it, the signer is unknown"


@dataclass(frozen=True)
class Signer:
    """Required key or identity."""

    key: Ed25519PublicKey | None
    identity: Identity | None

    @property
    def is_anyone(self) -> bool:
        """Whether neither a key nor an identity is required."""
        return self.key is None and self.identity is None

    def lacking(self, documents: Sequence[Any]) -> str | None:
        """Return why a required signature is missing from the attestations; `None` if all are present."""
        are_bundles = [is_bundle(document) for document in documents]
        if self.key is not None and False not in are_bundles:
            return "--key requires an attestation signed by a key, and none was found"
        if self.identity is not None and True not in are_bundles:
            return "--identity requires an attestation signed by an identity, and none was found"
        return None

    def missing(self, document: Any) -> str | None:
        """Return why a signature cannot be checked; `None` if it can."""
        if is_bundle(document):
            return NO_IDENTITY if self.identity is None else None
        return NO_KEY if self.key is None else None

    def problem(self, document: Any) -> str | None:
        """Return why a signature does not belong to the signer; `None` if it does.

        Raises:
            ValueError: the document is not an attestation.
            UsageError: the required package is missing, or the trusted keys cannot be read.
        """
        if is_bundle(document):
            assert self.identity is not None
            return identity_problem(document, self.identity)
        assert self.key is not None
        return signature_problem(document, self.key)

    def note(self, document: Any) -> str:
        """Return a note that names the signer of a valid signature."""
        if self.identity is not None and is_bundle(document):
            time = logged_at(document)
            when = "" if time is None else f", logged {time}"
            return f"signed by {self.identity.name} (says {self.identity.issuer}){when}"
        assert self.key is not None
        return f"signed by key {key_id(self.key)[:16]}…"


def signer_of(key: Path | None, identity: Identity | None) -> Signer:
    """Return the signer for the given options.

    Raises:
        UsageError: the key cannot be read.
    """
    return Signer(None if key is None else public_key(key), identity)


def identity_of(name: str | None, issuer: str | None, trust: Path | None) -> Identity | None:
    """Return the identity for the given options.

    Raises:
        UsageError: a required option is missing.
    """
    if name is None and issuer is None:
        if trust is not None:
            raise UsageError(
                "--trust-config is for signatures of an identity: name it with --identity and --issuer",
                code=Code.OPTIONS_APART,
            )
        return None
    if not name or not issuer:
        raise UsageError(
            "--identity and --issuer go together: another provider can give the same name to someone else",
            code=Code.OPTIONS_APART,
        )
    return Identity(name, issuer, trust)


@dataclass(frozen=True)
class Materials:
    """Files and options for verifying a result."""

    task: str | None = None
    """User's own task, as for `run`."""
    datasets: Mapping[str, str] = field(default_factory=dict)
    """Replacement file for each dataset key."""
    root: str | None = None
    log: str | None = None
    """Engine log."""
    rerun_scorers: bool = False
    """Whether to run the task's scorers on the stored outputs."""
    replay: Path | None = None
    """Cassette of the run."""
    provenance: Path | None = None
    """Provenance file; `None` for the file next to the result, if it exists."""
    attestation: Path | None = None
    """Attestation file; `None` for the file next to the result, if it exists."""
    key: Path | None = None
    """Public key of the required signer."""
    identity: Identity | None = None
    """Identity of the required keyless signer."""

    @property
    def signer(self) -> Signer:
        """Required signer.

        Raises:
            UsageError: the key cannot be read.
        """
        return signer_of(self.key, self.identity)
