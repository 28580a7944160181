"""Addresses in object storage on the command line."""
