"""Object storage: `s3://`, `gs://`, `az://` and `hf://` addresses for paths that commands read or write.

Inputs are first copied to this machine. Outputs are written locally, and each file is then uploaded in one
step, so that a partial file is never visible.
"""
