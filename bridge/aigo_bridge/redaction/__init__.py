"""Redaction: secrets known to this process are masked in all output."""
