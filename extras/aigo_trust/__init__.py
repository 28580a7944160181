"""Auditable evidence: provenance, verification, attestation, recordings and scorer probes."""
