"""`aigo-bridge import` for lighteval's results, whoever ran it; lighteval itself is not needed for it.

A run leaves one results file (JSON: configuration, and every metric of every task) and one details file per
task (Parquet: documents, answers and the metrics of each). Formats: lighteval's `EvaluationTracker` and
`DetailsLogger`, releases 0.11 to 0.13.
"""
