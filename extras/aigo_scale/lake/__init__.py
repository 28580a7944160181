"""Lakes: evidence of many logs as Delta tables, on this machine or in object storage."""
