"""Hashing methods, one file each; the file stem is the name users type."""
