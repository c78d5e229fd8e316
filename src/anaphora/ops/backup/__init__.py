"""Backups of a home, their restoration, and atomic creation of files and folders."""
