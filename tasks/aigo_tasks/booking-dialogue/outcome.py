"""Whether the assistant gave the right booking code, and how long that took."""

from __future__ import annotations

from typing import Any


def compute_scores(sample: dict[str, Any], solver_output: Any) -> dict[str, Any]:
    turns = solver_output.trace.turns
    said = [message for turn in turns for message in turn.assistant_messages]
    text = "\n".join(part.text for message in said for part in message.content if getattr(part, "text", None))
    # A code is the same one in small letters.
    return {"is_booked": sample["code"].casefold() in text.casefold(), "num_turns": len(turns)}
