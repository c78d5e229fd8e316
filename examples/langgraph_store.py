"""A LangGraph graph whose long-term memory is on the disk: one import differs.

Runs without a key and without a network: the node that a model would fill just answers from memory.

    python examples/langgraph_store.py
"""

from __future__ import annotations

import tempfile
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore

from anaphora import Memory
from anaphora.adapters.langgraph import AnaphoraStore


class State(TypedDict):
    """What goes through the graph."""

    question: str
    answer: str


def answer(state: State, *, store: BaseStore) -> State:
    """Where a model would be asked: the closest item is the answer."""
    hits = store.search(("users", "mara"), query=state["question"], limit=1)
    return {"question": state["question"], "answer": hits[0].value["text"] if hits else "?"}


def main(home: str) -> None:
    """Put what is known, close, open again, ask."""
    with Memory.open(home) as memory:
        store = AnaphoraStore(memory, index={"fields": ["text"]})
        store.put(("users", "mara"), "drink", {"text": "Mara drinks green tea, never coffee."})
        store.put(("users", "mara"), "desk", {"text": "Mara works at a standing desk."})
    with Memory.open(home) as memory:
        graph = StateGraph(State)
        graph.add_node("answer", answer)
        graph.add_edge(START, "answer")
        graph.add_edge("answer", END)
        app = graph.compile(store=AnaphoraStore(memory, index={"fields": ["text"]}))
        print(app.invoke({"question": "what should I pour for her?", "answer": ""})["answer"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(folder)
