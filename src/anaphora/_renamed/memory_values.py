"""What `anaphora.values.memories` was called; kept for one release."""

from anaphora.values.memories import *  # noqa: F403
