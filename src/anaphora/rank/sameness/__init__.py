"""Whether two texts state one fact, or two that only look alike."""
