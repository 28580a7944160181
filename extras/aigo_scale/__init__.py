"""Runs and archives larger than one machine: shards, Ray, object storage and the lake."""
