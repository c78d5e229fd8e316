"""What of memories and past sessions a new session needs."""
