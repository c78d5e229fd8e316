"""The same memory on several devices, through a remote that can read none of it."""
