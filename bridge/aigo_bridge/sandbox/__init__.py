"""What holds untrusted code on this system: Linux namespaces and limits around a command."""
