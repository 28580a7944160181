"""Import of Inspect logs (`aigo-bridge import`), written by aigo-bridge or by other programs."""
