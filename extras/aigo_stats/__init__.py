"""Statistics of results: confidence intervals, comparisons, rules for CI and power analysis."""
