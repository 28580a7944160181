"""Members compressed with zstd as whole frames, as streams and in several frames, and invalid members."""

import zlib
from collections.abc import Callable

import pytest
import zstandard
from tests.support.inspect_logs import malformed

from aigo_bridge.errors import EvidenceError
from aigo_bridge.redaction.rules import redaction
from aigo_inspect.logs.archive import Archive
from aigo_inspect.logs.parsing import parse_json
from aigo_inspect.logs.sources import BytesSource
from aigo_inspect.logs.zip_members import ZSTD

TEXT = b'{"id": 1, "text": "' + b"abc " * 5000 + b'"}'


def streamed(data: bytes) -> bytes:
    """Compress as Inspect does: the frame does not contain its size."""
    packer = zstandard.ZstdCompressor().compressobj()
    return packer.compress(data) + packer.flush()


def framed(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def read(packed: bytes, size: int = len(TEXT), crc: int = zlib.crc32(TEXT)) -> bytes:
    archive = malformed.single(b"samples/1_epoch_1.json", packed, size, method=ZSTD, crc=crc)
    return Archive(BytesSource(archive)).read("samples/1_epoch_1.json")


@pytest.mark.parametrize(
    "packed",
    [
        streamed(TEXT),
        framed(TEXT),
        framed(TEXT[:777]) + framed(TEXT[777:]),
        streamed(TEXT[:777]) + framed(TEXT[777:]) + streamed(b""),
        framed(b"") + framed(TEXT),
    ],
    ids=["stream", "frame", "frames", "mixed", "empty frame first"],
)
def test_every_zstd_frame_layout_is_read(packed: bytes) -> None:
    assert read(packed) == TEXT


def test_an_empty_member_is_empty() -> None:
    assert read(framed(b""), 0, 0) == read(streamed(b""), 0, 0) == b""


@pytest.mark.parametrize("pack", [streamed, framed])
@pytest.mark.parametrize(
    ("packed", "size", "reason"),
    [
        (lambda whole: whole[:-9], len(TEXT), "is damaged"),
        (lambda whole: whole + b"junk", len(TEXT), "is damaged"),
        (lambda whole: b"junk" + whole, len(TEXT), "is damaged"),
        (lambda whole: whole, len(TEXT) - 1, "more than the"),
        (lambda whole: whole, len(TEXT) + 1, "is damaged"),
        (lambda whole: whole + whole, len(TEXT), "more than the"),
        (lambda whole: b"", len(TEXT), "is damaged"),
    ],
    ids=["cut off", "junk behind", "junk in front", "too long", "too short", "twice", "nothing"],
)
def test_invalid_members_are_reported(
    pack: Callable[[bytes], bytes], packed: Callable[[bytes], bytes], size: int, reason: str
) -> None:
    with pytest.raises(EvidenceError, match=reason):
        read(packed(pack(TEXT)), size)


def test_secrets_are_found_in_every_readable_member() -> None:
    """The search needs UTF-8, which only the fast parser guarantees."""
    secret = "sk-abcdefghijklmnopqrstuvwxyz012345"
    for document in (
        f'{{"a": "{secret}"}}'.encode(),
        f'{{"a": "é {secret}"}}'.encode(),
        f'{{"a": "{secret}", "b": NaN}}'.encode(),
        f'{{"a": "{secret} '.encode() + b'\xff"}',
        f'{{"a": "\\ud800 {secret}"}}'.encode(),
        f'\ufeff{{"a": "{secret}"}}'.encode(),
    ):
        found = redaction(environment={})
        parsed = parse_json(document, "it", found)
        assert secret not in str(parsed.value)
        assert "[redacted: openai or anthropic key]" in parsed.value["a"]
        assert sum(found.found.values()) == 1
    with pytest.raises(EvidenceError, match="not valid JSON"):
        parse_json(f'{{"a": "{secret}"'.encode(), "it", redaction(environment={}))
