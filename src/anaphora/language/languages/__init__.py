"""What is known of each language: one file of data a language in `data/`, read by `language.py`."""
