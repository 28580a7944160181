"""What this process knows to be secret, kept out of everything that it writes or shows."""
