"""Conversion of raw samples to traces and scores."""
