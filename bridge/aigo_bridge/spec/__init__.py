"""AI GO specifications as written: strict, frozen models of every kind of file. No input or output here."""
