"""Results as tables: for data frames, files, SQL and charts; read sample by sample, whatever asks."""
