"""A namespace as a folder of Markdown, read and edited by other programs."""
