"""Model endpoint that injects faults and records its answers."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from typing import Any

from tests.support.endpoint import Endpoint, Raw, completion

ODD_WAITS = ("-5", "nan", "inf", "1e999", "soon", "Wed, 21 Oct 1992 07:28:00 GMT", "0.01", "0")
"""What servers say when they are asked too often."""


def right_answer(question: str) -> str:
    """Return the model's answer to a question. All rounds compare with it."""
    return "odd" if int(question.removeprefix("q")) % 2 else "even"


class BadDays:
    """Answers of an endpoint, a proportion of which are faults.

    Args:
        seed: Random seed of the faults.
        share: Proportion of requests that fail.
    """

    def __init__(self, seed: int, share: float):
        self.endpoint = Endpoint()
        self.endpoint.answer = self._answer
        self.answered: Counter[str] = Counter()
        """Question → whole answers that were given."""
        self._random = random.Random(seed)  # no secret
        self._share = share
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Clear the recorded answers, which would look like a memory leak of the runner."""
        with self._lock:
            self.answered.clear()
            for kept in (
                self.endpoint.requests,
                self.endpoint.headers,
                self.endpoint.paths,
                self.endpoint.times,
            ):
                kept.clear()

    def _answer(self, body: Any) -> tuple[int, dict[str, Any]] | Raw:
        question = str(body["messages"][-1]["content"])
        whole = json.dumps(completion(right_answer(question))).encode()
        with self._lock:
            fault = self._random.randrange(7) if self._random.random() < self._share else None
            wait = self._random.choice(ODD_WAITS)
            if fault in (None, 4):
                self.answered[question] += 1
        match fault:
            case 0:
                return Raw((b"busy",), status=429, headers={"Retry-After": wait})
            case 1:
                return Raw((b"<html>on fire</html>",), status=500, headers={"Retry-After": "0.01"})
            case 2:
                return Raw((whole[: len(whole) // 2],), cut=True)
            case 3:
                return Raw((), cut=True)
            case 4:
                time.sleep(0.3)
            case 5:
                return Raw((b"x" * 2_000_000,), status=503, headers={"Retry-After": "0.01"})
            case 6:
                return Raw((b"\x1f\x8b not gzip",), headers={"Content-Encoding": "gzip"})
        return 200, completion(right_answer(question))
