"""Authorization of clients by OAuth, each with a token of the home."""
