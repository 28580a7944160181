"""Images of messages as the objects that documents hold. Only images that stand in the row are read: nothing is fetched or opened."""

from __future__ import annotations

import base64
import binascii
import warnings
from functools import lru_cache
from io import BytesIO
from typing import Any

from aigo_bridge.errors import MissingEngineError, SampleError

LARGEST = 50_000_000
"""Bytes of an encoded image that are decoded."""


def image_problem(url: str) -> str | None:
    """Why an image cannot stand in a document; `None`: it can."""
    if not url.startswith("data:"):
        return "images that stand elsewhere than in the row, which documents hold themselves"
    try:
        pil_image(url)
    except SampleError as error:
        return error.message
    return None


@lru_cache(maxsize=2)
def pil_image(url: str) -> Any:
    """The image of a `data:` URL, as Pillow has it.

    Raises:
        SampleError: it holds no image.
        MissingEngineError: Pillow is not installed.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise MissingEngineError(
            "documents with images need Pillow, which is not installed; run: pip install pillow"
        ) from error
    kind, _, encoded = url.partition(",")
    if not kind.endswith(";base64") or len(encoded) > LARGEST:
        raise _no_image("images that are not in base64, or too large")
    try:
        with warnings.catch_warnings():
            # An image that would fill the memory is refused, not warned about.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(BytesIO(base64.b64decode(encoded, validate=True)))
            image.load()
    except (binascii.Error, UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise _no_image("images that cannot be decoded") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise _no_image("images that are too large") from error
    return image


def _no_image(problem: str) -> SampleError:
    return SampleError(problem, stage="solver", kind="UnsupportedContent")
