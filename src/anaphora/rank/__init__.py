"""Pure ranking: arrays and values in, scores out, the time passed in. No clock, disk or log."""
