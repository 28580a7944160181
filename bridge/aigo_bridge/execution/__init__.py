"""Sample execution: solving, scoring, error containment, and reuse of answers from earlier runs."""
