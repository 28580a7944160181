"""How one call of a model fails, and whether it is worth trying again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from aigo_bridge.errors import BridgeError

FailureKind = Literal["rate_limit", "transient", "refused", "invalid"]
"""`rate_limit` and `transient`: try again; `refused`: the endpoint said no; `invalid`: what it said is no answer."""


@dataclass(frozen=True)
class Exchange:
    """One request and its response as they went over the wire, secrets taken out."""

    request: str
    """Body of the request."""
    response: str | None = None
    """Body of the response; `None` when none came."""
    status: int | None = None
    """HTTP status; `None` when no response came, or when no HTTP was spoken."""
    request_id: str | None = None
    """The endpoint's own name for the exchange; `None` when it gave none."""


class CallError(BridgeError, RuntimeError):
    """A model was called and gave no answer that can be used."""

    def __init__(
        self,
        message: str,
        kind: FailureKind,
        *,
        hint: str | None = None,
        retry_after: float | None = None,
        exchange: Exchange | None = None,
    ):
        super().__init__(message)
        self.message = message
        self.kind: FailureKind = kind
        self.hint = hint
        self.retry_after = retry_after
        """Seconds that the endpoint asked to wait; `None` when it did not say."""
        self.exchange = exchange
        """What went over the wire; `None` when nothing did."""

    @property
    def is_transient(self) -> bool:
        """Whether the same call may succeed later."""
        return self.kind in ("rate_limit", "transient")

    @property
    def status_code(self) -> int | None:
        """HTTP status of the response, under the name that HTTP clients' errors have it."""
        return None if self.exchange is None else self.exchange.status
