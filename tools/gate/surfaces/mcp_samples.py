"""One call of each tool with right arguments, and what its answer must hold.

The calls are made in the order in which they stand here, over one home: later ones ask for what
earlier ones stored. A tool that the server lists and that has no sample here fails the gate.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tools.gate.report import must

if TYPE_CHECKING:
    from tools.gate.surfaces.mcp import Session

__all__ = ["SAMPLES"]

Sample = Callable[["Session"], None]
SAMPLES: Final[dict[str, Sample]] = {}

_PORT: Final = "Staging's database listens on port 5433."
_FERRY: Final = "The ferry to Hvar leaves at nine in the morning."


def _sample(tool: str) -> Callable[[Sample], Sample]:
    def register(sample: Sample) -> Sample:
        SAMPLES[tool] = sample
        return sample

    return register


def _has(words: str, data: Any) -> None:
    must(words in json.dumps(data, ensure_ascii=False), f"{words!r} is not in {data}")


@_sample("store_memory")
def _store_memory(session: Session) -> None:
    stored = session.call(
        "store_memory", content=_PORT, path="staging.port", tags=["staging"], payload={"port": 5433}
    )
    must(stored["action"] == "added", stored)
    session.noted["port"] = stored["id"]


@_sample("recall")
def _recall(session: Session) -> None:
    _has("5433", session.call("recall", question="which port is staging on?", kinds=["memory"]))


@_sample("recall_memory")
def _recall_memory(session: Session) -> None:
    (hit,) = session.call("recall_memory", question="which port is staging on?", topK=1)
    must((hit["id"], hit["text"]) == (session.noted["port"], _PORT), hit)


@_sample("update_memory")
def _update_memory(session: Session) -> None:
    changed = session.call(
        "update_memory", id=session.noted["port"], content="Staging's database is on port 6000."
    )
    must(changed["action"] in {"superseded", "updated"}, changed)
    session.noted["port"] = changed["id"]
    _has("6000", session.call("recall_memory", question="which port is staging on?", topK=1))


@_sample("save_turns")
def _save_turns(session: Session) -> None:
    turns = [{"role": "user", "text": _FERRY}, {"role": "assistant", "text": "Noted."}]
    saved = session.call("save_turns", conversationId="travel", turns=turns)
    must((saved["conversation_id"], saved["kept"]) == ("travel", 2), saved)


@_sample("recall_conversation")
def _recall_conversation(session: Session) -> None:
    hits = session.call(
        "recall_conversation", question="when does the ferry leave?", conversationId="travel"
    )
    must(hits[0]["text"] == _FERRY, hits)


@_sample("observe")
def _observe(session: Session) -> None:
    noted = session.call(
        "observe", text="take_berth must stay one statement: two statements lost berths.",
        kind="constraint", importance=5, project=str(session.project),
    )  # fmt: skip
    must(noted["id"], noted)


@_sample("recall_context")
def _recall_context(session: Session) -> None:
    focus = "change take_berth so that no berths are lost"
    package = session.call("recall_context", focus=focus, project=str(session.project))
    _has("berths.py", package["primary_targets"])
    _has("must stay one statement", package)


@_sample("save_diary")
def _save_diary(session: Session) -> None:
    saved = session.call(
        "save_diary", summary="Berths are taken in one statement now; next: the release notes.",
        subject="berths", project=str(session.project),
    )  # fmt: skip
    must(saved["id"], saved)


@_sample("warm_up")
def _warm_up(session: Session) -> None:
    warm = session.call("warm_up", project=str(session.project))
    _has("must stay one statement", warm["constraints"])
    _has("next: the release notes", warm)


@_sample("deep_recall")
def _deep_recall(session: Session) -> None:
    answer = session.call(
        "deep_recall", question="how often did we talk about the ferry?", scope="all_sessions"
    )
    must(answer["sources"], answer)
    unknown = "which colour has the embassy of Zanzibar?"
    session.call("deep_recall", question=unknown, scope="all_sessions")


@_sample("gaps")
def _gaps(session: Session) -> None:
    _has("Zanzibar", session.call("gaps", status="open"))


@_sample("contradictions")
def _contradictions(session: Session) -> None:
    for day in ("Wednesdays", "Thursdays"):
        stored = session.call("store_memory", content=f"The team of Ferrywell deploys on {day}.")
        session.noted[day] = stored["id"]
    _has("Thursdays", session.call("contradictions"))


@_sample("settle_contradiction")
def _settle_contradiction(session: Session) -> None:
    pair = {"id": session.noted["Thursdays"], "otherId": session.noted["Wednesdays"]}
    settled = session.call("settle_contradiction", **pair, verdict="replaces")
    must(settled["verdict"] == "replaces", settled)
    must(session.call("contradictions") == [], "it is still open")


@_sample("reopen_contradiction")
def _reopen_contradiction(session: Session) -> None:
    pair = {"id": session.noted["Thursdays"], "otherId": session.noted["Wednesdays"]}
    session.call("reopen_contradiction", **pair)
    _has("Wednesdays", session.call("contradictions"))


@_sample("search")
def _search(session: Session) -> None:
    rows = session.call("search", query="when does the ferry to Hvar leave?")["results"]
    found = [row["id"] for row in rows if row["id"].startswith("turn:")]
    must(found, rows)
    session.noted["turn"] = found[0]


@_sample("fetch")
def _fetch(session: Session) -> None:
    _has(_FERRY, session.call("fetch", id=session.noted["turn"]))


@_sample("forget")
def _forget(session: Session) -> None:
    forgotten = session.call("forget", id=session.noted["port"])
    must(forgotten["count"] >= 1, forgotten)
    rows = session.call("recall_memory", question="which port is staging on?")
    must("6000" not in json.dumps(rows), f"forgotten, and still recalled: {rows}")
