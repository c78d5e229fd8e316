"""The tables of sync; see `store.db.tables`."""

from __future__ import annotations

from typing import Final

from anaphora.store.db.table import Index, Table, clear, lookup, namespaced, sealed

# Something that devices exchange changes of (`kind`: a memory, a conversation, a link). `name` says
# which; `group_key` is what it may become one with. `dirty` is 1 while what its changes add up to
# may differ from the rest of the home, `seen` the state of a thread file that was looked at last.
SYNC_ITEM = namespaced(
    "sync_item",
    ("item_key",),
    lookup("item_key", needed=True, digest=True),
    lookup("group_key", needed=True, digest=True),
    clear("kind"),
    sealed("name", needed=True),
    clear("dirty", "flag", loose=True),
    clear("seen", loose=True),
    anchor="name",
    indexes=(
        Index("sync_item_group", "group_key"),
        Index("sync_item_kind", "kind"),
        Index("sync_item_dirty", "dirty"),
    ),
)

# What one device noticed of an item at one time: `stamp` says when and which. `body` is JSON;
# `entry` the number of the entry that carries it in the log of `device`, 0 until there is one;
# `applied` is 0 until the rest of the home has it.
SYNC_PATCH = namespaced(
    "sync_patch",
    ("item_key", "stamp"),
    lookup("item_key", needed=True, digest=True),
    clear("stamp"),
    clear("device"),
    clear("entry", "big"),
    clear("applied", "flag"),
    sealed("body", needed=True),
    indexes=(Index("sync_patch_entry", "device", "entry"),),
)

# Another entry that carries a patch, too: the same was said again by several devices at once.
SYNC_COPY = namespaced(
    "sync_copy",
    ("item_key", "stamp", "device", "entry"),
    lookup("item_key", needed=True, digest=True),
    clear("stamp"),
    clear("device"),
    clear("entry", "big"),
    indexes=(Index("sync_copy_entry", "device", "entry"),),
)

# An entry of a device's log: `body` are its bytes as they are sent, until they are; `made` is when
# it was made (microseconds since 1970), `size` how many patches it has.
SYNC_ENTRY = namespaced(
    "sync_entry",
    ("device", "number"),
    clear("device"),
    clear("number", "big"),
    clear("snapshot_id"),
    clear("state"),
    clear("made", "big"),
    clear("size", "integer"),
    clear("body", "bytes", needed=False),
    indexes=(Index("sync_entry_state", "state"),),
)

# How far sync has come, its keys, and where the remote is.
SYNC_STATE = namespaced(
    "sync_state",
    ("name",),
    clear("name"),
    sealed("value", needed=True),
)

# An entry that a server keeps for the devices of a project, which alone can read it: `body` are its
# bytes.
SYNC_HOSTED = namespaced(
    "sync_hosted",
    ("project", "device", "number"),
    clear("project"),
    clear("device"),
    clear("number", "big"),
    clear("snapshot_id"),
    clear("body", "bytes"),
    clear("seq", "big"),
    indexes=(Index("sync_hosted_seq", "project", "seq"),),
)

# What hosted entries are found by: digests that devices make.
SYNC_HASH = namespaced(
    "sync_hash",
    ("project", "hash", "device", "number"),
    clear("project"),
    clear("hash"),
    clear("device"),
    clear("number", "big"),
)

TABLES: Final[tuple[Table, ...]] = (
    SYNC_ITEM,
    SYNC_PATCH,
    SYNC_COPY,
    SYNC_ENTRY,
    SYNC_STATE,
    SYNC_HOSTED,
    SYNC_HASH,
)
