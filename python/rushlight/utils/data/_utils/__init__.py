"""What the loader is made of."""
