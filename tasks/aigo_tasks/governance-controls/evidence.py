"""Which controls are in place, from the answers of the person responsible."""

from __future__ import annotations

import ast
from typing import Any

CONTROLS = ast.literal_eval("""<< config.controls >>""")
WEIGHTS = ast.literal_eval("""<< config.weights >>""")


def compute_evidence() -> dict[str, Any]:
    missing = sorted(name for name, in_place in CONTROLS.items() if not in_place)
    total = sum(WEIGHTS.get(name, 1) for name in CONTROLS)
    weighted = sum(WEIGHTS.get(name, 1) for name, in_place in CONTROLS.items() if in_place)
    reason = f"missing: {', '.join(missing)}" if missing else "all controls are in place"
    share = (len(CONTROLS) - len(missing)) / len(CONTROLS) if CONTROLS else 0
    return {
        "metrics": {
            "controls_in_place": {"value": share, "reason": reason},
            "weighted_controls": {"value": weighted / total if total else 0, "reason": reason},
            "num_missing_controls": {"value": len(missing)},
        }
    }
