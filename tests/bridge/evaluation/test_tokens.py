"""Tokens are counted with the model's tokenizer if it is available, otherwise estimated within bounds."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.evaluation.tokens import NOTHING, UNKNOWN, Range, token_counter

MEASURED = {
    "What is the capital of Norway? Answer with its name only.": (13, 13),
    "Die Würde des Menschen ist unantastbar. Sie zu achten und zu schützen ist Verpflichtung aller staatlichen Gewalt. "
    * 5: (161, 126),
    "Les États-Unis ont signé hier un traité bilatéral concernant la coopération scientifique et technique. "
    * 5: (136, 91),
    "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。" * 5: (250, 175),
    "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。" * 5: (225, 175),
    "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью."
    * 5: (255, 140),
    "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।" * 5: (420, 125),
    "internationalization responsibilities " * 100: (301, 301),
}
"""Text → tokens with the vocabularies cl100k (GPT-3.5, GPT-4) and o200k (GPT-4o)."""


@pytest.mark.parametrize(("text", "counts"), MEASURED.items())
def test_token_estimates_of_real_texts_are_within_bounds(text: str, counts: tuple[int, int]) -> None:
    estimate = token_counter("any/model").text(text)
    assert all(estimate.low <= count <= estimate.high for count in counts)


@given(st.text())
def test_an_estimate_is_within_its_bounds_and_at_most_the_bytes(text: str) -> None:
    estimate = token_counter(None).text(text)
    assert 0 <= estimate.low <= estimate.high <= len(text.encode())
    assert estimate.low <= estimate.expected + 1


def test_unknown_range_has_no_upper_bound() -> None:
    assert (UNKNOWN * 3.0).high == math.inf
    assert (NOTHING * UNKNOWN).high == 0.0
    assert (UNKNOWN + Range(2, 2, 2)).low == 2.0
    assert UNKNOWN.to_json() == {"at_least": 0, "expected": None, "at_most": None}


def test_tokenizer_of_local_weights_is_used(tmp_path: Path) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    tokenizer = Tokenizer(WordLevel({"a": 0, "?": 1}, unk_token="?"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    counter = token_counter(f"transformers/{tmp_path},dtype=float32")
    assert counter.how == "counted with the model's tokenizer"
    assert counter.text("a b c") == Range(3, 3, 3)
    (tmp_path / "tokenizer.json").write_text("no")
    assert token_counter(f"transformers/{tmp_path}").count is None


def test_tiktoken_reads_its_cached_vocabulary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib

    import tiktoken

    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert token_counter("openai/gpt-4o").count is None  # nothing is fetched
    address = b"https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
    (tmp_path / hashlib.sha1(address).hexdigest()).touch()
    encoding = tiktoken.Encoding(
        "bytes", pat_str=".", mergeable_ranks={bytes([n]): n for n in range(256)}, special_tokens={}
    )
    monkeypatch.setattr(tiktoken, "get_encoding", {"o200k_base": encoding}.__getitem__)
    counter = token_counter("openai/gpt-4o")
    assert counter.how == "counted with tiktoken"
    assert counter.text("é") == Range(2, 2, 2)
    assert token_counter("openai/my-finetune").count is None
