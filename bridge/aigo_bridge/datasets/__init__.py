"""Datasets: from a file, a folder, the web or a generator to identified, selected rows."""
