"""Verbs of the command line, one module each, imported when the verb is used."""
