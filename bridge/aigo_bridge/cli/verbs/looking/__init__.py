"""Verbs that show results: in the terminal, as tables, by SQL, as charts."""
