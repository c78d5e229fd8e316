"""The keys of an encrypted home: made, loaded, exported, imported, and the master key replaced.

The master key is kept outside (see `key_stores`) and wraps the data key in `sealed.json`. A new
master key costs one small file; `conversion.rekey` encrypts everything under a new data key.
"""

from __future__ import annotations

import hmac
from dataclasses import replace

from anaphora.errors import InvalidInput, MissingKey, Tampered, WrongKey
from anaphora.store.crypto import marker as markers
from anaphora.store.crypto.cipher import KEY_BYTES, Keys, export_key, import_key, unwrap, wrap
from anaphora.store.crypto.marker import Kept, Marker
from anaphora.store.home.sealing import Home


def new_marker(home: Home, kept: Kept, state: markers.State, conversion: int = 0) -> Marker:
    """Make a master key and a data key; the master key is kept when this returns."""
    master, data_key = home.random(KEY_BYTES), home.random(KEY_BYTES)
    keys = Keys(data_key, home.random)
    identity = home.random(8).hex()
    marker = Marker(
        home=identity,
        kept=kept,
        state=state,
        generation=1,
        wrapped=wrap(master, data_key, identity, home.random),
        check=keys.check,
        conversion=conversion,
    )
    home.key_store(kept).put(marker.key_name, master)
    return markers.signed(marker, keys.of("marker"))


def load_keys(home: Home, marker: Marker) -> Keys:
    """The keys of a sealed home. `MissingKey`, `WrongKey`; `Tampered` for a changed marker."""
    return _opened(home, marker, _master(home, marker))


def load_next_keys(home: Home, marker: Marker) -> Keys:
    """The keys that a deep rotation moves to."""
    return Keys(unwrap(_master(home, marker), marker.next, marker.home), home.random)


def wrap_next(home: Home, marker: Marker) -> Marker:
    """The marker with a new data key to move to; not signed yet."""
    data_key = home.random(KEY_BYTES)
    wrapped_key = wrap(_master(home, marker), data_key, marker.home, home.random)
    return replace(marker, next=wrapped_key, next_check=Keys(data_key, home.random).check)


def export_master_key(home: Home, passphrase: str | None = None, *, raw: bool = False) -> str:
    """The master key as a text to keep elsewhere, protected by `passphrase`.

    Only with `raw` it is the key itself, as 64 hex digits. `InvalidInput` for neither or both.
    """
    if raw == (passphrase is not None):
        raise InvalidInput("passphrase", None, "give either a passphrase or raw=True, not both")
    marker = marker_of(home)
    master = _master(home, marker)
    _opened(home, marker, master)
    return export_key(master, marker.home, passphrase, home.random)


def import_master_key(
    home: Home, exported: str, passphrase: str | None = None, *, kept: Kept | None = None
) -> None:
    """Keep an exported key for this home, where it is kept now or in `kept`.

    `WrongKey` when it is another home's or an older one; nothing is kept then.
    """
    master = import_key(exported, passphrase)
    with home.locked():
        marker = marker_of(home)
        keys = _opened(home, marker, master)
        key_place = kept or marker.kept
        home.key_store(key_place).put(marker.key_name, master)
        if key_place != marker.kept:
            put_marker(home, replace(marker, kept=key_place), keys)


def rotate_master_key(home: Home, *, kept: Kept | None = None) -> None:
    """Give the home a new master key, kept where the old one is or in `kept`.

    The data key is wrapped anew: one small file, whatever the home holds. What was exported
    before opens older backups alone. A crash leaves the old key or the new one in force, and that
    one is kept.
    """
    with home.locked():
        marker = marker_of(home)
        if marker.state != "sealed":
            raise InvalidInput(
                "home", marker.state, "its encryption or decryption is unfinished: open the home"
            )
        keys = load_keys(home, marker)
        master = home.random(KEY_BYTES)
        new_marker = replace(
            marker,
            generation=marker.generation + 1,
            kept=kept or marker.kept,
            wrapped=wrap(master, keys.data_key, marker.home, home.random),
        )
        # The new key is kept before anything needs it, the old one until nothing does.
        home.key_store(new_marker.kept).put(new_marker.key_name, master)
        put_marker(home, new_marker, keys)
        home.key_store(marker.kept).drop(marker.key_name)


def put_marker(home: Home, marker: Marker, keys: Keys) -> Marker:
    """Put the marker in place, in one step, with the MAC that belongs to it."""
    signed_marker = markers.signed(marker, keys.of("marker"))
    markers.write(home.root, signed_marker)
    return signed_marker


def marker_of(home: Home) -> Marker:
    """The marker of a sealed home. `InvalidInput` for a clear one."""
    marker = markers.read(home.root)
    if marker is None:
        raise InvalidInput("home", str(home.root), "it is not encrypted")
    return marker


def _master(home: Home, marker: Marker) -> bytes:
    master = home.key_store(marker.kept).get(marker.key_name)
    if master is None:
        key_location = "keychain" if marker.kept == "keychain" else "key file"
        lack = f"the {key_location} has no key of this home ({marker.key_name})"
        reason = f"{lack}: import the exported one"
        raise MissingKey(str(home.root), reason)
    return master


def _opened(home: Home, marker: Marker, master: bytes) -> Keys:
    keys = Keys(unwrap(master, marker.wrapped, marker.home), home.random)
    if keys.check != marker.check:
        raise WrongKey("data key", "it is not the key this home was encrypted with")
    expected_mac = markers.signed(marker, keys.of("marker")).mac
    if not hmac.compare_digest(expected_mac, marker.mac):
        raise Tampered(str(home.root / markers.MARKER), "it was changed")
    return keys
