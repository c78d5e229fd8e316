"""Files in folders, with their text. Links are never followed."""
