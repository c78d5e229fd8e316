"""What every store of conversations does, wherever it keeps them, and what a turn must be.

Two stores: `ConversationStore` (a Go file for each conversation) and `SqlConversationStore` (rows
of the database of a home). Checks, defaults and the names of methods are here, so that both refuse
the same; what is read and written is theirs.
"""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from anaphora.calls.arguments import MOST
from anaphora.calls.moments import has_utc
from anaphora.errors import InvalidTurn
from anaphora.language.names import composed, standing_form
from anaphora.store.disk import Identity
from anaphora.store.threads.gojson import ThreadDocument, format_time, read_time
from anaphora.store.threads.ids import SUFFIX, check_id
from anaphora.text.hidden_ids import is_hidden, named_so
from anaphora.values.actions import AuditAction
from anaphora.values.conversations import NewTurn, Thread, ThreadProblem, ThreadSummary, Turn

if TYPE_CHECKING:
    from anaphora.store.threads.sidecar import Sidecar, TurnNote

ResultT = TypeVar("ResultT")
StoreT = TypeVar("StoreT", bound="Conversations")
DEFAULT_RECENT = 16
NEW_CHAT = "New chat"
_TITLE_CHARACTERS = 60
_PREVIEW_CHARACTERS = 100
_SPLIT_CHARACTER = re.compile("[\ud800-\udbff][\udc00-\udfff]")


@dataclass(frozen=True, slots=True)
class Replacement:
    """Turns, to the letter, in the place of those of a conversation; without any it is deleted.

    `notes` take the place of what was noted of them; `lost` are texts that go: they leave what was
    set aside and the index, too.
    """

    before: Sequence[Turn]
    turns: Sequence[Turn]
    notes: Sequence[TurnNote]
    title: str = ""
    lost: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class WriteHooks:
    """What surrounds the writes of a store of conversations.

    `under_way` is entered for each call that writes. `on_change` is called once something is
    written, with what was done, the id of the conversation as the caller has it, and how many turns
    it concerns (1 for a title, and for a whole conversation).
    """

    under_way: AbstractContextManager[object] = field(default_factory=nullcontext)
    on_change: Callable[[AuditAction, str, int], object] = lambda *_: None


class Conversations(ABC):
    """A store of conversations.

    `clock` gives the time of turns that come without one; `sidecar` keeps speakers and sources;
    `on_removed` is called with the id of a conversation that lost words.
    """

    def __init__(
        self,
        clock: Callable[[], datetime] | None,
        sidecar: Sidecar | None,
        on_removed: Callable[[str], object] | None,
    ) -> None:
        self._clock = clock or (lambda: datetime.now(UTC))
        self._sidecar = sidecar
        self._on_removed = on_removed
        self._hooks = WriteHooks()
        self._directory: Path | None = None
        self._enabled = True
        self._failures = 0
        self._suffix = SUFFIX

    @property
    def directory(self) -> Path | None:
        """The folder of the thread files; None where there are none."""
        return self._directory

    @property
    def enabled(self) -> bool:
        """Whether it keeps anything: without a directory a store of files does not."""
        return self._enabled

    @property
    def failures(self) -> int:
        """How often the disk refused something that a bare store only logged."""
        return self._failures

    @property
    def suffix(self) -> str:
        """What the names of thread files end in: ".json", or ".json.sealed"."""
        return self._suffix

    def append(
        self,
        conversation_id: str,
        role: str,
        text: str,
        *,
        intent_id: str = "",
        ts: datetime | None = None,
        speaker: str | None = None,
    ) -> bool:
        """Keep one turn; whether it was kept. A blank text is not.

        Where the thread's file cannot be read it is set aside. A bare store then starts a new
        one; a strict store raises CorruptThread, and its next append starts the new one.
        """
        turn = NewTurn(role, text, intent_id=intent_id, ts=ts, speaker=speaker)
        return len(self.extend(conversation_id, (turn,))) == 1

    def append_user(self, conversation_id: str, text: str) -> bool:
        """Keep what the user said."""
        return self.append(conversation_id, "user", text)

    def append_assistant(self, conversation_id: str, text: str, *, intent_id: str = "") -> bool:
        """Keep what the assistant answered, and the intent that it answered."""
        return self.append(conversation_id, "assistant", text, intent_id=intent_id)

    def extend(self, conversation_id: str, turns: Sequence[NewTurn], *, title: str = "") -> range:
        """Keep several turns in one write, all or none; the places that they got.

        Blank ones are left out. The range is empty when nothing was kept. `title` is that of a
        conversation that begins with them, and nothing to one that is there.
        """
        with self._hooks.under_way:
            if not self.enabled:
                return range(0)
            standing_id = self.standing_id(self._check_id(conversation_id))
            _check_title(title)
            news = _read_turns(turns)
            checked_turns = [self._check_turn(turn) for turn in news]
            if not checked_turns:
                return range(0)
            places = self._attempt(
                "append to",
                standing_id,
                range(0),
                lambda: self._extend(standing_id, news, checked_turns, title.strip()),
            )
            if places:
                self._hooks.on_change("remembered", conversation_id, len(places))
            return places

    def recent(self, conversation_id: str, n: int = DEFAULT_RECENT) -> tuple[Turn, ...]:
        """The last `n` turns, oldest first; none when there is no such conversation."""
        thread = self._read(conversation_id, min(max(0, _check_number("n", n)), MOST))
        return thread.turns if thread else ()

    def get(self, conversation_id: str) -> Thread | None:
        """The whole conversation, or None. A strict store raises CorruptThread, once."""
        return self._read(conversation_id, None)

    @abstractmethod
    def list(self) -> tuple[ThreadSummary, ...]:
        """Every conversation that can be read, newest first; `problems` has the others."""

    def delete(self, conversation_id: str) -> bool:
        """Remove a conversation, its speakers and what was set aside of it; whether it was there.

        Import identities stay behind as forgotten: importing the chat again does not revive it.
        """
        return self._change("forgotten", "delete", conversation_id, self._delete)

    def redact(self, conversation_id: str, index: int) -> bool:
        """Replace the words of a turn by "[redacted]"; whether there is such a turn.

        Role and time stay. A text of eight characters or more is also replaced wherever else it
        stands word for word in this conversation: in other turns, the title, what was set aside.
        """
        _check_number("index", index)
        return self._change(
            "forgotten", "redact", conversation_id, lambda key: self._redact(key, index)
        )

    def set_title(self, conversation_id: str, title: str) -> bool:
        """Give a conversation a title of its own, or take it away with ""; whether it exists."""
        _check_title(title)
        return self._change(
            "changed",
            "set the title of",
            conversation_id,
            lambda key: self._set_title(key, title.strip()),
        )

    @abstractmethod
    def _replace_turns(self, conversation_id: str, new: Replacement) -> bool:
        """Put turns in the place of others; False where it has others than `before` now."""

    def _tell_removed(self, conversation_id: str) -> None:
        if self._on_removed is not None:
            self._on_removed(conversation_id)

    @abstractmethod
    def problems(self) -> tuple[ThreadProblem, ...]:
        """What could not be read: files set aside, or in their place where that failed too."""

    @abstractmethod
    def path(self, conversation_id: str) -> Path:
        """The file of a conversation, whether or not it exists. Raises InvalidId.

        StoreError in a store without files.
        """

    @abstractmethod
    def read_file(self, conversation_id: str) -> tuple[bytes, Identity]:
        """A conversation as the bytes of a Go file, and what tells this state of it apart.

        Raises InvalidId, OSError (FileNotFoundError where there is none), NotAThread for a sealed
        file that was changed or cut, and EncryptionError.
        """

    @abstractmethod
    def files(self) -> Iterator[tuple[str, Path]]:
        """Every conversation's id and the file that it has or would have, in no order."""

    def standing_id(self, conversation_id: str) -> str:
        """The id that a conversation has here which is called so.

        That is the id that left the home under this name (`text.hidden_ids`), or the form of it,
        composed or not, in which a conversation stands. Where none does: the id composed (NFC).
        """
        if type(conversation_id) is not str:
            check_id(conversation_id)
        if is_hidden(conversation_id):
            return named_so(conversation_id, (thread_id for thread_id, _ in self.files()))
        return standing_form(conversation_id, self._stands)

    @abstractmethod
    def _stands(self, conversation_id: str) -> bool:
        """Whether there is a conversation of exactly this id."""

    def _check_id(self, conversation_id: str) -> str:
        return check_id(conversation_id)

    def _attempt(
        self,
        operation: str,
        conversation_id: str,
        otherwise: ResultT,
        action: Callable[[], ResultT],
    ) -> ResultT:
        """Do it; a store that does not raise what fails gives `otherwise` then."""
        return action()

    @abstractmethod
    def _extend(
        self, conversation_id: str, news: Sequence[NewTurn], turns: Sequence[Turn], title: str
    ) -> range:
        """Keep `turns`, made from `news`."""

    @abstractmethod
    def _thread(self, conversation_id: str, last: int | None) -> Thread | None:
        """A conversation, or its `last` turns."""

    @abstractmethod
    def _delete(self, conversation_id: str) -> bool: ...

    @abstractmethod
    def _redact(self, conversation_id: str, index: int) -> bool: ...

    @abstractmethod
    def _set_title(self, conversation_id: str, title: str) -> bool: ...

    def _read(self, conversation_id: str, last: int | None) -> Thread | None:
        if not self.enabled:
            return None
        conversation_id = self.standing_id(self._check_id(conversation_id))
        return self._attempt(
            "read", conversation_id, None, lambda: self._thread(conversation_id, last)
        )

    def _change(
        self,
        action: AuditAction,
        operation: str,
        conversation_id: str,
        change: Callable[[str], bool],
    ) -> bool:
        with self._hooks.under_way:
            if not self.enabled:
                return False
            standing_id = self.standing_id(self._check_id(conversation_id))
            is_done = self._attempt(operation, standing_id, False, lambda: change(standing_id))
            if is_done and action == "forgotten":
                self._tell_removed(standing_id)
            if is_done:
                self._hooks.on_change(action, conversation_id, 1)
            return is_done

    def _check_turn(self, turn: NewTurn) -> Turn:
        """The turn to store, with a time.

        Raises InvalidTurn for a role that is empty or has control characters, a time without an
        offset, and a speaker or a source that nothing could keep.
        """
        role: object = turn.role
        if not isinstance(role, str) or not role.strip():
            raise InvalidTurn("role", role, "must be a non-empty string")
        if any(unicodedata.category(character) in {"Cc", "Cs"} for character in role):
            raise InvalidTurn("role", role, "must not contain control characters")
        if not isinstance(turn.intent_id, str):
            raise InvalidTurn("intent_id", turn.intent_id, "must be a string")
        if self._sidecar is None and (turn.speaker is not None or turn.source is not None):
            raise InvalidTurn(
                "speaker" if turn.speaker is not None else "source",
                turn.speaker if turn.speaker is not None else turn.source,
                "a thread file cannot store it, and this store has no sidecar",
            )
        now = self._clock() if turn.ts is None else turn.ts
        if turn.ts is None and now.tzinfo is None:
            # With its offset: on which day something was said is part of it.
            now = now.astimezone(UTC)
        ts_text, text = _time_text(now), turn.text
        if _SPLIT_CHARACTER.search(text):
            # Halves of a character side by side become it: a file could not tell them from it.
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return Turn(
            role=turn.role,
            text=text,
            ts=read_time(ts_text),
            ts_text=ts_text,
            intent_id=turn.intent_id,
            speaker=turn.speaker,
            source=turn.source,
        )


def _read_turns(turns: object) -> Sequence[NewTurn]:
    """The turns that have words, each speaker's name in one Unicode form.

    Raises InvalidTurn, naming the place of what is no turn.
    """
    if isinstance(turns, str | bytes | Mapping) or not isinstance(turns, Iterable):
        raise InvalidTurn("turns", turns, "must be a list of NewTurn")
    checked_turns = tuple(turns)
    for index, turn in enumerate(checked_turns):
        if not isinstance(turn, NewTurn):
            raise InvalidTurn(f"turns[{index}]", turn, "must be a NewTurn")
    news: list[NewTurn] = []
    for turn in checked_turns:
        if not isinstance(turn.text, str):
            raise InvalidTurn("text", turn.text, "must be a string")
        if turn.text.strip():
            name = composed(turn.speaker) if isinstance(turn.speaker, str) else turn.speaker
            news.append(turn if name == turn.speaker else replace(turn, speaker=name))
    return news


def _check_title(title: object) -> None:
    """Raises InvalidTurn for what is no text."""
    if not isinstance(title, str):
        raise InvalidTurn("title", title, "must be a string")


def _check_number(name: str, number: object) -> int:
    """The number itself, if it is a whole one. Raises InvalidTurn."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise InvalidTurn(name, number, "must be a whole number")
    return number


def surround_writes(store: StoreT, hooks: WriteHooks) -> StoreT:
    """The store itself, from now on with hooks around its writes."""
    store._hooks = hooks
    return store


def replace_turns(
    store: Conversations, conversation_id: str, new: Replacement, moved: Callable[[], object]
) -> bool:
    """What sync does to a conversation; False where its turns are not `new.before`.

    `moved` is called once they are replaced, before listeners are told of what is lost. Raises
    StoreError.
    """
    check_id(conversation_id)
    is_done = store._replace_turns(conversation_id, new)
    if is_done:
        store._hooks.on_change("changed", conversation_id, 1)
        moved()
    if is_done and new.lost:
        store._tell_removed(conversation_id)
    return is_done


def thread_as_stored(store: Conversations, conversation_id: str) -> Thread | None:
    """The conversation of exactly this id, or None: what sync asks for."""
    check_id(conversation_id)
    return store._attempt(
        "read", conversation_id, None, lambda: store._thread(conversation_id, None)
    )


def said_in(turns: Iterable[Turn]) -> list[tuple[str, str, str, str]]:
    """What a thread file has of each turn: equal lists are equal threads."""
    return [(turn.role, turn.text, turn.ts_text, turn.intent_id) for turn in turns]


def summary_of(conversation_id: str, document: ThreadDocument) -> ThreadSummary:
    """A thread in a list: its own title or its first question, and its latest turn, both short."""
    first_question = next(
        (t.text for t in document.turns if t.role == "user" and t.text.strip()), ""
    )
    return ThreadSummary(
        conversation_id=conversation_id,
        title=_label(document.title, _TITLE_CHARACTERS)
        or _label(first_question, _TITLE_CHARACTERS)
        or NEW_CHAT,
        preview=_label(document.turns[-1].text if document.turns else "", _PREVIEW_CHARACTERS),
        turn_count=len(document.turns),
        updated=read_time(document.updated),
    )


def _label(text: str, characters: int) -> str:
    # That many words are long enough, and the latest turn may be ten megabytes long.
    words = " ".join(text.split(None, characters)[:characters])
    return words if len(words) <= characters else words[:characters] + "…"


def _time_text(instant: object) -> str:
    if not isinstance(instant, datetime) or instant.utcoffset() is None:
        raise InvalidTurn("ts", instant, "must be a datetime with an offset")
    if not has_utc(instant):
        raise InvalidTurn("ts", instant, "must lie in the years 1 to 9999 in UTC")
    return format_time(instant)
