"""Whether the columns of a row that must be filled are."""

import ast

REQUIRED = ast.literal_eval("""<< config.required >>""")


def compute_scores(sample):
    missing = [column for column in REQUIRED if not str(sample.get(column) or "").strip()]
    return {"is_complete": not missing, "missing": len(missing)}
