"""The core block: what every session is told, and the pins that put memories into it."""
