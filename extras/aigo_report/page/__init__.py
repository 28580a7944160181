"""HTML report of results: summary, metrics and every sample. The page works offline."""

from aigo_bridge.results.sources import ResultSource, sources_of
from aigo_report.page.writing import Report, write_report

__all__ = ["Report", "ResultSource", "sources_of", "write_report"]
