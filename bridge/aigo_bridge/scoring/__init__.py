"""Scorers: compute named scores from a sample and the solver's output."""

from aigo_bridge.scoring.registry import CompiledScorer, compile_scorers, scorer_keys

__all__ = ["CompiledScorer", "compile_scorers", "scorer_keys"]
