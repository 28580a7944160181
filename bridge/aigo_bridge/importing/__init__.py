"""What every import of foreign logs needs, whichever engine wrote them.

Secrets taken out, bounds on what is read, counts of what was kept, changed and dropped, files that appear
when they are whole, and the report at the end. What a log means is the adapter's business.
"""
