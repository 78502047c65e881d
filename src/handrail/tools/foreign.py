"""Reading a JSON Schema that somebody else wrote: nothing in it is taken for granted."""

from collections.abc import Iterator, Mapping
from typing import Any

from handrail.conversation.blocks import Json

ALTERNATIVES = ("anyOf", "oneOf")
COMBINATIONS = ("allOf", *ALTERNATIVES)
CONDITIONS = ("not", "if", "then", "else")
MAX_CHAIN = 100


def flattened(schema: Json) -> dict[str, Any]:
    """
    The schema without combinations at its root, which the APIs of models refuse.

    It says less than the original, never something else: the fields of all parts are named, and only those that every
    alternative needs are required. Inputs are still checked against the original.
    """
    if not any(word in schema for word in COMBINATIONS):
        return dict(schema)
    properties = dict(_mapping(schema.get("properties")))
    required = _list(schema.get("required"))
    for word in COMBINATIONS:
        parts = [_mapping(_followed(part, schema)) for part in _list(schema.get(word))]
        for part in parts:
            properties = dict(_mapping(part.get("properties"))) | properties
        needed = [_list(part.get("required")) for part in parts]
        if word in ALTERNATIVES:
            required += [name for name in needed[0] if all(name in names for names in needed)] if needed else []
        else:
            required += [name for names in needed for name in names]
    flat = {word: value for word, value in schema.items() if word not in COMBINATIONS}
    return flat | {"properties": properties, "required": list(dict.fromkeys(map(str, required)))}


def unfolding(schema: Json, limit: int) -> int:
    """
    How many schemas apply to one and the same value at the most, references followed; over the limit it may be more.

    Thirty definitions that each name the next one twice look harmless and apply a billion times.
    """
    known: dict[int, int] = {}

    def applied(node: Any, depth: int) -> int:
        if not isinstance(node, Mapping):
            return 1
        if id(node) not in known:
            known[id(node)] = 1  # met again below itself, it adds nothing
            count = 1
            for part in _parts(node, schema):
                count += applied(part, depth + 1) if depth < MAX_CHAIN else limit
                if count > limit:
                    break
            known[id(node)] = count
        return known[id(node)]

    return max(applied(node, 0) for node in _mappings(schema))


def _parts(node: Json, root: Json) -> Iterator[Any]:
    """The schemas that apply to the same value as this one."""
    for word in COMBINATIONS:
        yield from _list(node.get(word))
    for word in CONDITIONS:
        if word in node:
            yield node[word]
    if "$ref" in node:
        yield _followed(node, root)


def _followed(part: Any, root: Json) -> Any:
    """What a reference inside the document points to; anything else as it is."""
    reference = part.get("$ref") if isinstance(part, Mapping) else None
    if not isinstance(reference, str) or not reference.startswith("#"):
        return part
    node: Any = root
    for step in reference.split("/")[1:]:
        node = _mapping(node).get(step.replace("~1", "/").replace("~0", "~"))
    return node


def _mappings(node: Any) -> Iterator[Json]:
    waiting = [node]
    while waiting:
        match waiting.pop():
            case Mapping() as mapping:
                yield mapping
                waiting.extend(mapping.values())
            case list() as items:
                waiting.extend(items)


def _mapping(value: Any) -> Json:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else []
