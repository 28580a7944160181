"""Who has to have signed an attestation: whoever holds a key, or an identity that sigstore vouches for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.provenance.envelope import key_id, public_key, signature_problem
from aigo_bridge.provenance.sigstore_bundles import Identity, identity_problem, is_bundle, logged_at

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

NO_KEY = "no public key was given (--key): whose signature it is cannot be told without"
NO_IDENTITY = "no identity was given (--identity, --issuer): whose signature it is cannot be told without"


@dataclass(frozen=True)
class Signer:
    """Whose signature is asked for; of neither, nobody's."""

    key: Ed25519PublicKey | None
    identity: Identity | None

    @property
    def is_anyone(self) -> bool:
        """Whether neither a key nor an identity is asked for."""
        return self.key is None and self.identity is None

    def lacking(self, documents: Sequence[Any]) -> str | None:
        """Why a signature that is asked for is not among attestations; `None`: each is."""
        are_bundles = [is_bundle(document) for document in documents]
        if self.key is not None and False not in are_bundles:
            return "an attestation signed by a key was not found, and --key asks for one"
        if self.identity is not None and True not in are_bundles:
            return "an attestation signed by an identity was not found, and --identity asks for one"
        return None

    def missing(self, document: Any) -> str | None:
        """Why a signature cannot be checked; `None`: it can."""
        if is_bundle(document):
            return NO_IDENTITY if self.identity is None else None
        return NO_KEY if self.key is None else None

    def problem(self, document: Any) -> str | None:
        """Why a signature is not the signer's; `None`: it is.

        Raises:
            ValueError: the document is no attestation.
            UsageError: the package that checks it is missing, or the keys that are trusted cannot be read.
        """
        if is_bundle(document):
            assert self.identity is not None
            return identity_problem(document, self.identity)
        assert self.key is not None
        return signature_problem(document, self.key)

    def note(self, document: Any) -> str:
        """Whose signature it is that holds."""
        if self.identity is not None and is_bundle(document):
            time = logged_at(document)
            when = "" if time is None else f", logged {time}"
            return f"signed by {self.identity.name} (says {self.identity.issuer}){when}"
        assert self.key is not None
        return f"signed by key {key_id(self.key)[:16]}…"


def signer_of(key: Path | None, identity: Identity | None) -> Signer:
    """The signer that options name.

    Raises:
        UsageError: the key cannot be read.
    """
    return Signer(None if key is None else public_key(key), identity)


def identity_of(name: str | None, issuer: str | None, trust: Path | None) -> Identity | None:
    """The identity that options name.

    Raises:
        UsageError: one of them is missing.
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
            "--identity and --issuer go together: anybody can be of that name at another provider",
            code=Code.OPTIONS_APART,
        )
    return Identity(name, issuer, trust)
