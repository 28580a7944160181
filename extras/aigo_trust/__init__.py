"""Evidence that others can check: provenance, verification, attestation, recordings and probes."""
