"""Task definitions for tests: one model call for each row and some scorers."""

from __future__ import annotations

from typing import Any


def single_turn(*scorers: dict[str, Any], key: str = "said", question: str = "text") -> dict[str, Any]:
    """Return a task that sends a column of the rows `rows`."""
    message = {"role": "user", "content": f"{{{{ sample.{question} }}}}"}
    builder = {"type": "chat_completion", "input_messages": [message]}
    return {
        "key": key,
        "display_name": key.capitalize(),
        "description": "",
        "definition": {
            "dataset": {"key": "rows"},
            "solver": {"type": "single_turn_solver", "input_builder": builder},
            "scorers": list(scorers),
        },
    }
