"""What to do next about an error: one sentence for each, for the command line and for the page.

An error says what went wrong. The sentence here says what the user can do about it, without
assuming any knowledge of the program. A message that already names a command needs none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from anaphora import errors
from anaphora.errors import AnaphoraError

_COMMAND: Final = re.compile(r"`(?:anaphora |sync |mirror |doctor |pip |uv )|; run: ")
"""A command in a message, which is its own next step."""

_NO_FILE: Final = "No such file"
_DAMAGED: Final = "it is damaged"

STEPS: Final[Mapping[type[AnaphoraError], str]] = {
    errors.AnaphoraError: "Run `anaphora doctor`: it finds what is wrong and how to repair it.",
    errors.InvalidInput: "Correct it and try again; `--help` lists what a command takes.",
    errors.FilterError: "Correct the filter at that place and try again.",
    errors.Conflict: "Read it again, then repeat your change.",
    errors.UnknownFormat: "Export it again as one of the formats listed, and import that file.",
    errors.UnreadableDocument: "Open the file in its own program, save it as PDF or text, and add "
    "that.",
    errors.NotFound: "`anaphora recall WORDS` shows matching entries with their ids.",
    errors.NoHome: "If there should be one, correct --home or ANAPHORA_HOME; `anaphora start` "
    "or the first `anaphora remember` begins it.",
    errors.StoreError: "Check that the folder is there and that your user may write to it; "
    "`anaphora doctor` finds what else is wrong.",
    errors.ReadOnly: "Allow your user to write to this folder, or choose another one with --home.",
    errors.DiskFull: "Free some disk space, then do the same again; nothing was half-written.",
    errors.Locked: "Close that program, or wait until it is done; then do the same again.",
    errors.CorruptThread: "Run `anaphora doctor --repair`; if the conversation matters, restore "
    "your last backup into a new home.",
    errors.NotEmpty: "Choose a name that does not exist yet.",
    errors.DamagedBackup: "Copy the file again from where it was made, or use an older backup.",
    errors.SchemaTooNew: "Update Anaphora on this computer to the version that wrote it.",
    errors.SchemaTooOld: "Run `anaphora export FILE` with the build that wrote it, then "
    "`anaphora --home NEW import FILE` with this one.",
    errors.Unreadable: "Run `anaphora doctor --repair`.",
    errors.EmbeddingError: "Search by keyword works meanwhile; `anaphora doctor` says what is "
    "wrong with the model.",
    errors.ModelIntegrityError: "Install Anaphora again: a file of it was changed.",
    errors.EmbedderNotReady: "Wait a few seconds and try again.",
    errors.EndpointUnreachable: "Start that server (for Ollama: `ollama serve`), then try again.",
    errors.EndpointDenied: "Set ANAPHORA_EMBEDDER_KEY to a valid key.",
    errors.EndpointModelUnknown: "Load the model on that server (for Ollama: `ollama pull MODEL`).",
    errors.EmbedderChanged: "Run `anaphora reindex --embedder` with the embedder's name.",
    errors.ReaderError: "Nothing: answers come in the order they have without it. `anaphora "
    "doctor` says what is wrong with the reader.",
    errors.EncryptionError: "Import your exported key with `anaphora key import FILE`.",
    errors.NoKeyringError: "Log in to your desktop so that its keychain opens, or import the key "
    "with `anaphora key import FILE --kept file`.",
    errors.MissingKey: "Import your exported key with `anaphora key import FILE`.",
    errors.WrongKey: "Look for the key or passphrase that belongs to this home and try again.",
    errors.Tampered: "Restore your last backup: `anaphora --home NEW restore FILE`.",
    errors.SealChanged: "Start the program again: the home is encrypted or decrypted now.",
    errors.ModelError: "Check the model's server and your key, then ask again.",
    errors.ModelTimeout: "Ask again, with more time (`--seconds`) or a smaller question.",
    errors.NoModel: "Set ANAPHORA_MODEL and its key; recall works without.",
    errors.SyncError: "Run `anaphora sync status`; nothing is lost, it is sent the next time.",
    errors.RemoteError: "Check the network, or that the folder is mounted, then run `anaphora sync "
    "now`; nothing is lost.",
    errors.RemoteTampered: "Run `anaphora sync verify` on your other devices before you go on.",
    errors.Diverged: "Run `anaphora sync fork` on the copy: it goes on as a device of its own.",
    errors.DeviceRemoved: "If it should take part again, run `anaphora sync leave` and join by a "
    "new code from `anaphora sync pair`.",
    errors.PairingFailed: "Run `anaphora sync pair` again and type the new code within ten "
    "minutes.",
    errors.MirrorError: "Check that the folder is there and can be written, then run `anaphora "
    "mirror now`.",
    errors.ServerError: "Check the address: it is the one that `anaphora serve` prints.",
    errors.ServerUnreachable: "Check that `anaphora serve` runs there, then try again.",
    errors.AccessDenied: "Ask the server's owner for a token: `anaphora token create NAME`.",
    errors.NotOffered: "Run the command on the computer that has the memory.",
    errors.SandboxError: "Run `anaphora doctor`: it says what the sandbox lacks.",
    errors.CommandRefused: "Read the message and use another command.",
    errors.TimedOut: "Ask again, with more time.",
    errors.Cancelled: "Ask again when you want the answer.",
    errors.MissingExtra: "Install what is missing on that computer: see the page Install of the "
    "documentation.",
    errors.Closed: "Start the program again.",
}
"""What to do, by the class of the error; a class without an entry uses that of its base."""

_FIELDS: Final[Mapping[str, str]] = {
    "path": "Check the name, or run `anaphora import` alone: it looks for exports itself.",
    "root": "Check the folder's name, or run it inside the project's folder without a name.",
    "remote": "Check that the folder or server is there, then run the same command again.",
    "port": "Choose another one: `anaphora serve --port 8001`.",
    "code": "Run `anaphora sync pair` on the other device and type the code that it shows.",
    "key": "Run `anaphora sync key` on the other device and use exactly what it prints.",
    "embedder": "Use one of the names listed; `minilm` is included and needs nothing else.",
    "database": "Correct ANAPHORA_DATABASE, or unset it to use a file in the home.",
}
"""What to do about invalid input, by the field or argument."""

_KINDS: Final[Mapping[str, str]] = {
    "namespace": "`anaphora namespace list` shows those that exist.",
    "conversation": "`anaphora conversation list` shows their ids.",
    "document": "`anaphora document list` shows their names and ids.",
    "project": "`anaphora project list` shows those that are indexed.",
    "token": "`anaphora token list` shows their names and ids.",
    "trace": "`anaphora deep --traces` shows those that are stored.",
    "memory": "`anaphora list` shows the memories and their ids.",
}
"""What to do about something that does not exist, by its kind."""

PROBLEMS: Final[Mapping[str, str]] = {
    "busy": "Wait a few seconds and try again; nothing was changed.",
    "gone": "Send it again.",
    "host": "Open the address that the server printed, or start it with --allow-host NAME.",
    "internal": "Try again; if it happens again, run `anaphora doctor` on the server's computer.",
    "invalid_input": "Correct the field that is named and send it again.",
    "method": "Look the route up in /openapi.json.",
    "namespace": "Choose a namespace that your token opens, or ask the server's owner for access.",
    "not_found": "Go back and reload: it may have been deleted meanwhile.",
    "origin": "Open the page at the server's own address.",
    "project": "Ask the server's owner to start it with --projects FOLDER.",
    "rate": "Wait a moment and try again.",
    "read_only": "Ask the server's owner for a token that may write.",
    "refused": "Look the request up in /openapi.json.",
    "timeout": "Wait a moment, then look whether it was done before you repeat it.",
    "token": "Open the link that `anaphora start` or `anaphora serve` prints, or ask the server's "
    "owner for a token.",
    "too_large": "Send it in smaller parts.",
    "unreadable": "Correct the request and send it again.",
}
"""What to do about a refusal of the server itself, by the problem's name."""


def next_step(error: AnaphoraError, *, on_this_machine: bool = True) -> str:
    """One sentence that says what to do about the error; never empty.

    A reader who is not `on_this_machine` gets no command that contains a local path.
    """
    if isinstance(error, errors.NotFound) and not on_this_machine:
        return PROBLEMS["not_found"]
    if isinstance(error, errors.NotFound) and error.kind in _KINDS:
        return _KINDS[error.kind]
    if isinstance(error, errors.MissingExtra) and error.command and on_this_machine:
        return f"Run: {error.command}"
    if isinstance(error, errors.InvalidInput):
        if _NO_FILE in error.reason:
            return "Check the name of the file and the folder that it is in."
        if type(error) is errors.InvalidInput and error.what in _FIELDS:
            return _FIELDS[error.what]
    if isinstance(error, errors.StoreError) and _DAMAGED in error.reason:
        return "Restore your last backup into a new home: `anaphora --home NEW restore FILE`."
    if isinstance(error, errors.NotEmpty) and error.operation == "restore into":
        return "Restore into a home of its own: `anaphora --home NEW restore FILE`."
    is_locked = isinstance(error, errors.Locked)
    if (
        isinstance(error, errors.StoreError)
        and not is_locked
        and error.path.startswith("postgresql")
    ):
        return "Start the database server, or correct ANAPHORA_DATABASE; nothing stored is lost."
    return next(STEPS[kind] for kind in type(error).__mro__ if kind in STEPS)


def further_step(error: AnaphoraError) -> str:
    """The next step for a reader of the message; "" if the message itself names a command."""
    return "" if _COMMAND.search(str(error)) else next_step(error)
