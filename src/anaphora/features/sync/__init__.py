"""Sync: one namespace on several devices, end-to-end encrypted."""
