"""Scorer tests: stored outputs are changed and scored again, and wrong reactions are reported."""
