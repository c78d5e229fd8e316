"""Documents taken in: text out of files, in sections, and what is kept of them."""
