"""All perturbations, by name. A new one is a function and a row of its table."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_trust.probing.answers import SAME, WORSE
from aigo_trust.probing.for_judges import FOR_JUDGES
from aigo_trust.probing.perturbation import Perturbation

PERTURBATIONS: tuple[Perturbation, ...] = (*SAME, *WORSE, *FOR_JUDGES)
"""In the order in which they are shown."""


def chosen(names: Sequence[str]) -> tuple[Perturbation, ...]:
    """The perturbations of some names; all where none is named.

    Raises:
        UsageError: there is none of a name; all such are told.
    """
    by_name = {perturbation.name: perturbation for perturbation in PERTURBATIONS}
    problems = []
    for name in names:
        if name not in by_name:
            near = difflib.get_close_matches(name, by_name, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(by_name)}"
            problems.append(f"found {name!r} ({hint})")
    if problems:
        raise UsageError(f"--only: {'; '.join(problems)}", code=Code.WRONG_OPTION)
    return tuple(by_name[name] for name in by_name if name in names) if names else PERTURBATIONS
