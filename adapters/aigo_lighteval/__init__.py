"""The lighteval adapter: AI GO tasks as lighteval documents, run in its pipeline, read back as evidence."""
