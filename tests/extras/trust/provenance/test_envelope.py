"""DSSE envelopes, compared with another library."""

from __future__ import annotations

import base64
import stat
from pathlib import Path

import pytest
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner, SSlibKey  # type: ignore[attr-defined]  # it does not list them

from aigo_bridge.errors import UsageError
from aigo_trust.provenance.envelope import (
    PASSPHRASE,
    make_key,
    payload_of,
    private_key,
    public_key,
    signature_problem,
    signed,
)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    make_key(tmp_path / "k.pem")
    return tmp_path / "k.pem"


def test_signature_is_valid_in_another_library(key: Path) -> None:
    envelope = signed(b'{"a":1}', private_key(key))
    signer = public_key(key.with_name("k.pub.pem"))
    other = SSlibKey.from_crypto(signer, keyid=envelope["signatures"][0]["keyid"])
    assert set(Envelope.from_dict(envelope).verify([other], 1)) == {other.keyid}


def test_signatures_of_another_library_are_valid(key: Path) -> None:
    signer = CryptoSigner(private_key(key))
    envelope = Envelope(b"{}", "application/vnd.in-toto+json", {})
    envelope.sign(signer)
    assert signature_problem(envelope.to_dict(), public_key(key.with_name("k.pub.pem"))) is None


def test_every_alteration_is_reported(key: Path, tmp_path: Path) -> None:
    envelope = signed(b'{"a":1}', private_key(key))
    own = public_key(key.with_name("k.pub.pem"))
    assert signature_problem(envelope, own) is None
    altered = {**envelope, "payload": base64.b64encode(b'{"a":2}').decode()}
    assert "is not valid" in str(signature_problem(altered, own))
    other = public_key(make_key(tmp_path / "other.pem"))
    assert "not signed by the key" in str(signature_problem(envelope, other))
    renamed = {**envelope, "signatures": [{**envelope["signatures"][0], "keyid": "ff"}]}
    assert signature_problem(renamed, own) is None  # key ids are only hints
    assert "none that can be read" in str(signature_problem({**envelope, "signatures": [{"sig": "?"}]}, own))
    documents: list[object] = [{}, [], {**envelope, "payloadType": "x"}, {**envelope, "payload": "?"}]
    for damaged in documents:
        with pytest.raises(ValueError, match=r"envelope|payload"):
            payload_of(damaged)


def test_private_key_is_owner_only_and_never_overwritten(key: Path) -> None:
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    content = key.read_bytes()
    with pytest.raises(UsageError, match="never overwritten"):
        make_key(key)
    assert key.read_bytes() == content


def test_unsupported_keys_are_reported(key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

    other = tmp_path / "ec.pem"
    text = (Encoding.PEM, PrivateFormat.PKCS8)
    other.write_bytes(
        generate_private_key(SECP256R1()).private_bytes(*text, BestAvailableEncryption(b"open"))
    )
    with pytest.raises(UsageError, match=PASSPHRASE):
        private_key(other)
    monkeypatch.setenv(PASSPHRASE, "open")
    with pytest.raises(UsageError, match="another type"):
        private_key(other)
    monkeypatch.setenv(PASSPHRASE, "wrong")
    with pytest.raises(UsageError, match="passphrase"):
        private_key(other)
    with pytest.raises(UsageError, match="private key"):
        public_key(key)
    with pytest.raises(UsageError, match="cannot be read"):
        public_key(tmp_path / "none.pem")
