"""Conversion of a dataset as written to its rows, for every kind of source."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, assert_never
from urllib.parse import urlsplit

from aigo_bridge.access.addresses import SCHEMES, require_address, require_network, shown_address
from aigo_bridge.access.existence import is_file
from aigo_bridge.access.grants import record_address, record_file
from aigo_bridge.access.private import refusal
from aigo_bridge.codes import Code
from aigo_bridge.datasets.files import FolderTable, file_kind, load_file
from aigo_bridge.datasets.filtering import compile_filters
from aigo_bridge.datasets.generating import GeneratorTools, StartRows, generate
from aigo_bridge.datasets.objects import is_object, object_address, object_copy
from aigo_bridge.datasets.rows import Missing, Rows, Selection, collect
from aigo_bridge.datasets.tables import ObjectTable
from aigo_bridge.errors import DatasetError
from aigo_bridge.spec.datasets import (
    ClaudeCodeSource,
    DatasetGeneratorSpec,
    DatasetSource,
    DatasetSpec,
    FolderSource,
    GeneratorSpecification,
    HuggingFaceSource,
    InspectSource,
    LangSmithSource,
    LocalSource,
    OpenTelemetrySource,
    PhoenixSource,
    UrlSource,
)

if TYPE_CHECKING:
    import httpx


LARGEST_DOWNLOAD = 4 * 1024**3
"""Maximum bytes of one download after decompression."""
LONGEST_DOWNLOAD = 1800.0
"""Maximum seconds for one download."""
MOST_REDIRECTS = 5

_TIMEOUT = 60.0
_CHUNK = 1 << 20
_PACKED = ("gzip", "x-gzip", "deflate")


def default_cache() -> Path:
    """Return `aigo-bridge/datasets` in the user's cache folder (`XDG_CACHE_HOME`, otherwise `~/.cache`)."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "aigo-bridge" / "datasets"


def fetched(
    url: str,
    cache: Path | None = None,
    *,
    largest: int = LARGEST_DOWNLOAD,
    seconds: float = LONGEST_DOWNLOAD,
) -> Path:
    """Return the local copy of a data file, downloaded one time per URL; from object storage, one time per
    version.

    The copy is used from then on, so that two runs read the same rows. Delete it to download the file
    again. An interrupted download does not leave a file.

    Raises `DatasetError` in these cases: the URL scheme is not http(s) or object storage, the file
    extension is not supported, or a download is required but not allowed. The same applies if the URL
    refers to a non-public network or to storage that the user did not allow, the download fails, or it
    exceeds the limits of size or time.
    """
    folder = default_cache() if cache is None else cache
    if is_object(url):
        return object_copy(url, folder, largest=largest)
    require_address(url)
    name = Path(urlsplit(url).path).name
    file_kind(Path(name))
    target = folder / f"{hashlib.sha256(url.encode()).hexdigest()[:16]}-{name[-100:]}"
    if not is_file(target):
        require_network(f"{shown_address(url)!r}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _download(url, target, largest, seconds)
        except OSError as error:
            raise DatasetError(
                f"the download cannot be stored: {error}", file=str(target), code=Code.UNUSABLE_OUTPUT
            ) from error
    return target


def _download(url: str, target: Path, largest: int, seconds: float) -> None:
    import ssl

    import httpx
    from anyio.from_thread import start_blocking_portal

    shown = shown_address(url)
    descriptor, partial = tempfile.mkstemp(prefix=".download-", dir=target.parent)
    try:
        # A thread with its own event loop gives the whole download one time limit. The caller may already run
        # an event loop.
        with os.fdopen(descriptor, "wb") as file, start_blocking_portal() as portal:
            portal.call(_fetch, url, file, largest, seconds)
        Path(partial).replace(target)
    except httpx.HTTPStatusError as error:
        raise DatasetError(
            f"{shown!r} returned status {error.response.status_code}", code=Code.FAILED_DOWNLOAD
        ) from error
    except TimeoutError as error:
        raise DatasetError(
            f"{shown!r} cannot be downloaded: it takes longer than {seconds:g} seconds",
            code=Code.FAILED_DOWNLOAD,
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, UnicodeError, zlib.error) as error:
        raise DatasetError(
            f"{shown!r} cannot be downloaded: {str(error) or type(error).__name__}", code=Code.FAILED_DOWNLOAD
        ) from error
    finally:
        Path(partial).unlink(missing_ok=True)


async def _fetch(url: str, file: IO[bytes], largest: int, seconds: float) -> None:
    import anyio
    import httpx

    from aigo_bridge.access.transport import PublicTransport

    with anyio.fail_after(seconds):
        # Ignore the environment, so that the keys in `.netrc` are not sent to any server.
        async with httpx.AsyncClient(
            transport=PublicTransport(), trust_env=False, timeout=_TIMEOUT
        ) as client:
            request = client.build_request("GET", url, headers={"accept-encoding": "identity"})
            for _ in range(MOST_REDIRECTS + 1):
                response = await client.send(request, stream=True)
                try:
                    if response.next_request is None:
                        response.raise_for_status()
                        await _store(response, file, largest)
                        return
                    request = _next(response.next_request, url)
                finally:
                    await response.aclose()
    raise DatasetError(
        f"{shown_address(url)!r} redirects more than {MOST_REDIRECTS} times", code=Code.REFUSED_ADDRESS
    )


def _next(request: httpx.Request, url: str) -> httpx.Request:
    """Return the request for a redirect.

    Raises `DatasetError` if the redirect does not lead to a URL that is allowed for rows.
    """
    if request.url.scheme not in SCHEMES or not request.url.host or request.url.userinfo:
        address = shown_address(str(request.url))
        raise DatasetError(
            f"{shown_address(url)!r} redirects to {address!r}, expected an http or https URL "
            "without a password",
            code=Code.REFUSED_ADDRESS,
        )
    return request


async def _store(response: httpx.Response, file: IO[bytes], largest: int) -> None:
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity", *_PACKED):
        raise DatasetError(
            f"{shown_address(str(response.url))!r} uses the encoding {encoding[:40]!r}",
            code=Code.FAILED_DOWNLOAD,
        )
    unpacking = zlib.decompressobj(wbits=47) if encoding in _PACKED else None  # gzip or zlib
    size = 0
    async for chunk in response.aiter_raw():
        for piece in [chunk] if unpacking is None else _unpacked(chunk, unpacking):
            size += len(piece)
            if size > largest:
                message = (
                    f"{shown_address(str(response.url))!r} has more than {largest:,} bytes, the "
                    "maximum size of a download"
                )
                raise DatasetError(message, code=Code.TOO_MANY_ROWS)
            file.write(piece)
    if unpacking is not None and not unpacking.eof:
        raise DatasetError(
            (f"{shown_address(str(response.url))!r} cannot be downloaded: the connection closed early"),
            code=Code.FAILED_DOWNLOAD,
        )


def _unpacked(chunk: bytes, unpacking: zlib._Decompress) -> Iterator[bytes]:
    """Yield the decompressed content of a chunk in pieces, because it can expand to a huge size."""
    while chunk and not unpacking.eof:
        yield unpacking.decompress(chunk, _CHUNK)
        chunk = unpacking.unconsumed_tail


TraceReader = Callable[[DatasetSource, Path], Iterable[Mapping[str, Any]]]
"""Function that returns the rows of a trace source (one per trace, column `trace`). The second argument is
the folder for relative paths.
"""

_ALL = Selection()


@dataclass(frozen=True)
class DatasetTools:
    """Optional functions and data that some datasets need in addition to their own files."""

    cache: Path | None = None
    """Folder of downloads; `None` for the user's cache folder."""
    generators: Mapping[str, DatasetGeneratorSpec] = field(default_factory=dict)
    """Dataset generators by key."""
    start: StartRows = field(default_factory=StartRows)
    """Start rows of generators."""
    generation: GeneratorTools = field(default_factory=GeneratorTools)
    """Model calls and snippets for generators."""
    read_traces: TraceReader | None = None
    """Reader of trace sources. The core does not include one."""


_NO_TOOLS = DatasetTools()


def load_dataset(
    spec: DatasetSpec,
    *,
    base: Path,
    root: Path | None = None,
    selection: Selection = _ALL,
    missing: Missing = "nan",
    tools: DatasetTools = _NO_TOOLS,
) -> Rows:
    """Return the selected rows of a dataset.

    `base` is the folder of the file that contains the source; relative paths start there. With a `root`,
    all paths must be in this folder, even after following links.

    Raises `DatasetError` with all problems of all rows, and `TemplateError` for a filter that is not a
    template.
    """
    source = spec.source
    if source is None:
        if spec.generator_specification is None:
            raise DatasetError(
                f"the dataset {spec.key!r} has neither a source nor a generator", code=Code.CONTRADICTION
            )
        return _generated(spec.generator_specification, selection, missing, tools)
    check_source(source, base=base, root=root)
    if isinstance(source, LocalSource):
        path = base / source.file_path
        return load_file(path, selection, filters=source.filters, missing=missing, root=root)
    if isinstance(source, UrlSource):
        return load_file(fetched(source.url, tools.cache), selection, filters=source.filters, missing=missing)
    if isinstance(source, FolderSource):
        folder = base / source.directory_path
        files = FolderTable(folder, source.extension, root=root, own=base)
        filters = compile_filters(source.filters)
        rows = collect(files, selection, filters=filters, missing=missing, file=str(folder))
        # Equal ids of files with equal content do not indicate a problem in the author's data.
        return replace(rows, warnings=tuple(files.warnings))
    if isinstance(source, HuggingFaceSource):
        from aigo_bridge.datasets.hub import hub_table

        filters = compile_filters(source.filters)
        return collect(
            hub_table(source, key=spec.key, folder=base if root is None else root, root=root),
            selection,
            filters=filters,
            missing=missing,
            file=source.path,
        )
    if tools.read_traces is None:
        raise DatasetError(
            f"the dataset {spec.key!r} uses traces from {source.type!r}, which are not supported here",
            hint="import the traces into a JSONL file and use it as a local source",
            code=Code.WRONG_TRACE_SOURCE,
        )
    table = ObjectTable(tools.read_traces(source, base))
    return collect(table, selection, missing=missing, file=spec.key)


def _generated(
    request: GeneratorSpecification, selection: Selection, missing: Missing, tools: DatasetTools
) -> Rows:
    generator = tools.generators.get(request.dataset_generator_key)
    if generator is None:
        keys = ", ".join(tools.generators) or "none"
        message = f"the dataset generator {request.dataset_generator_key!r} is not known; known: {keys}"
        raise DatasetError(message, code=Code.UNKNOWN_ENTITY)
    samples, warnings = generate(generator, request, tools.start, tools.generation)
    rows = collect(ObjectTable(samples), selection, missing=missing, file=generator.key)
    return replace(rows, warnings=(*rows.warnings, *warnings))


def check_source(source: DatasetSource, *, base: Path, root: Path | None) -> None:
    """Check that a source refers to allowed paths and URLs, without opening anything: paths are in the root
    folder, and the URL scheme is supported.

    This check precedes every reader of a source, and `validate` uses it for sources that it does not read.

    Raises `DatasetError` with everything that is not allowed.
    """
    match source:
        case (
            LocalSource(file_path=path)
            | FolderSource(directory_path=path)
            | InspectSource(path=path)
            | OpenTelemetrySource(path=path)
        ):
            _require_inside(path, base, root)
        case ClaudeCodeSource(path=str(path)):
            _require_inside(path, base, root)
        case LangSmithSource() | PhoenixSource():
            if source.path is not None:
                _require_inside(source.path, base, root)
            address = source.api_url if isinstance(source, LangSmithSource) else source.base_url
            if address is not None:
                _allow_address(address)
        case UrlSource(url=address) if is_object(address):
            record_address(str(object_address(address)))
        case UrlSource(url=address):
            _allow_address(address)
        case HuggingFaceSource():
            from aigo_bridge.datasets.hub import HUB, hub_arguments

            place, name, _ = hub_arguments(source, base if root is None else root, root)
            if place == "hub":
                record_address(HUB + name)
        case ClaudeCodeSource():
            return  # The default location of this kind of trace, which is not in a field.
        case _:
            assert_never(source)  # A new kind of source must declare here what it may access.


def _allow_address(address: str) -> None:
    require_address(address)
    record_address(shown_address(address))


def _require_inside(written: str, base: Path, root: Path | None) -> None:
    if "\x00" in written:
        raise DatasetError(f"found {written!r}, expected a path", code=Code.WRONG_VALUE)
    path = base / written
    if (issue := refusal(path, root, "the path", own=base, file=str(path))) is not None:
        raise DatasetError([issue])
    record_file(path)
