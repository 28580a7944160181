"""One page to look at results with: summary, metrics and every sample; its HTML opens without a network."""

from aigo_bridge.results.sources import ResultSource, sources_of
from aigo_report.page.writing import Report, write_report

__all__ = ["Report", "ResultSource", "sources_of", "write_report"]
