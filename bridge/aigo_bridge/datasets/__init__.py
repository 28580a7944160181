"""Datasets: rows from a file, a folder, the web or a generator, identified and selected."""
