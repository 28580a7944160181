"""Lakes: evidence of many logs as one data set of Parquet files, on this machine or in object storage.

Each log is committed by one small object that names its files, after all of them; what no such object names
is nobody's. Nothing that is there is ever rewritten, but by a compaction, which is one such object, too.
"""
