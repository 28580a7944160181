"""Data files from the web, kept in a cache folder."""

from __future__ import annotations

import hashlib
import os
import ssl
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from aigo_bridge.datasets.files import file_kind
from aigo_bridge.errors import DatasetError, Issue

LARGEST_DOWNLOAD = 4 * 1024**3
"""Bytes one download may have."""
_TIMEOUT = 60.0
_CHUNK = 1 << 20


def default_cache() -> Path:
    """`aigo-bridge/datasets` in the user's cache folder (`XDG_CACHE_HOME`, else `~/.cache`)."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "aigo-bridge" / "datasets"


def fetched(url: str, cache: Path | None = None, *, largest: int = LARGEST_DOWNLOAD) -> Path:
    """The local copy of a data file, downloaded once per address.

    The copy is used from then on, so that two runs see the same rows; delete it to download anew. A download that
    breaks off leaves nothing behind.

    Raises `DatasetError` when the address is not http(s), does not end like a data file, cannot be fetched or is
    larger than `largest` bytes.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise DatasetError(f"found the url {url!r}, expected one that starts with http:// or https://")
    name = Path(parts.path).name
    file_kind(Path(name))
    folder = default_cache() if cache is None else cache
    target = folder / f"{hashlib.sha256(url.encode()).hexdigest()[:16]}-{name}"
    if not target.is_file():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _download(url, target, largest)
        except OSError as error:
            raise DatasetError([Issue(f"the download cannot be kept: {error}", str(target))]) from error
    return target


def _download(url: str, target: Path, largest: int) -> None:
    import httpx

    descriptor, partial = tempfile.mkstemp(prefix=".download-", dir=target.parent)
    size = 0
    try:
        with (
            os.fdopen(descriptor, "wb") as file,
            httpx.stream("GET", url, follow_redirects=True, timeout=_TIMEOUT) as response,
        ):
            response.raise_for_status()
            for chunk in response.iter_bytes(_CHUNK):
                size += len(chunk)
                if size > largest:
                    raise DatasetError(
                        f"{url!r} has more than {largest:,} bytes, the largest download allowed"
                    )
                file.write(chunk)
        Path(partial).replace(target)
    except httpx.HTTPStatusError as error:
        raise DatasetError(f"{url!r} answers with status {error.response.status_code}") from error
    except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError) as error:
        raise DatasetError(f"{url!r} cannot be fetched: {str(error) or type(error).__name__}") from error
    finally:
        Path(partial).unlink(missing_ok=True)
