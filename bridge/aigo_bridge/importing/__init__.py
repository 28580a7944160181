"""Common parts of all imports of engine logs.

They cover redaction, limits on input size, counts of kept, changed and dropped data, atomic output files,
and the final report. Each adapter interprets its own logs.
"""
