"""Features computed from images."""
