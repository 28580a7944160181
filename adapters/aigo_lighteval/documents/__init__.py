"""Conversion of a plan to lighteval's documents and task."""
