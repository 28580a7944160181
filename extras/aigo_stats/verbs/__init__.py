"""Command-line verbs, one module each. A module is imported when its verb is used."""
