"""Object storage: `s3://`, `gs://`, `az://` and `hf://` wherever a command takes or writes a path.

What is read is copied to this machine first; what is written is written here, and each file then appears in
the storage by one put, whole or not at all.
"""
