"""Local viewer: results, engine logs and runs in a folder as live pages, for this machine only."""

from aigo_report.viewing.serving import ViewServer

__all__ = ["ViewServer"]
