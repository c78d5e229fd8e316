"""A process that appends turns: `sql_thread_child.py DATABASE CONVERSATION COUNT LABEL`.

Prints the number of each turn once the database has acknowledged it, so that whoever kills this
process knows which turns must be there. DATABASE is a path or a URL.
"""

from __future__ import annotations

import sys

from anaphora.store.db.engine import open_database
from anaphora.store.threads.sidecar import Sidecar
from anaphora.store.threads.sql_store import SqlConversationStore


def main() -> None:
    database, conversation_id, count, label = sys.argv[1:5]
    truth = open_database(database)
    store = SqlConversationStore(truth, "default", sidecar=Sidecar(truth, "default"))
    print("ready", flush=True)
    for number in range(int(count)):
        if store.append(conversation_id, "user", f"{label} {number}", speaker=label):
            print(number, flush=True)
    truth.close()


if __name__ == "__main__":
    main()
