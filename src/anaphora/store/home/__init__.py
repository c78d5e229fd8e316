"""Opening a home, clear or encrypted; its keys; its conversion from one form into the other."""
