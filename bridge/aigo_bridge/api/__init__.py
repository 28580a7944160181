"""Python API: the command line's functions. Import their names from `aigo_bridge`.

The functions print nothing and never end the process. Errors are exceptions of `aigo_bridge.errors`, with the
same messages as on the command line.
"""
