"""Malformed, damaged and hostile logs, made from a real one."""

import bz2
import gzip
import io
import json
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import zstandard

Parts = dict[str, bytes]


def zipped(parts: Parts) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def single(name: bytes, packed: bytes, size: int, *, method: int = 8, crc: int = 0) -> bytes:
    """Return an archive with one member that has arbitrary metadata."""
    local = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, method, 0, 0, crc, len(packed), size, len(name), 0)
    central = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 20, 20, 0, method, 0, 0, crc, len(packed), size, len(name), 0, 0, 0, 0, 0, 0)  # fmt: skip
    body = local + name + packed
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, len(central) + len(name), len(body), 0)
    return body + central + name + end


def deflated(data: bytes, times: int = 1) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return b"".join(packer.compress(data) for _ in range(times)) + packer.flush()


def whole(data: bytes, name: bytes = b"samples/1_epoch_1.json") -> bytes:
    return single(name, deflated(data), len(data), crc=zlib.crc32(data))


def bombs() -> dict[str, bytes]:
    """Return files of at most a megabyte that expand to hundreds of megabytes or gigabytes."""
    packed, name = deflated(bytes(1 << 20), 300), b"samples/1_epoch_1.json"
    streamed = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 8, 8, 0, 0, 0, 0, 0, len(name), 0) + name + packed
    frames = zstandard.compress(bytes(300 << 20))
    attachment = {"id": 1, "epoch": 1, "events": [{"event": "info", "data": ["attachment://" + "a" * 32] * 999}] * 50, "attachments": {"a" * 32: "x" * 1_000_000}}  # fmt: skip
    call = {"event": "model", "input": [], "input_refs": [[0, 1000]] * 1000}
    pool = {"id": 1, "epoch": 1, "events": [call] * 200, "events_data": {"messages": [{"role": "user", "content": "x"}] * 1000}}  # fmt: skip
    return {
        "claims a gigabyte": single(name, packed, 300 << 20),
        "a header of a gigabyte": single(b"header.json", packed, 300 << 20),
        "claims little": single(name, packed, 1000),
        "claims nothing": streamed,
        "zstd": single(name, frames, 300 << 20, method=93),
        "zstd that claims little": single(name, frames, 1000, method=93),
        "millions of events": whole(b'{"id":1,"epoch":1,"events":[' + b"{}," * (10 << 20) + b"{}]}"),
        "millions of lists": whole(b'{"id":1,"epoch":1,"messages":[' + b"[]," * (10 << 20) + b"[]]}"),
        "an attachment again and again": zipped({name.decode(): json.dumps(attachment).encode()}),
        "a pool again and again": zipped({name.decode(): json.dumps(pool).encode()}),
        "brackets": b'{"eval": {"task": "x"}, "samples": [' + b"[]" * 500_000,
        "open brackets": b'{"eval": {"task": "x"}, "samples": [' + b"{" * 1_000_000,
        "an open text": b'{"eval": {"task": "x"}, "samples": ["' + b"x" * 1_000_000,
        "local headers only": b"PK\x03\x04" * 100_000,
        "central headers only": b"PK\x01\x02" * 100_000,
        "ends only": b"PK\x05\x06" * 100_000,
    }


def broken(parts: Parts) -> dict[str, bytes]:
    """Return damaged files: truncated, overwritten, compressed, or of another type."""
    good = zipped(parts)
    found = {f"cut at {share}": good[: int(len(good) * share)] for share in (0.01, 0.1, 0.3, 0.6, 0.9, 0.99)}
    found |= {
        "without its last byte": good[:-1],
        "without its end": good[:-22],
        "without its start": good[500:],
    }
    found |= {"with bytes in front": b"garbage" * 99 + good, "with bytes behind": good + bytes(70_000)}
    found |= {"twice": good + good, "empty": b"", "one byte": b"P", "an empty zip": zipped({})}
    found |= {"gzip": gzip.compress(good), "bzip2": bz2.compress(good), "zstd": zstandard.compress(good)}
    found |= {"a page": b"<html>404</html>" * 99, "zeros": bytes(1 << 16)}
    names = {"x/": b"", "samples/": b"", "../../evil.json": b"{}", "samples/../../x_epoch_1.json": b"{}"}
    found["folders and climbing names"] = zipped({**parts, **names})
    buffer = io.BytesIO(good)
    with zipfile.ZipFile(buffer, "a") as archive:
        link = zipfile.ZipInfo("samples/link_epoch_1.json")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    found["a symbolic link"] = buffer.getvalue()
    end = good.rindex(b"PK\x05\x06")
    for name, at, value in (
        ("a directory of billions of bytes", end + 12, b"\xfe\xff\xff\xff"),
        ("a directory behind the file", end + 16, b"\xfe\xff\xff\xff"),
        ("a count that is wrong", end + 10, b"\xff\xff"),
        ("an encrypted member", good.index(b"PK\x03\x04") + 6, b"\x01"),
    ):
        found[name] = good[:at] + value + good[at + len(value) :]
    for seed in range(5):
        generator = random.Random(seed)
        flipped = bytearray(good)
        for _ in range(20):
            flipped[generator.randrange(len(good))] = generator.randrange(256)
        found[f"flipped bytes {seed}"] = bytes(flipped)
    no_header = {name: data for name, data in parts.items() if name != "header.json"}
    found |= {
        "no header": zipped(no_header),
        "nothing but a header": zipped({"header.json": parts["header.json"]}),
    }
    no_journal = {name: data for name, data in no_header.items() if not name.startswith("_journal")}
    found["neither header nor journal"] = zipped(no_journal)
    for name, text in {
        "an empty header": b"",
        "a header that is a list": b"[]",
        "half a header": b'{"eval":',
    }.items():
        found[name] = zipped({**parts, "header.json": text})
    return found


def odd_documents(parts: Parts) -> dict[str, bytes]:
    """Return `.json` files that are almost logs."""
    samples = [json.loads(data) for name, data in parts.items() if name.startswith("samples/")]
    header = json.loads(parts["header.json"])
    text = json.dumps({**header, "samples": samples}, indent=2).encode()
    found = {
        f"json cut at {share}": text[: int(len(text) * share)] for share in (0.001, 0.01, 0.3, 0.9, 0.999)
    }
    found |= {"json in UTF-16": text.decode().encode("utf-16"), "json behind a mark": b"\xef\xbb\xbf" + text}
    found |= {"json and more": text + b"xxx", "json twice": text + text, "json in a list": b"[" + text + b"]"}
    found["json with a comma too many"] = text.replace(b'"epoch": 1,', b'"epoch": 1,,', 1)
    odd: dict[str, Any] = {"an object": {"a": 1}, "nothing": None, "anything": [1, None, "x", [], {}]}
    for name, samples_of in odd.items():
        document = {"eval": {"task": "x"}, "samples": samples_of}
        found[f"json whose samples are {name}"] = json.dumps(document).encode()
    return found


def odd_samples(parts: Parts) -> dict[str, bytes]:
    """Return samples with text that Inspect does not write."""
    found: dict[str, bytes] = {}

    def of(name: str, change: Callable[[bytes], bytes]) -> None:
        samples = {key: change(data) if key.startswith("samples/") else data for key, data in parts.items()}
        found[name] = zipped(samples)

    of("NaN everywhere", lambda data: data.replace(b'"working_start":', b'"working_start":NaN,"x":'))
    of("keys twice", lambda data: b'{"id":1,"epoch":1,' + data[1:])
    of("a number beyond floats", lambda data: data.replace(b'"input_tokens":11', b'"input_tokens":1e999'))
    of(
        "a number of 4000 digits",
        lambda data: data.replace(b'"input_tokens":11', b'"input_tokens":' + b"9" * 4000),
    )
    of("an epoch beyond integers", lambda data: data.replace(b'"epoch":', b'"epoch":1' + b"0" * 30))
    of("an epoch below one", lambda data: data.replace(b'"epoch":', b'"epoch":-'))
    of("UTF-16", lambda data: data.decode().encode("utf-16"))
    of("latin-1", lambda data: data.replace(b"attachment", b"\xe4\xff"))
    of("a byte order mark", lambda data: b"\xef\xbb\xbf" + data)
    of("nul characters", lambda data: data.replace(b"attachment", b"\\u0000"))
    of("empty samples", lambda data: b"")
    of("null samples", lambda data: b"null")
    of("deep lists", lambda data: b'{"id":1,"epoch":1,"metadata":' + b"[" * 9999 + b"]" * 9999 + b"}")
    of("deep objects", lambda data: b'{"id":1,"epoch":1,"metadata":' + b'{"a":' * 500 + b"1" + b"}" * 501)
    of("deep and open", lambda data: b'{"a":' * 100_000)
    of(
        "control characters",
        lambda data: data.replace(b'"id":', b'"id":"\\u001b[31m\\u202e/../../etc","was":', 1),
    )
    return found


ODD_VALUES: tuple[Any, ...] = (None, 1, -1.5, "x", "", True, [], {}, [None, "x", 1], {"a": [1]}, [[[]]])


def changed(value: Any, generator: random.Random, replacement: Any) -> Any:
    """Return `value` with a part at a random depth replaced."""
    if isinstance(value, dict) and value and generator.random() < 0.95:
        key = generator.choice(list(value))
        return {**value, key: changed(value[key], generator, replacement)}
    if isinstance(value, list) and value and generator.random() < 0.95:
        at = generator.randrange(len(value))
        return [*value[:at], changed(value[at], generator, replacement), *value[at + 1 :]]
    return replacement
