"""The MCP reference memory server: its graph, one entity or relation a line (`memory.json`).

Also what its `read_graph` gives: `{"entities": […], "relations": […]}`. Each observation of an
entity is a memory, with the entity's name before its words; so is each relation. The server keeps
no times: those of the file are taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from anaphora.features.importing.formats.base import (
    Format,
    ImportFile,
    ImportItem,
    Malformed,
    as_object,
)
from anaphora.features.importing.formats.facts import key_of, payload_of, tags_of, text_or, words_at
from anaphora.features.importing.formats.json_reader import records
from anaphora.features.importing.values import ImportedMemory
from anaphora.store.hashing import digest
from anaphora.values.conversations import ImportProblem
from anaphora.values.memories import NewMemory

_NAME = "mcp_memory"


def _is_entity(value: object) -> bool:
    return isinstance(value, dict) and "entityType" in value and "observations" in value


def _is_relation(value: object) -> bool:
    return isinstance(value, dict) and "relationType" in value and "from" in value and "to" in value


def _is_graph(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("entities"), list):
        return False
    return any(map(_is_entity, value["entities"][:50]))


def _is_known(value: object) -> bool:
    return _is_entity(value) or _is_relation(value) or _is_graph(value)


def _read(file: ImportFile) -> Iterator[ImportItem]:
    for record in records(file, _is_known):
        if isinstance(record, ImportProblem):
            yield record
        elif _is_graph(record.value):
            graph = cast("dict[str, list[object]]", record.value)
            for noun, name in (("entity", "entities"), ("relation", "relations")):
                listed_elements = graph.get(name)
                elements = listed_elements if isinstance(listed_elements, list) else ()
                for number, element in enumerate(elements, start=1):
                    yield from _read_element(file, element, f"{record.place}, {noun} {number}")
        else:
            yield from _read_element(file, record.value, record.place)


def _read_element(file: ImportFile, value: object, place: str) -> Iterator[ImportItem]:
    try:
        fields = as_object(value, "a line")
        if _is_entity(fields):
            name, kind = words_at(fields, "name"), text_or(fields, "entityType")
            observations = fields.get("observations")
            if not isinstance(observations, list):
                raise Malformed("'observations' is no list")
            for number, observation in enumerate(observations, start=1):
                if not isinstance(observation, str) or not observation.strip():
                    yield file.problem(f"{place}, observation {number}", "it is no text, or blank")
                    continue
                yield ImportedMemory(
                    _NAME,
                    key_of(name, digest(observation)[:12]),
                    NewMemory(
                        f"{name}: {observation}",
                        created_at=file.modified,
                        tags=tags_of(kind),
                        payload=payload_of(entity=name, entity_type=kind),
                    ),
                    place,
                )
        elif _is_relation(fields):
            source, kind, target = (
                words_at(fields, name) for name in ("from", "relationType", "to")
            )
            yield ImportedMemory(
                _NAME,
                key_of("relation", digest(source, kind, target)[:12]),
                NewMemory(
                    f"{source} {kind} {target}",
                    created_at=file.modified,
                    payload=payload_of(**{"from": source, "relation": kind, "to": target}),
                ),
                place,
            )
        else:
            raise Malformed("neither an entity nor a relation")
    except Malformed as error:
        yield file.problem(place, str(error))


FORMAT = Format(_NAME, lambda sample: any(map(_is_known, sample.values)), _read)
