"""What `anaphora.values.deep` was called; kept for one release."""

from anaphora.values.deep import *  # noqa: F403
