"""Traces that other tools recorded → traces of AI GO: sessions of Claude Code, spans of OpenTelemetry and of
Phoenix, runs of LangSmith.

Each source is one module; what they share is how files are read (`documents`), messages become items
(`items`)
and events become a trace (`assembling`).
"""
