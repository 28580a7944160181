"""Numbers on the screen and for programs: intervals, comparisons, judges, rules."""
