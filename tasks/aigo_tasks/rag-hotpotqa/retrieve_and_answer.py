"""A small RAG system as a solver: the paragraphs that share most words with the question, then one call of the model.

What was retrieved goes into the raw output as `references`; that is where `rag_checker` looks for it.
"""

from __future__ import annotations

import re
from typing import Any

from latticeflow.core.dtypes import ModelResponse

TOP_K = int("<< config.top_k >>")
COMMON = {"the", "a", "an", "of", "in", "on", "is", "was", "did", "to", "and", "who", "which", "when", "where", "what", "from"}


def words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if word not in COMMON}


def retrieve(question: str, paragraphs: list[str]) -> list[str]:
    """The TOP_K paragraphs with the largest overlap; earlier ones first where it is equal."""
    wanted = words(question)
    ranked = sorted(range(len(paragraphs)), key=lambda number: (-len(wanted & words(paragraphs[number])), number))
    return [paragraphs[number] for number in ranked[:TOP_K]]


async def run_solver(sample: dict[str, Any], model: Any, trace: Any) -> Any:
    context = sample["context"]
    paragraphs = [f"{title}: {' '.join(sentences)}" for title, sentences in zip(context["title"], context["sentences"], strict=True)]
    found = retrieve(sample["question"], paragraphs)
    trace.append_system_message("Answer from these paragraphs alone, in one short sentence.\n\n" + "\n\n".join(found))
    trace.append_user_message(sample["question"])
    response = await model.predict(trace.items)
    answer = {
        "choices": [{"message": {"role": "assistant", "content": response.text}, "references": [{"content": text} for text in found]}],
        "usage": getattr(response.raw_output, "usage", None),
    }
    trace.add_model_response(ModelResponse(raw_output=answer, items=response.items))
    return trace
