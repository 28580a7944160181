"""DSSE envelopes signed offline with Ed25519 keys.

The envelope format is https://github.com/secure-systems-lab/dsse (v1). The signature covers the type and the
bytes of the payload, so the signer can be checked before anything is parsed. Keys are PEM files, for example
from `openssl genpkey -algorithm ed25519`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aigo_bridge.access.opening import open_regular
from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.process import install_command

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
PASSPHRASE = "AIGO_BRIDGE_KEY_PASSPHRASE"  # noqa: S105  # name of an environment variable
"""Environment variable with the passphrase of an encrypted private key."""
_LARGEST_KEY = 1 << 16


def require_cryptography() -> None:
    """Check that the optional dependency is installed.

    Raises:
        UsageError: the package is missing; the message contains the install command.
    """
    try:
        import cryptography.hazmat.primitives.asymmetric.ed25519  # noqa: F401  # checks the installation
    except ImportError as error:
        command = install_command("attest") or "pip install cryptography"
        raise UsageError(
            f"signatures need the package cryptography: {command}", code=Code.MISSING_PACKAGE
        ) from error


def encoded(payload_type: str, payload: bytes) -> bytes:
    """Return the bytes to sign (DSSE pre-authentication encoding)."""
    name = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(name), name, len(payload), payload)


def signed(payload: bytes, key: Ed25519PrivateKey) -> dict[str, Any]:
    """Return a signed envelope as plain data."""
    return {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [
            {
                "keyid": key_id(key.public_key()),
                "sig": base64.b64encode(key.sign(encoded(PAYLOAD_TYPE, payload))).decode(),
            }
        ],
    }


def payload_of(envelope: Any) -> bytes:
    """Return the payload of an envelope without checking its signature.

    Raises:
        ValueError: the value is not an envelope, or its payload is not an in-toto statement.
    """
    if not isinstance(envelope, Mapping) or not isinstance(envelope.get("signatures"), list):
        raise ValueError("not a DSSE envelope")  # noqa: TRY004  # wrong content, not a wrong argument type
    if envelope.get("payloadType") != PAYLOAD_TYPE:
        raise ValueError(f"its payload is {envelope.get('payloadType')!r:.80}, expected {PAYLOAD_TYPE!r}")
    try:
        return base64.b64decode(envelope["payload"], validate=True)
    except (KeyError, TypeError, binascii.Error, ValueError) as error:
        raise ValueError(f"its payload cannot be decoded: {error}") from error


def signature_problem(envelope: Mapping[str, Any], key: Ed25519PublicKey) -> str | None:
    """Return why no signature of an envelope matches a key; `None` if one matches.

    Raises:
        ValueError: the value is not an envelope.
    """
    from cryptography.exceptions import InvalidSignature

    content = encoded(PAYLOAD_TYPE, payload_of(envelope))
    signers: list[str] = []
    for entry in envelope["signatures"]:
        try:
            signature = base64.b64decode(entry["sig"], validate=True)
        except (KeyError, TypeError, binascii.Error, ValueError):
            continue
        # The key ID is only a hint. A valid signature belongs to the key even if its ID differs.
        signers.append(str(entry.get("keyid"))[:16])
        try:
            key.verify(signature, content)
        except InvalidSignature:
            continue
        return None
    own = key_id(key)
    if own[:16] in signers:
        return (
            f"the signature is not valid: the signed content or the signature was modified (key {own[:16]}…)"
        )
    names = ", ".join(f"{signer}…" for signer in signers) or "none that can be read"
    return f"it is not signed by the key that was given ({own[:16]}…), but by {names}"


def key_id(key: Ed25519PublicKey) -> str:
    """Return the SHA-256 of a public key (DER) in hexadecimal."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def private_key(file: Path) -> Ed25519PrivateKey:
    """Read a private key from a PEM file. The passphrase of an encrypted key is in
    `AIGO_BRIDGE_KEY_PASSPHRASE`.

    Raises:
        UsageError: the file does not contain a key of the right kind, or the passphrase is wrong.
    """
    require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    passphrase = os.environ.get(PASSPHRASE)
    try:
        key = load_pem_private_key(_content(file), None if passphrase is None else passphrase.encode())
    except TypeError as error:
        wrong = f"{str(file)!r}: the key is encrypted: set its passphrase in the variable {PASSPHRASE}"
        raise UsageError(
            wrong if passphrase is None else f"{str(file)!r}: {error}", code=Code.UNUSABLE_KEY
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UsageError(
            (f"{str(file)!r} contains no readable private key (not PEM, or a wrong passphrase)"),
            code=Code.UNUSABLE_KEY,
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(
            f"{str(file)!r} contains a key of another type, expected Ed25519", code=Code.UNUSABLE_KEY
        )
    return key


def public_key(file: Path) -> Ed25519PublicKey:
    """Read a public key from a PEM file.

    Raises:
        UsageError: the file does not contain a key of the right kind.
    """
    require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    content = _content(file)
    if b"PRIVATE KEY" in content:
        raise UsageError(
            f"{str(file)!r} contains a private key; check signatures with the public key",
            code=Code.UNUSABLE_KEY,
        )
    try:
        key = load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UsageError(
            f"{str(file)!r} contains no readable public key (PEM)", code=Code.UNUSABLE_KEY
        ) from error
    if not isinstance(key, Ed25519PublicKey):
        raise UsageError(
            f"{str(file)!r} contains a key of another type, expected Ed25519", code=Code.UNUSABLE_KEY
        )
    return key


def _content(file: Path) -> bytes:
    try:
        with open_regular(file) as content:
            return content.read(_LARGEST_KEY)
    except OSError as error:
        raise UsageError(
            f"the key cannot be read: {file}: {error.strerror or error}", code=Code.UNUSABLE_KEY
        ) from error


def make_key(file: Path) -> Path:
    """Create a key pair, and return the path of the public key. Only the owner can read the private key.

    Raises:
        UsageError: one of the files already exists.
        OSError: the files cannot be written.
    """
    require_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    public = file.with_name(f"{file.name.removesuffix('.pem')}.pub.pem")
    for path in (file, public):
        if path.exists():
            raise UsageError(
                f"{str(path)!r} already exists; keys are never overwritten", code=Code.ALREADY_THERE
            )
    key = Ed25519PrivateKey.generate()
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
        target.write(text)
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return public
