"""Conversion of other tools' traces to AI GO traces: Claude Code, OpenTelemetry, Phoenix and LangSmith.

Each source has a module. Shared modules read files (`documents`), convert messages to items (`items`), and
build traces from events (`assembling`).
"""
