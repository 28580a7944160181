"""Scorers: from a sample and what a solver made of it to named scores."""

from aigo_bridge.scoring.registry import CompiledScorer, compile_scorers, scorer_keys

__all__ = ["CompiledScorer", "compile_scorers", "scorer_keys"]
