"""Dataset adapters; a file may serve several named datasets."""
