"""sigstore's services on 127.0.0.1: a certificate authority (Fulcio), a public log (Rekor) and a log of certificates, with keys of
their own. Certificates, receipts and proofs are real ones: the library that signs and checks knows no difference but the keys.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from aigo_bridge.text.canonical_json import canonical_json
from aigo_trust.provenance.merkle import inclusion_proof, leaf_digest, tree_root

PROVIDER = "https://provider.test"
"""Who vouches for identities."""
_SECRET = "the provider's secret, which is long enough for it"  # of a test
_ISSUER, _ISSUER_V2 = (x509.ObjectIdentifier(f"1.3.6.1.4.1.57264.1.{number}") for number in (1, 8))
_SCTS = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
_BEGIN = datetime(2020, 1, 1, tzinfo=UTC)


def token(name: str = "me@example.org", *, issuer: str = PROVIDER, seconds: int = 300) -> str:
    """Return a signed identity token of a provider."""
    now = int(time.time())
    claims = {"iss": issuer, "sub": name, "aud": "sigstore", "iat": now - 10, "exp": now + seconds}
    return jwt.encode(claims, _SECRET, algorithm="HS256")


def _der(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _instance(key: ec.EllipticCurvePrivateKey, url: str) -> dict[str, Any]:
    """Return a log as a trusted root describes it."""
    return {
        "baseUrl": url,
        "hashAlgorithm": "SHA2_256",
        "publicKey": {
            "rawBytes": _base64(_der(key)),
            "keyDetails": "PKIX_ECDSA_P256_SHA_256",
            "validFor": {"start": _BEGIN.isoformat().replace("+00:00", "Z")},
        },
        "logId": {"keyId": _base64(hashlib.sha256(_der(key)).digest())},
    }


@dataclass
class Services:
    """Services with their keys."""

    url: str = ""
    authority: ec.EllipticCurvePrivateKey = field(default_factory=_new_key)
    log: ec.EllipticCurvePrivateKey = field(default_factory=_new_key)
    certificate_log: ec.EllipticCurvePrivateKey = field(default_factory=_new_key)
    entries: list[bytes] = field(default_factory=list)
    """What the public log has."""
    bearers: list[str] = field(default_factory=list)
    """Tokens that were shown to the authority."""

    def __post_init__(self) -> None:
        name = x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, "local"),
                x509.NameAttribute(NameOID.COMMON_NAME, "authority"),
            ]
        )
        self.root = (
            _certificate(name, name, self.authority.public_key(), _BEGIN, timedelta(days=36500))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(certificates=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self.authority.public_key()), critical=False
            )
            .sign(self.authority, hashes.SHA256())
        )

    def trust(self) -> dict[str, Any]:
        """Return the client trust configuration."""
        valid = {"start": _BEGIN.isoformat().replace("+00:00", "Z")}
        service = {"url": self.url, "majorApiVersion": 1, "validFor": valid, "operator": "local"}
        der = self.root.public_bytes(Encoding.DER)
        return {
            "mediaType": "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json",
            "trustedRoot": {
                "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
                "tlogs": [_instance(self.log, self.url)],
                "ctlogs": [_instance(self.certificate_log, self.url)],
                "certificateAuthorities": [
                    {
                        "subject": {"organization": "local", "commonName": "authority"},
                        "uri": self.url,
                        "certChain": {"certificates": [{"rawBytes": _base64(der)}]},
                        "validFor": valid,
                    }
                ],
            },
            "signingConfig": {
                "mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json",
                "caUrls": [service],
                "oidcUrls": [{**service, "url": PROVIDER}],
                "rekorTlogUrls": [service],
                "rekorTlogConfig": {"selector": "ANY"},
                "tsaUrls": [],
            },
        }

    def write_trust(self, file: Path) -> Path:
        """Write the client trust configuration to a file."""
        file.write_text(json.dumps(self.trust()))
        return file

    # The certificate authority

    def certificate(self, bearer: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return a ten-minute certificate for the identity of a token, with the receipt of the certificate log."""
        self.bearers.append(bearer)
        try:
            claims = jwt.decode(bearer, _SECRET, algorithms=["HS256"], audience="sigstore")
        except jwt.InvalidTokenError:
            return 401, {"code": 16, "message": "the token is of nobody that is known here"}
        asked = x509.load_pem_x509_csr(base64.b64decode(request["certificateSigningRequest"]))
        builder = self._leaf(asked.public_key(), claims)
        # The log of certificates signs one without its receipt, which is the last thing that is added.
        before = builder.sign(self.authority, hashes.SHA256())
        receipt = x509.UnrecognizedExtension(_SCTS, self._receipt(before))
        signed = builder.add_extension(receipt, critical=False).sign(self.authority, hashes.SHA256())
        chain = [certificate.public_bytes(Encoding.PEM).decode() for certificate in (signed, self.root)]
        return 200, {"signedCertificateEmbeddedSct": {"chain": {"certificates": chain}}}

    def _leaf(self, key: Any, claims: dict[str, Any]) -> x509.CertificateBuilder:
        name, issuer = claims["sub"], claims["iss"].encode()
        other = x509.UniformResourceIdentifier(name) if "://" in name else x509.RFC822Name(name)
        now = datetime.now(UTC).replace(microsecond=0)
        builder = _certificate(x509.Name([]), self.root.subject, key, now, timedelta(minutes=10))
        of_root = self.root.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        for extension, critical in (
            (_usage(certificates=False), True),
            (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), False),
            (x509.SubjectKeyIdentifier.from_public_key(key), False),
            (x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(of_root), False),
            (x509.SubjectAlternativeName([other]), True),
            (x509.UnrecognizedExtension(_ISSUER, issuer), False),
            (x509.UnrecognizedExtension(_ISSUER_V2, bytes([12, len(issuer)]) + issuer), False),
        ):
            builder = builder.add_extension(extension, critical=critical)
        return builder

    def _receipt(self, certificate: x509.Certificate) -> bytes:
        """Return a signed certificate timestamp list (RFC 6962) with one entry, as a DER octet string."""
        content = certificate.tbs_certificate_bytes
        begin = struct.pack("!BBQH", 0, 0, now := int(time.time() * 1000), 1)
        issuer = hashlib.sha256(_der(self.authority)).digest()
        signed = begin + issuer + len(content).to_bytes(3, "big") + content + b"\0\0"
        signature = self.certificate_log.sign(signed, ec.ECDSA(hashes.SHA256()))
        log = hashlib.sha256(_der(self.certificate_log)).digest()
        receipt = b"\0" + log + struct.pack("!QHBBH", now, 0, 4, 3, len(signature)) + signature
        listed = struct.pack("!HH", len(receipt) + 2, len(receipt)) + receipt
        return bytes([4, len(listed)]) + listed

    # The public log

    def enter(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the log entry of a signed envelope with its inclusion proof."""
        proposed = request["spec"]["proposedContent"]
        envelope = json.loads(proposed["envelope"])
        payload = base64.b64decode(envelope["payload"])
        body = canonical_json(
            {
                "apiVersion": "0.0.1",
                "kind": "dsse",
                "spec": {
                    "envelopeHash": _sha256(proposed["envelope"].encode()),
                    "payloadHash": _sha256(payload),
                    "signatures": [
                        {"signature": signature["sig"], "verifier": verifier}
                        for signature, verifier in zip(
                            envelope["signatures"], proposed["verifiers"], strict=True
                        )
                    ],
                },
            }
        )
        self.entries.append(body)
        return {hashlib.sha256(body).hexdigest(): self._entry(body)}

    def _entry(self, body: bytes) -> dict[str, Any]:
        leaves, place = [leaf_digest(entry) for entry in self.entries], len(self.entries) - 1
        log = hashlib.sha256(_der(self.log)).digest()
        said = {
            "body": _base64(body),
            "integratedTime": int(time.time()),
            "logID": log.hex(),
            "logIndex": place,
        }
        note = f"local - 1\n{len(leaves)}\n{_base64(tree_root(leaves))}\n"
        signed_note = _base64(log[:4] + self._signature(note.encode()))
        return {
            **said,
            "verification": {
                "signedEntryTimestamp": _base64(self._signature(canonical_json(said))),
                "inclusionProof": {
                    "checkpoint": f"{note}\n— local {signed_note}\n",
                    "hashes": [digest.hex() for digest in inclusion_proof(leaves, place)],
                    "logIndex": place,
                    "rootHash": tree_root(leaves).hex(),
                    "treeSize": len(leaves),
                },
            },
        }

    def _signature(self, content: bytes) -> bytes:
        return self.log.sign(content, ec.ECDSA(hashes.SHA256()))


def _sha256(content: bytes) -> dict[str, str]:
    return {"algorithm": "sha256", "value": hashlib.sha256(content).hexdigest()}


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: Any, begin: datetime, lasts: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + lasts)
    )


def _usage(*, certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not certificates,
        key_cert_sign=certificates,
        crl_sign=certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


@contextmanager
def running() -> Iterator[Services]:
    """Run the services inside the block."""
    services = Services()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/api/v2/signingCert":
                bearer = self.headers["Authorization"].removeprefix("Bearer ")
                status, answer = services.certificate(bearer, request)
            elif self.path == "/api/v1/log/entries":
                status, answer = 201, services.enter(request)
            else:
                status, answer = 404, {}
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        services.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield services
        finally:
            server.shutdown()
            thread.join()
