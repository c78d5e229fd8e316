"""Language models as deep recall sees them, over HTTP or scripted."""
