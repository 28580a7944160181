"""Views of results: the HTML page, the local viewer, terminal listings, tables, SQL and charts."""
