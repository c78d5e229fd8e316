"""Coding agents: hooks into their sessions, the resident process, and setting them up."""
