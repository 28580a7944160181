"""Where our own data stands in Inspect's logs."""

HEADER_KEY = "aigo_bridge"
"""Key of the task's (and so the log's) metadata that holds the plan."""

STORE_KEY = "aigo_bridge"
"""Key of the metadata of a sample's output that holds what our solver came to; of its store in older logs."""

SCORE_KEY = "aigo_bridge"
"""Key of a score's metadata that holds what Inspect's score has no place for."""
