"""Terminal and JSON output of metrics: intervals, comparisons, judges and rules."""
