"""Every Eval Ever (EvalEval Coalition), schema 0.3.0: results → an aggregate JSON file and a JSONL file of
instances.

Its schema is under the MIT licence; docs/reference/file-formats.md lists how each field is mapped.
"""
