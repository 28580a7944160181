"""Statistics over plain numbers: intervals, tests, effect sizes, power and agreement.

Every function names the source of its formula. Without a correct value, it returns a `NoInterval` with
the reason. The package does not depend on results or files.
"""
