"""What stands in results: their metrics with intervals, and two or more of them side by side."""
