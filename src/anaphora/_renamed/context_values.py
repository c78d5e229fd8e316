"""What `anaphora.values.projects` was called; kept for one release."""

from anaphora.values.projects import *  # noqa: F403
