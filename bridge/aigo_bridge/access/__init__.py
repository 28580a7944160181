"""Access of untrusted files to folders, addresses and variables, and limits on the size of input."""
