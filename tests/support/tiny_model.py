"""A tiny random language model with a tokenizer, made in code: real parts of transformers, without a network."""

from __future__ import annotations

from pathlib import Path

CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<end>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
CONTEXT = 96
"""Tokens that the model takes."""


def save_tiny_model(folder: Path, *, chat: bool = True, seed: int = 7) -> Path:
    """Save a Llama of some thousand parameters whose tokens are bytes.

    Args:
        folder: where to.
        chat: whether its tokenizer has a chat template.
        seed: of the weights.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate(letters)}
    special = ["<end>", "<|system|>", "<|user|>", "<|assistant|>"]
    vocabulary |= {token: len(vocabulary) + number for number, token in enumerate(special)}
    # Two merges, so that some texts have fewer tokens than bytes.
    vocabulary |= {"th": len(vocabulary), "the": len(vocabulary) + 1}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[("t", "h"), ("th", "e")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # transformers has no types here
        tokenizer_object=tokenizer, eos_token="<end>", additional_special_tokens=special[1:]
    )
    if chat:
        fast.chat_template = CHAT_TEMPLATE
    fast.save_pretrained(folder)
    # So small a model only waits for its threads.
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(vocabulary),
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=CONTEXT,
            bos_token_id=None,
            eos_token_id=vocabulary["<end>"],
            # Else every answer of a random model of this size is one letter, again and again.
            initializer_range=0.6,
        )
    )
    model.save_pretrained(folder)
    return folder
