"""Statistics over numbers alone: intervals, tests, effect sizes, power, agreement. Nothing here knows a
result or a file.

Every function names the source of its formula. Where no right number exists the answer is a `NoInterval` with
its reason.
"""
