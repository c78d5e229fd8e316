"""This machine: environment, time zone, processes and threads of our own, the incident log."""
