"""Which tasks lighteval has: every file of tasks is imported, one that cannot be is only a line."""

from __future__ import annotations

import inspect

from aigo_bridge.benchmarks import Benchmark, Listing
from aigo_lighteval.native_registry import NEEDS_NETWORK, built_in, supersets
from aigo_lighteval.versions import installed_versions


def listing() -> Listing:
    """Every task by name, and supersets, which run all of theirs."""
    registry = built_in()
    package = f"lighteval {installed_versions()['lighteval']}"
    found = [
        Benchmark(name, package, _parameters(config), _summary(registry.modules[name]))
        for name, config in registry.configs.items()
    ]
    found += [
        Benchmark(name, package, (), f"{len(members)} tasks: {_summary(registry.modules[members[0]])}")
        for name, members in supersets(registry.configs).items()
    ]
    problems = [f"{module}: {reason}" for module, reason in registry.problems.items()]
    problems += [
        f"{module}: uses the network while it is imported; its tasks ({prefix}…) are known when they are named"
        for module, prefix in NEEDS_NETWORK.items()
    ]
    return Listing(tuple(sorted(found, key=lambda each: each.name)), tuple(problems))


def _parameters(config: object) -> tuple[str, ...]:
    """Parameters of metrics that have some."""
    found: list[str] = []
    for metric in getattr(config, "metrics", ()):
        if "@" in metric.metric_name:
            found += [name for name in ("k", "n") if hasattr(metric.sample_level_fn, name)]
    return tuple(dict.fromkeys(found))


def _summary(module: object) -> str:
    """What the file says about its tasks: the line below `abstract:`, or its first."""
    lines = [line.strip() for line in (inspect.getdoc(module) or "").splitlines()]
    if "abstract:" in lines:
        lines = lines[lines.index("abstract:") + 1 :]
    said = next((line for line in lines if line), "")
    # Some have no text there, and the next heading follows.
    return "" if said.endswith(":") else said
