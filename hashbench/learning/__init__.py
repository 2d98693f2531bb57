"""Methods that learn by gradient descent."""
