"""`aigo-bridge import` for Inspect's logs, whoever wrote them."""
