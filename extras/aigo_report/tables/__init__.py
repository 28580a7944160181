"""Tables of results for data frames, files, SQL and charts. Results are read sample by sample."""
