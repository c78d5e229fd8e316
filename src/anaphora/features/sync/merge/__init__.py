"""What the changes of items add up to: pure functions, the same on every device."""
