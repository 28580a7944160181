"""`--fail-on-error`: how many failed samples a run may have, and when it has had them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal

from aigo_bridge.errors import UsageError

_TOLERANCE = re.compile(r"\d+|0?\.\d+|1\.0*", re.ASCII)


def tolerated(text: str | None, num_samples: int) -> int:
    """How many failed samples a run may have: `N`, or a share such as `0.1`; nothing means none.

    Raises:
        UsageError: the text is neither.
    """
    if text is None:
        return 0
    if not _TOLERANCE.fullmatch(text):
        raise UsageError(
            f"--fail-on-error: found {text!r}, expected a number of samples or a share between 0 and 1"
        )
    # Exactly: in binary floating point, 0.29 of 100 would be 28.
    return int(text) if text.isdigit() else int(Decimal(text) * num_samples)


def allowed(text: str | None, num_samples: int) -> int | None:
    """How many samples may fail before a run is stopped; without the option it never is (see `tolerated`)."""
    return None if text is None else tolerated(text, num_samples)


@dataclass
class Tolerance:
    """Failed samples while a task runs. One has failed when none of its trials went well."""

    allowed: int | None = None
    """As many may fail; `None`: any number."""
    num_trials: int = 1
    """Trials of each sample."""
    num_failed: int = 0
    """Samples that have failed."""
    num_failed_trials: int = 0
    num_good_trials: int = 0
    _trials: Counter[str | int] = field(default_factory=Counter)
    """Sample → its failed trials."""

    def note(self, sample_id: str | int, *, failed: bool) -> None:
        """One trial of a sample has ended."""
        if not failed:
            self.num_good_trials += 1
            return
        self.num_failed_trials += 1
        self._trials[sample_id] += 1
        self.num_failed += self._trials[sample_id] == self.num_trials

    @property
    def is_spent(self) -> bool:
        """Whether more samples have failed than may: no further one is begun.

        Engines may go through the first trials of all samples before the second ones. While nothing goes well, as many trials as so many
        samples have are enough.
        """
        if self.allowed is None:
            return False
        hopeless = not self.num_good_trials and self.num_failed_trials > self.allowed * self.num_trials
        return self.num_failed > self.allowed or hopeless

    @property
    def reason(self) -> str:
        """Why a run was stopped."""
        several = self.num_trials > 1
        number, unit = (self.num_failed_trials, "trial") if several else (self.num_failed, "sample")
        tolerated = f"{self.allowed} samples" if several else self.allowed
        return f"stopped: {number} {unit}{'s' * (number != 1)} failed, --fail-on-error tolerates {tolerated}"
