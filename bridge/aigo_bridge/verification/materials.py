"""The files that a result is checked with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aigo_bridge.provenance.sigstore_bundles import Identity
from aigo_bridge.verification.signers import Signer, signer_of


@dataclass(frozen=True)
class Materials:
    """What a result is checked against."""

    task: str | None = None
    """The user's own task, as for `run`."""
    datasets: Mapping[str, str] = field(default_factory=dict)
    """Data set key → file, for those that were named."""
    root: str | None = None
    log: str | None = None
    """The native log."""
    rerun_scorers: bool = False
    """Whether the task's scorers are run on the stored outputs."""
    replay: Path | None = None
    """The cassette of the run: it has the replies of judges, and is itself held against the provenance."""
    provenance: Path | None = None
    """`None`: the file beside the result, if there is one."""
    attestation: Path | None = None
    """`None`: the file beside the result, if there is one."""
    key: Path | None = None
    """Public key that the signature has to be of."""
    identity: Identity | None = None
    """Who has to have signed without a key."""

    @property
    def signer(self) -> Signer:
        """Whose signature is asked for.

        Raises:
            UsageError: the key cannot be read.
        """
        return signer_of(self.key, self.identity)
