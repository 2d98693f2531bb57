"""From rows to what people read."""
