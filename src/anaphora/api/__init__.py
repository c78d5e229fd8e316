"""The facade: `Memory`, its asynchronous mirror, a home's keys."""
