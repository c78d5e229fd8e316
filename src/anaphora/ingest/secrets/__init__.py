"""Keys, cards and tokens are found in a text and taken out before it is kept."""
