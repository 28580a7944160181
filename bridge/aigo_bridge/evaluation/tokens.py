"""Token counts of texts: exact if the model's tokenizer is installed, otherwise estimated with bounds."""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aigo_bridge.access.grants import granted


@dataclass(frozen=True)
class Range:
    """Number that is unknown before the run: lower bound, expected value and upper bound."""

    low: float = 0.0
    expected: float = 0.0
    """Expected value; NaN if unknown."""
    high: float = 0.0
    """Upper bound; infinite if unlimited."""

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.expected + other.expected, self.high + other.high)

    def __mul__(self, other: Range | float) -> Range:
        if not isinstance(other, Range):
            other = Range(other, other, other)
        # Zero times an infinite bound is zero.
        high = 0.0 if not self.high or not other.high else self.high * other.high
        return Range(self.low * other.low, self.expected * other.expected, high)

    def to_json(self) -> dict[str, float | None]:
        """Return a JSON-serializable dictionary. Unknown and infinite values are `None`."""
        return {
            "at_least": _figure(self.low),
            "expected": None if math.isnan(self.expected) else _figure(self.expected),
            "at_most": None if math.isinf(self.high) else _figure(self.high),
        }


def _figure(value: float) -> float:
    return round(value) if value.is_integer() else round(value, 6)


NOTHING = Range()
UNKNOWN = Range(0.0, math.nan, math.inf)
"""Unknown number."""

MESSAGE = Range(3, 4, 8)
"""Tokens that chat templates add to a message: 3 according to the OpenAI guide, 5 in the templates of Llama
and Qwen.
"""
REQUEST = Range(0, 3, 8)
"""Tokens that chat templates add before the answer."""

ASCII_PER_TOKEN = 4.0
BYTES_PER_TOKEN = 2.5
"""Characters (bytes for non-ASCII text) per token of current vocabularies, in prose."""
LEAST, MOST = 0.25, 3.0
"""Measured ratio of the token count to the estimate with the vocabularies of GPT-3.5 and GPT-4o. Hindi has
0.27 with the newer vocabulary; prose in seven other languages 0.4 to 1.1. JSON, digits and formulas have
1.3 to 1.8, base64 2.9. Long runs of whitespace have a lower ratio.
"""

ESTIMATE = "estimated from characters"
EXACT = "counted"


@dataclass(frozen=True)
class TokenCounter:
    """Counter or estimator of the tokens of a model's texts."""

    how: str
    """Description of the method for the user."""
    count: Callable[[str], int] | None = None
    """Tokenizer of the model; `None` to estimate."""

    def text(self, text: str) -> Range:
        """Return the number of tokens of one text."""
        if self.count is not None:
            number = float(self.count(text))
            return Range(number, number, number)
        size = len(text.encode("utf-8", "replace"))
        beyond = size - sum(map(str.isascii, text))
        estimate = (size - beyond) / ASCII_PER_TOKEN + beyond / BYTES_PER_TOKEN
        # A token has at least one byte.
        return Range(math.floor(estimate * LEAST), round(estimate), min(size, math.ceil(estimate * MOST)))

    def messages(self, texts: Iterable[str]) -> Range:
        """Return the number of tokens of messages, excluding the tokens before the answer."""
        total = NOTHING
        for text in texts:
            total = total + self.text(text) + MESSAGE
        return total


def token_counter(name: str | None) -> TokenCounter:
    """Return the counter of a model, by the engine's model name; `None` if the model is unknown.

    A local tokenizer is used if available. It is in the folder of the weights, or for OpenAI, `tiktoken`
    with a cached vocabulary (or with a network connection and `--network`).
    """
    provider, _, model = (name or "").partition("/")
    if provider == "openai":
        count = _openai(model)
        if count is not None:
            return TokenCounter(f"{EXACT} with tiktoken", count)
    folder = Path(model.partition(",")[0]).expanduser()
    if provider in ("transformers", "accelerate", "vllm", "hf") and (folder / "tokenizer.json").is_file():
        count = _of_weights(folder / "tokenizer.json")
        if count is not None:
            return TokenCounter(f"{EXACT} with the model's tokenizer", count)
    return TokenCounter(f"{ESTIMATE} (×{LEAST:g} to ×{MOST:g})")


def _of_weights(file: Path) -> Callable[[str], int] | None:
    try:
        from tokenizers import Tokenizer

        tokenizer: Any = Tokenizer.from_file(str(file))
    except Exception:  # noqa: BLE001  # not installed, or an unreadable file
        return None
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def _openai(model: str) -> Callable[[str], int] | None:
    try:
        import tiktoken
        from tiktoken.model import encoding_name_for_model

        encoding_name = encoding_name_for_model(model)
    except (ImportError, KeyError):
        return None
    if not granted().network and not _is_cached(encoding_name):
        return None
    try:
        encoding = tiktoken.get_encoding(encoding_name)
    except Exception:  # noqa: BLE001  # no network, or a damaged cache
        return None
    return lambda text: len(encoding.encode_ordinary(text))


def _is_cached(encoding: str) -> bool:
    """Return whether a vocabulary is in the tiktoken cache, so that tiktoken does not download it."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    folder = folder or os.path.join(tempfile.gettempdir(), "data-gym-cache")  # noqa: PTH118  # as tiktoken does
    address = f"https://openaipublic.blob.core.windows.net/encodings/{encoding}.tiktoken"
    return (Path(folder) / hashlib.sha1(address.encode()).hexdigest()).is_file()  # noqa: S324  # its file names
