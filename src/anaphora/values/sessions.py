"""The frozen values of an agent's sessions: where one took place, and the tools it called."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

__all__ = ["AgentSession", "SessionPlace", "ToolCall", "ToolCallHit"]


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """Where a session took place; each part is "" where it is not known.

    `client` is the coding agent, `directory` the folder it was started in, `repository` what that
    belongs to (its remote as `github.com/acme/shop`, else the folder of the main repository),
    `branch` the one that was checked out last.
    """

    client: str = ""
    directory: str = ""
    repository: str = ""
    branch: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What an agent did with a tool, in as many words as fit a line; nothing of what it gave back.

    `key` identifies the call within its session, `after` is the key of the message that it came
    after. `target` is the file, command or question, `outcome` "ok", "failed: …", or "" where the
    transcript does not tell.
    """

    key: str
    after: str
    name: str
    target: str = ""
    outcome: str = ""
    ts: datetime | None = None

    @property
    def line(self) -> str:
        """The call as it is kept and found."""
        call = f"{self.name} {self.target}".strip()
        return f"{call}: {self.outcome}" if self.outcome else call


@dataclass(frozen=True, slots=True)
class ToolCallHit:
    """A tool call that matches a question. `index` is the turn of the session that it came after.

    `score` is the share of the question's words, by rarity, that its line holds.
    """

    id: str
    text: str
    ts: datetime
    score: float
    conversation_id: str
    index: int


@dataclass(frozen=True, slots=True)
class AgentSession:
    """A session of a coding agent that is under way.

    `transcript` is its path, "" where there is none, and `format` the importer's name for it.
    """

    client: str
    id: str
    format: str
    directory: str = ""
    transcript: str = ""
