"""One module per verb, imported when the verb is used."""
