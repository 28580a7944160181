"""Score whether all required columns of a row have a value."""

import ast

REQUIRED = ast.literal_eval("""<< config.required >>""")


def compute_scores(sample):
    missing = [column for column in REQUIRED if not str(sample.get(column) or "").strip()]
    return {"is_complete": not missing, "missing": len(missing)}
