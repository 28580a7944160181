"""From a raw sample to its trace and scores."""
