"""Text in JSON, escapes, and text for display."""
