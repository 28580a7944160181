"""Results, logs and runs in a folder, as pages that follow it while it changes, for this machine alone."""

from aigo_report.viewing.serving import ViewServer

__all__ = ["ViewServer"]
