"""What isn't ours: small protocols that adapters, stores and runtimes fill."""
