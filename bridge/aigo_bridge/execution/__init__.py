"""Samples carried out: solved, scored, failures contained; answers kept, earlier ones given again."""
