"""The Python API: what the command line does, as functions. `aigo_bridge` itself has their names.

They print nothing and never end the process; what goes wrong is an exception of `aigo_bridge.errors`, with
the words of the command line.
"""
