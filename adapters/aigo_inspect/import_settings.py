"""How logs are imported."""

from __future__ import annotations

from dataclasses import dataclass

from aigo_bridge.importing.bounds import DEFAULT_BOUNDS, Bounds
from aigo_bridge.importing.output import OutputFormat
from aigo_bridge.importing.redaction import Redaction, redaction

from .context import ContextChoice
from .events import EventChoice


@dataclass(frozen=True)
class ImportSettings:
    """How logs are imported."""

    context: ContextChoice = "full"
    """How much of the models' inputs is written."""
    output_format: OutputFormat = "json"
    """Kind of file."""
    keep: EventChoice = "default"
    """Which events are kept."""
    jobs: int = 1
    """Processes that read one log."""
    redact: bool = True
    """Take out well-known key formats and values of variables that look like keys."""
    patterns: tuple[str, ...] = ()
    """Further regular expressions of secrets; they hold also when `redact` is off."""
    bounds: Bounds = DEFAULT_BOUNDS
    """What a log may ask of the machine."""
    max_loss: int | None = None
    """More dropped things than this are a failure; `None` for any number."""

    def redaction(self) -> Redaction:
        """The redaction to apply, with counts of its own."""
        if self.redact:
            return redaction(self.patterns)
        return redaction(self.patterns, environment={}, well_known=False)
