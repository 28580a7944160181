"""Export of tasks to Inspect, as a file that calls aigo-bridge or as plain Inspect code, and of results to
Inspect logs.
"""
