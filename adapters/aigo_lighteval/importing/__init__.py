"""`aigo-bridge import` for lighteval results from any source. lighteval itself is not required.

A run has one results file and one details file per task. The results file is JSON with the configuration and
all metrics. A details file is Parquet with documents, answers and their metrics. Supported
releases of lighteval are 0.11 to 0.13 (see its `EvaluationTracker` and `DetailsLogger`).
"""
