"""From a name to rows."""
