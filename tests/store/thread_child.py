"""A process that appends turns: `thread_child.py DIRECTORY CONVERSATION COUNT LABEL`.

Prints the number of each turn once the store has acknowledged it, so that whoever kills this
process knows which turns must be there. Used by the tests and by bench/durability.py.
"""

from __future__ import annotations

import sys

from anaphora import ConversationStore


def main() -> None:
    directory, conversation_id, count, label = sys.argv[1:5]
    store = ConversationStore(directory, strict=True)
    print("ready", flush=True)
    for number in range(int(count)):
        if store.append(conversation_id, "user", f"{label} {number}"):
            print(number, flush=True)


if __name__ == "__main__":
    main()
