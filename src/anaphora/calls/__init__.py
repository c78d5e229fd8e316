"""What every call has: its description, checks of arguments, limits, origin and progress."""
