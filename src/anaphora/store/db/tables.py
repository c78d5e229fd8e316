"""The tables of the database: one description of each, from which all else about them follows.

The SQLAlchemy schema (`schema`), what a sealed home does with each column (`crypto.columns`), the
columns of a SELECT, and how rows become values (`store.mapping`) are made from it. Plain data:
importing it imports no SQLAlchemy, as the first reads of every command come through here.

`namespace` leads every key and every index: it is the distribution column where the database
outgrows one machine. Each row has a number (`seq`) of its namespace, drawn with its last change.
Ids are random, never made from names: in a sealed home no guess must be checkable.
"""

from __future__ import annotations

from typing import Final

from anaphora.store.db.table import Column, Index, Reference, Table, clear, lookup, moment, sealed

TABLES: Final[dict[str, Table]] = {}
"""Every table by its name, in the order in which they are made."""


def _table(
    name: str,
    key: tuple[str, ...],
    *columns: Column,
    anchor: str = "",
    references: tuple[Reference, ...] = (),
    indexes: tuple[Index, ...] = (),
    by_key: bool = False,
) -> Table:
    columns = (clear("namespace"), *columns)
    table = Table(name, ("namespace", *key), columns, anchor, references, indexes, by_key=by_key)
    TABLES[name] = table
    return table


# `audit` says whether an audit trail is kept, and its tip ("on 12 <link>"), NULL if never.
HEAD = _table(
    "head",
    (),
    clear("seq", "big"),
    clear("audit", needed=False),
)

CONVERSATION_NOTE = _table(
    "conversation_note",
    ("conversation_id",),
    lookup("conversation_id", needed=True),
    clear("source", needed=False),
    sealed("source_key", filled=True),
    lookup("branch_of"),
    clear("branch_at", "integer", needed=False),
    clear("seq", "big"),
    anchor="source_key",
    indexes=(Index("conversation_note_seq", "seq"),),
)

# Where an agent's session took place. What is not known is "": no sealed column may be empty here.
SESSION_PLACE = _table(
    "session_place",
    ("conversation_id",),
    lookup("conversation_id", needed=True),
    sealed("client", needed=True),
    sealed("directory", needed=True),
    sealed("repository", needed=True),
    sealed("branch", needed=True),
    clear("seq", "big"),
    indexes=(Index("session_place_seq", "seq"),),
)

TURN_NOTE = _table(
    "turn_note",
    ("conversation_id", "position"),
    lookup("conversation_id", needed=True),
    clear("position", "integer"),
    # Sealed, because a guess of a short turn could be checked against its hash.
    sealed("turn_hash", needed=True, digest=True),
    sealed("speaker"),
    clear("source", needed=False),
    sealed("source_key"),
    sealed("message_key"),
    lookup("chat_key", digest=True),
    clear("seq", "big"),
    anchor="turn_hash",
    indexes=(Index("turn_note_chat", "chat_key"), Index("turn_note_seq", "seq")),
)

# A table of its own: the place of a forgotten turn may be taken by another turn, and the source
# message must stay known all the same, or the next import would bring it back.
FORGOTTEN_TURN = _table(
    "forgotten_turn",
    ("identity_key",),
    lookup("identity_key", needed=True, digest=True),
    lookup("conversation_id", needed=True),
    clear("position", "integer"),
    clear("source", needed=False),
    sealed("source_key", filled=True),
    sealed("message_key"),
    lookup("chat_key", digest=True),
    clear("seq", "big"),
    anchor="source_key",
    indexes=(
        Index("forgotten_turn_place", "conversation_id", "position"),
        Index("forgotten_turn_seq", "seq"),
        Index("forgotten_turn_chat", "chat_key"),
    ),
)

# A conversation, where threads live in the database. `stamp` is a random number drawn with each
# change of its turns: equal stamps mean the same turns, also after the database was put back to an
# earlier moment and went on differently. A deleted one keeps its row, for followers. `opening` is
# the place of the first words of the user, which name a conversation without a title.
THREAD = _table(
    "thread",
    ("conversation_id",),
    lookup("conversation_id", needed=True),
    clear("seq", "big"),
    clear("stamp", "big"),
    clear("turn_count", "integer"),
    clear("opening", "integer", needed=False),
    clear("deleted", "flag"),
    sealed("title", needed=True),
    sealed("updated_text", needed=True, digest=True),
    anchor="updated_text",
    indexes=(Index("thread_seq", "seq", unique=True),),
)

# A turn of such a conversation, positions without gaps from 0. `stamp` is that of the thread after
# the write that brought the turn; where turns are changed, all of the thread get the new one. So a
# turn that still has the stamp of a moment tells that nothing before it has changed since. There is
# no foreign key: sealing a home changes conversation ids row by row.
TURN = _table(
    "turn",
    ("conversation_id", "position"),
    lookup("conversation_id", needed=True),
    clear("position", "integer"),
    clear("seq", "big"),
    clear("stamp", "big"),
    sealed("role", needed=True),
    sealed("text", needed=True),
    sealed("ts_text", needed=True),
    sealed("intent_id", needed=True),
    sealed("turn_hash", needed=True, digest=True),
)

# A memory as it stands. `seq` is the number of its last change, so that a follower sees changes as
# it sees new rows; `record_event` tells how it came to be what it is. An empty `same_key` marks a
# memory that stands for itself: nothing restates it and nothing is linked to it. By `core` those of
# the core block are found: it repeats what `type` and, sealed, `origin` say.
RECORD = _table(
    "record",
    ("record_id",),
    clear("record_id"),
    clear("seq", "big"),
    clear("kind"),
    clear("type"),
    sealed("text", needed=True),
    sealed("path"),
    sealed("category"),
    sealed("tags", "texts"),
    sealed("payload", "json"),
    sealed("origin", "mapping"),
    clear("parent", needed=False),
    clear("supersedes", needed=False),
    clear("superseded_by", needed=False),
    moment("created_at"),
    moment("valid_from"),
    moment("valid_until", needed=False),
    moment("expires_at", needed=False),
    moment("forgotten_at", needed=False),
    clear("reinforced", "integer"),
    moment("last_reinforced"),
    lookup("same_key", needed=True, digest=True),
    lookup("path_key", digest=True),
    clear("core", "integer", needed=False, loose=True),
    anchor="text",
    indexes=(
        Index("record_core", "core", "seq", filled="core"),
        Index("record_same", "same_key"),
        Index("record_seq", "seq", unique=True),
        Index("record_path", "path_key", filled="path_key"),
        Index("record_parent", "parent", filled="parent"),
        Index("record_supersedes", "supersedes", filled="supersedes"),
        Index("record_superseded_by", "superseded_by", filled="superseded_by"),
        Index("record_payload", "seq", filled="payload"),
    ),
)

# Every time that a memory was said or changed: `at` is when, `origin` a JSON object with the source
# and the words of that time where they differ, or with what a change has replaced.
RECORD_EVENT = _table(
    "record_event",
    ("record_id", "seq"),
    clear("record_id"),
    clear("seq", "big"),
    clear("kind"),
    moment("at"),
    sealed("tags", "texts"),
    sealed("origin", "mapping", filled=True),
    anchor="origin",
    references=(Reference("record_event_of", "record_id", "record", "record_id"),),
    by_key=True,
)

# One row for a pair and kind, kept in the order of its ids where the kind has no direction: a
# pair can count only once, ever.
LINK = _table(
    "link",
    ("record_id", "other_id", "kind"),
    clear("record_id"),
    clear("other_id"),
    clear("kind"),
    clear("strength", "float", needed=False),
    clear("seq", "big"),
    references=(
        Reference("link_of", "record_id", "record", "record_id"),
        Reference("link_to", "other_id", "record", "record_id"),
    ),
    indexes=(Index("link_seq", "seq"), Index("link_other", "other_id")),
)

# What was deleted for good: its id and the number of the deletion, so that followers drop it.
TOMBSTONE = _table(
    "tombstone",
    ("seq",),
    clear("seq", "big"),
    clear("kind"),
    clear("owner_id"),
)

# `data` is `dimensions` float16 numbers, little-endian. `text_hash` is the hash of the text that
# was embedded: a vector of an older text is never taken for one of the present text.
VECTOR = _table(
    "vector",
    ("record_id", "embedder", "part"),
    clear("record_id"),
    clear("embedder"),
    clear("part", "integer"),
    sealed("text_hash", needed=True, digest=True),
    sealed("data", "bytes", needed=True),
    clear("seq", "big"),
    references=(Reference("vector_of", "record_id", "record", "record_id"),),
    indexes=(Index("vector_seq", "embedder", "seq"),),
)

# The file of a document, in pieces: `data` are its bytes from `position` pieces on.
DOCUMENT_FILE = _table(
    "document_file",
    ("record_id", "position"),
    clear("record_id"),
    clear("position", "integer"),
    sealed("data", "bytes", needed=True),
    clear("seq", "big"),
    references=(Reference("document_file_of", "record_id", "record", "record_id"),),
)

# A project that is or was indexed. `indexed_at` is empty until a pass was finished; `stale` is 1
# from the first change of its files until the graph has been brought in line with them. `folders`
# is a JSON object from path to modification time, by which new files are noticed; `head` the
# commit up to which history was read.
PROJECT = _table(
    "project",
    ("project_id",),
    clear("project_id"),
    clear("seq", "big"),
    sealed("name", needed=True),
    sealed("root", needed=True),
    lookup("root_key", needed=True, digest=True),
    moment("made_at"),
    moment("indexed_at", needed=False),
    clear("stale", "flag", loose=True),
    sealed("head"),
    sealed("folders", "mapping"),
    anchor="name",
    indexes=(Index("project_root", "root_key", unique=True),),
)

# A file of a project, also one that was looked at and left out (`skipped` says why). `size`,
# `mtime_ns` and `inode` are as they were when it was read, `mtime_ns` negative where the file may
# have changed again within the clock's grain. `facts` is a JSON object of what the graph is made
# of: imports, symbols, commands, packages, title. `parser` is the version of what read it.
SOURCE_FILE = _table(
    "source_file",
    ("file_id",),
    clear("file_id"),
    clear("project_id"),
    clear("seq", "big"),
    sealed("path", needed=True),
    lookup("path_key", needed=True, digest=True),
    lookup("content_hash", needed=True, digest=True),
    clear("role"),
    clear("language", needed=False),
    clear("skipped", needed=False),
    clear("parser", "integer"),
    clear("size", "big"),
    clear("mtime_ns", "big"),
    clear("inode", "big"),
    moment("changed_at"),
    # Large, and left out where files are only looked at: it cannot count as empty there.
    sealed("facts", "mapping", filled=True),
    anchor="path",
    references=(Reference("source_file_of", "project_id", "project", "project_id"),),
    indexes=(
        Index("source_file_seq", "project_id", "seq"),
        Index("source_file_path", "project_id", "path_key", unique=True),
    ),
)

# A part of a file, whole lines of it. `text_hash` is that of the words to embed, by which sections
# find their vectors: a file that was moved, or text that returns, is embedded once.
SECTION = _table(
    "section",
    ("section_id",),
    clear("section_id"),
    clear("project_id"),
    clear("file_id"),
    clear("seq", "big"),
    clear("position", "integer"),
    clear("kind"),
    sealed("title", needed=True),
    sealed("heading", "texts"),
    sealed("symbol"),
    sealed("text", needed=True),
    clear("start_line", "integer"),
    clear("end_line", "integer"),
    moment("changed_at"),
    lookup("text_hash", needed=True, digest=True),
    anchor="text",
    references=(Reference("section_of", "file_id", "source_file", "file_id"),),
    indexes=(
        Index("section_project", "project_id"),
        Index("section_seq", "seq", unique=True),
        Index("section_file", "file_id"),
        Index("section_text", "text_hash"),
    ),
)

# `data` is `dimensions` float16 numbers, little-endian, as in `vector`.
SECTION_VECTOR = _table(
    "section_vector",
    ("text_hash", "embedder", "part"),
    lookup("text_hash", needed=True, digest=True),
    clear("embedder"),
    clear("part", "integer"),
    sealed("data", "bytes", needed=True),
    clear("seq", "big"),
    indexes=(Index("section_vector_seq", "embedder", "seq"),),
)

# Something that notes and files speak of. A note is one as well (`record_id`), of no project. What
# is no longer there has `gone_at`; `file_id` names the file where it is, without a constraint, as
# a file that was deleted leaves its entity. `summary` is a line to show.
ENTITY = _table(
    "entity",
    ("entity_id",),
    clear("entity_id"),
    clear("project_id", needed=False),
    clear("seq", "big"),
    clear("kind"),
    sealed("name", needed=True),
    lookup("entity_key", needed=True, digest=True),
    sealed("summary"),
    clear("file_id", needed=False),
    clear("record_id", needed=False),
    clear("start_line", "integer", needed=False),
    clear("end_line", "integer", needed=False),
    moment("gone_at", needed=False),
    anchor="name",
    references=(
        Reference("entity_of", "project_id", "project", "project_id"),
        Reference("entity_note", "record_id", "record", "record_id"),
    ),
    indexes=(
        Index("entity_file", "file_id"),
        Index("entity_record", "record_id"),
        Index("entity_named", "entity_key", unique=True),
        Index("entity_seq", "seq"),
        Index("entity_project", "project_id"),
    ),
)

# A name by which an entity is found: a digest of its normalised form.
ENTITY_ALIAS = _table(
    "entity_alias",
    ("alias_key", "entity_id"),
    lookup("alias_key", needed=True, digest=True),
    clear("entity_id"),
    # A label of ours; sealed, it ties the name to the entity.
    sealed("kind", needed=True),
    clear("seq", "big"),
    anchor="kind",
    references=(Reference("entity_alias_of", "entity_id", "entity", "entity_id"),),
    indexes=(Index("entity_alias_entity", "entity_id"),),
)

# What one entity is to another, as `source_id` states it: a file's id, a note's, or "" for the
# shape of the project itself. One row for each statement: one that holds again becomes active
# again. `supersedes` is the id of the relation that it took the place of.
RELATION = _table(
    "relation",
    ("relation_id",),
    clear("relation_id"),
    clear("project_id", needed=False),
    clear("seq", "big"),
    clear("subject_id"),
    clear("predicate"),
    clear("object_id"),
    clear("source_id"),
    clear("status"),
    clear("strength", "float"),
    moment("valid_from"),
    moment("valid_until", needed=False),
    clear("supersedes", needed=False),
    sealed("detail", filled=True),
    anchor="detail",
    references=(
        Reference("relation_of", "project_id", "project", "project_id"),
        Reference("relation_subject", "subject_id", "entity", "entity_id"),
        Reference("relation_object", "object_id", "entity", "entity_id"),
    ),
    indexes=(
        Index("relation_source", "source_id"),
        Index("relation_triple", "subject_id", "predicate", "object_id", "source_id", unique=True),
        Index("relation_project", "project_id"),
        Index("relation_to", "object_id"),
        Index("relation_seq", "seq"),
    ),
)

# A commit or a rename of a project's past. `text` is the subject line, `commit_name` what version
# control calls it, `paths` a JSON list; of a rename, the old path and then the new one.
HISTORY_ITEM = _table(
    "history_item",
    ("item_id",),
    clear("item_id"),
    clear("project_id"),
    clear("seq", "big"),
    clear("kind"),
    moment("at"),
    lookup("item_key", needed=True, digest=True),
    sealed("text", needed=True),
    sealed("commit_name"),
    sealed("paths", "texts"),
    anchor="text",
    references=(Reference("history_item_of", "project_id", "project", "project_id"),),
    indexes=(
        Index("history_item_at", "project_id", "at"),
        Index("history_item_seq", "seq"),
        Index("history_item_named", "item_key", unique=True),
    ),
)

# Which paths an item of history touched, to find it by them.
HISTORY_PATH = _table(
    "history_path",
    ("path_key", "item_id"),
    lookup("path_key", needed=True, digest=True),
    clear("item_id"),
    moment("at"),
    references=(Reference("history_path_of", "item_id", "history_item", "item_id"),),
    indexes=(Index("history_path_item", "item_id"),),
)

# An answer that may be given again. `answer_key` is a digest of what was asked, where and of which
# models; `body` the answer as JSON, `evidence` what it stood on, to see whether that has changed.
ANSWER = _table(
    "answer",
    ("answer_key",),
    lookup("answer_key", needed=True, digest=True),
    clear("seq", "big"),
    moment("made_at"),
    moment("expires_at"),
    sealed("body", needed=True),
    sealed("evidence", needed=True),
    indexes=(Index("answer_made", "made_at"),),
)

# A question that memory could not answer. `question_key` is a digest of the folded question;
# `conversation_id` is where it was asked; `details` a JSON object with the scope of the question;
# `closed_by` a JSON list of the sources that closed it.
GAP = _table(
    "gap",
    ("gap_id",),
    clear("gap_id"),
    clear("seq", "big"),
    lookup("question_key", needed=True, digest=True),
    lookup("conversation_id"),
    clear("kind"),
    clear("status"),
    clear("priority", "float"),
    clear("asked", "integer"),
    moment("created_at"),
    moment("expires_at"),
    moment("closed_at", needed=False),
    sealed("question", needed=True),
    sealed("details", needed=True),
    sealed("closed_by", needed=True),
    anchor="question",
    indexes=(Index("gap_status", "status"), Index("gap_question", "question_key")),
)

# How an answer was found, to be shown again. `seen` is a JSON object that says which turns and
# memories the code could read: when one of them is forgotten, the trace goes.
TRACE = _table(
    "trace",
    ("trace_id",),
    clear("trace_id"),
    clear("seq", "big"),
    moment("made_at"),
    sealed("question", needed=True),
    sealed("body", needed=True),
    sealed("seen", needed=True, digest=True),
    indexes=(Index("trace_made", "made_at"),),
)

# Work that the end of a session has queued.
SESSION_JOB = _table(
    "session_job",
    ("job_id",),
    clear("job_id"),
    clear("seq", "big"),
    lookup("conversation_id"),
    # A label of ours; sealed, it ties the conversation to the job.
    sealed("kind", needed=True),
    moment("made_at"),
    clear("attempts", "integer"),
    anchor="kind",
)

# The content of a conversation from which facts were taken last.
EXTRACTION = _table(
    "extraction",
    ("conversation_id",),
    lookup("conversation_id", needed=True),
    clear("seq", "big"),
    moment("made_at"),
    sealed("content_hash", needed=True, digest=True),
)

# The turns that a fact was taken from: when one of them goes, or is redacted, so does the fact.
FACT_TURN = _table(
    "fact_turn",
    ("record_id", "conversation_id", "position"),
    clear("record_id"),
    lookup("conversation_id", needed=True),
    clear("position", "integer"),
    clear("seq", "big"),
    sealed("turn_hash", needed=True, digest=True),
    references=(Reference("fact_turn_of", "record_id", "record", "record_id"),),
    indexes=(Index("fact_turn_conversation", "conversation_id"),),
)

# A token is the home's, not a namespace's: all rows lie in the default one, and `scopes` is a JSON
# list of the namespaces that it opens. `token_hash` is the SHA-256 of 256 random bits, which cannot
# be guessed, so it needs no salt. `last_used` is coarse, an hour or so.
TOKEN = _table(
    "token",
    ("token_id",),
    clear("token_id"),
    clear("seq", "big"),
    sealed("name", needed=True),
    lookup("token_hash", needed=True, digest=True),
    sealed("scopes", needed=True),
    clear("read_only", "flag"),
    moment("created_at"),
    moment("expires_at", needed=False),
    moment("last_used", needed=False, loose=True),
    moment("revoked_at", needed=False),
    anchor="scopes",
    indexes=(Index("token_hash_of", "token_hash", unique=True),),
)

# Something that devices exchange changes of (`kind`: a memory, a conversation, a link). `name` says
# which; `group_key` is what it may become one with. `dirty` is 1 while what its changes add up to
# may differ from the rest of the home, `seen` the state of a thread file that was looked at last.
SYNC_ITEM = _table(
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
SYNC_PATCH = _table(
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
SYNC_COPY = _table(
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
SYNC_ENTRY = _table(
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
SYNC_STATE = _table(
    "sync_state",
    ("name",),
    clear("name"),
    sealed("value", needed=True),
)

# An entry that a server keeps for the devices of a project, which alone can read it: `body` are its
# bytes.
SYNC_HOSTED = _table(
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
SYNC_HASH = _table(
    "sync_hash",
    ("project", "hash", "device", "number"),
    clear("project"),
    clear("hash"),
    clear("device"),
    clear("number", "big"),
)

# An entry of the audit trail: `body` is JSON, without words of what it is about; `link` binds it to
# all entries before it.
AUDIT_ENTRY = _table(
    "audit_entry",
    ("number",),
    clear("number", "big"),
    sealed("body", needed=True),
    clear("link"),
)

# The key of the trail's links and digests.
AUDIT_STATE = _table(
    "audit_state",
    ("name",),
    clear("name"),
    sealed("value", needed=True),
)

# Access by OAuth, as `token` the home's: a `kind` of client that registered, or of grant that the
# owner gave one. `body` is JSON; of a secret it has the SHA-256 alone.
OAUTH = _table(
    "oauth",
    ("kind", "item_id"),
    clear("kind"),
    clear("item_id"),
    sealed("body", needed=True),
    clear("seq", "big"),
)
