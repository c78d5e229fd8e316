"""The threads of a namespace on a server: strict, as those of a memory on this machine."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from anaphora.errors import NotFound, NotOffered
from anaphora.store.disk import Identity
from anaphora.store.threads.conversations import Conversations, Replacement
from anaphora.store.threads.gojson import read_time
from anaphora.values.conversations import NewTurn, Thread, ThreadProblem, ThreadSummary, Turn
from anaphora.values.json_codec import iso_time

Ask = Callable[..., Any]
"""Asks the server: (request, path parameters, query or body) → JSON."""
_SPEAKERS: Final[Any] = object()
# Fields of a turn that only the server sets.
_NOT_TAKEN: Final = ("source", "source_key", "message_key")


class RemoteConversations(Conversations):
    """The threads of a namespace on a server. A turn that was not kept raises."""

    def __init__(self, ask: Ask, read: Callable[..., Any]) -> None:
        # The server stores the speakers.
        super().__init__(None, _SPEAKERS, None)
        self._ask = ask
        self._made_of = read

    def list(self) -> tuple[ThreadSummary, ...]:
        """Every conversation that can be read, newest first."""
        answer = self._ask("GET /conversations")
        kind = tuple[ThreadSummary, ...]
        return self._made_of(kind, answer, "items")  # type: ignore[no-any-return]

    def problems(self) -> tuple[ThreadProblem, ...]:
        """Not offered by a server."""
        _refuse("problems")

    def path(self, conversation_id: str) -> Path:
        """Not offered by a server."""
        _refuse("path")

    def read_file(self, conversation_id: str) -> tuple[bytes, Identity]:
        """Not offered by a server."""
        _refuse("read_file")

    def files(self) -> Iterator[tuple[str, Path]]:
        """Not offered by a server."""
        _refuse("files")

    def _stands(self, conversation_id: str) -> bool:
        # The server looks for other forms of an id.
        return True

    def _extend(
        self, conversation_id: str, news: Sequence[NewTurn], turns: Sequence[Turn], title: str
    ) -> range:
        body: dict[str, Any] = {
            "turns": [_to_body(index, new_turn) for index, new_turn in enumerate(news)]
        }
        if title:
            body["title"] = title
        answer = self._ask(
            "POST /v1/conversations/{conversation_id}/turns",
            {"conversation_id": conversation_id},
            body,
        )
        indexes = self._made_of(tuple[int, ...], answer, "indexes")
        return range(indexes[0], indexes[-1] + 1) if indexes else range(0)

    def _thread(self, conversation_id: str, last: int | None) -> Thread | None:
        query = {} if last is None else {"last": min(last, 2**31 - 1)}
        try:
            answer = self._ask(
                "GET /v1/conversations/{conversation_id}",
                {"conversation_id": conversation_id},
                query,
            )
        except NotFound:
            return None
        return self._made_of(_thread, answer)  # type: ignore[no-any-return]

    def _delete(self, conversation_id: str) -> bool:
        return self._changed("DELETE /v1/conversations/{conversation_id}", conversation_id)

    def _redact(self, conversation_id: str, index: int) -> bool:
        if not 0 <= index < 2**31:
            return False
        return self._changed(
            "POST /v1/conversations/{conversation_id}/turns/{index}/redact",
            conversation_id,
            index=str(index),
        )

    def _set_title(self, conversation_id: str, title: str) -> bool:
        return self._changed(
            "PATCH /v1/conversations/{conversation_id}", conversation_id, {"title": title}
        )

    def _replace_turns(self, conversation_id: str, new: Replacement) -> bool:
        raise NotOffered("replacing turns", "devices do it, with sync")

    def _changed(
        self,
        request: str,
        conversation_id: str,
        body: Mapping[str, Any] | None = None,
        **more: str,
    ) -> bool:
        """Change a conversation; False if it does not exist."""
        try:
            self._ask(request, {"conversation_id": conversation_id, **more}, body or {})
        except NotFound:
            return False
        return True


def _refuse(name: str) -> NoReturn:
    reason = "thread files are on the server's machine"
    raise NotOffered(f"conversations.{name}", reason)


def _to_body(index: int, new: NewTurn) -> builtins.dict[str, Any]:
    for name in _NOT_TAKEN:
        if getattr(new, name) is not None:
            reason = "an import gives turns their identity; use `import_`"
            raise NotOffered(f"turns[{index}].{name}", reason)
    members = {"role": new.role, "text": new.text, "intent_id": new.intent_id}
    # The server's clock gives the time of a turn without one.
    more_members = {"ts": iso_time(new.ts), "speaker": new.speaker}
    return members | {name: member for name, member in more_members.items() if member is not None}


def _thread(record: Mapping[str, Any]) -> Thread:
    """A conversation; its times are kept verbatim."""
    turns = tuple(
        Turn(
            role=turn["role"],
            text=turn.get("text", ""),
            ts=read_time(turn["ts"]),
            ts_text=turn["ts"],
            intent_id=turn.get("intent_id", ""),
            speaker=turn.get("speaker"),
            source=turn.get("source"),
        )
        for turn in record["turns"]
    )
    return Thread(
        record["conversation_id"],
        turns,
        read_time(record["updated"]),
        record["updated"],
        record.get("title", ""),
    )
