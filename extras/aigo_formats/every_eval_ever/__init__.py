"""Every Eval Ever (EvalEval Coalition), schema 0.3.0: an aggregate JSON file and a JSONL file of instances.

The schema has the MIT license. docs/reference/file-formats.md describes the mapping of each field.
"""
