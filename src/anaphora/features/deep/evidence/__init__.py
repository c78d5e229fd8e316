"""What a deep question may look at, what it was shown, and what is new since."""
