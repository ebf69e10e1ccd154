"""Stands in for the trainer without torch: pushed and started like the real one, its config says what it does."""
