"""Reading JSON Schemas of other parties: nothing in them is taken for granted."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from handrail.conversation.blocks import Json
from handrail.tools.wording import cut

ALTERNATIVES = ("anyOf", "oneOf")
COMBINATIONS = ("allOf", *ALTERNATIVES)
CONDITIONS = ("not", "if", "then", "else")
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
OTHER_FIELDS = ("additionalProperties", "unevaluatedProperties")
PREFIXES = ("prefixItems", "items")
OTHER_ITEMS = ("items", "additionalItems", "unevaluatedItems", "contains")
MAX_CHAIN = 100


def flatten(schema: Json) -> dict[str, Any]:
    """
    The schema without combinations at its root, which model APIs refuse.

    It is never stricter than the original: the fields of all parts are listed, and only those that every alternative
    needs are required. Inputs are still checked against the original.
    """
    if not any(word in schema for word in COMBINATIONS):
        return dict(schema)
    properties = dict(_mapping(schema.get("properties")))
    required = _list(schema.get("required"))
    for word in COMBINATIONS:
        parts = [_mapping(_resolve(part, schema)) for part in _list(schema.get(word))]
        for part in parts:
            properties = dict(_mapping(part.get("properties"))) | properties
        needed = [_list(part.get("required")) for part in parts]
        if word in ALTERNATIVES:
            required += [name for name in needed[0] if all(name in names for names in needed)] if needed else []
        else:
            required += [name for names in needed for name in names]
    flat = {word: value for word, value in schema.items() if word not in COMBINATIONS}
    return flat | {"properties": properties, "required": list(dict.fromkeys(map(str, required)))}


def trouble(schema: Json, limit: int) -> str:
    """
    Why the schema must not be given to a validator; empty when it may.

    Only references that this module can follow are accepted, because it has to count what they lead to.
    """
    addresses = ("$id", "$anchor", "id") if "draft-04" in str(schema.get("$schema")) else ("$id", "$anchor")
    for node in _mappings(schema):
        for word in REFERENCES:
            reference = node.get(word)
            if isinstance(reference, str) and (word != "$ref" or _at(reference, schema) is None):
                return f"it refers to {cut(reference, 100)!r}; only references such as '#/$defs/name' are followed"
        if node is not schema and any(isinstance(node.get(word), str) for word in addresses):
            return "parts of it have an address of their own ($id or $anchor), and references could mean those"
    if unfolding(schema, limit) > limit:
        return "it multiplies without end when its references are followed"
    return ""


def unfolding(schema: Json, limit: int) -> int:
    """
    How many schemas apply to a single value at most, references followed; counting stops above the limit.

    Thirty definitions that each refer to the next one twice look harmless and apply a billion times.
    """
    known: dict[int, int] = {}

    def count_node(node: Any, depth: int) -> int:
        if not isinstance(node, Mapping):
            return 1
        if id(node) not in known:
            known[id(node)] = 1  # below itself it adds nothing
            count = 1
            for part in _parts(node, schema):
                count += count_node(part, depth + 1) if depth < MAX_CHAIN else limit
                if count > limit:
                    break
            known[id(node)] = count
        return known[id(node)]

    return max(count_node(node, 0) for node in _mappings(schema))


def branches(schema: Json) -> bool:
    """Whether several schemas can apply to the same value."""
    return any(word in node for node in _mappings(schema) for word in (*COMBINATIONS, *CONDITIONS))


def effort(schema: Json, value: Any, limit: int) -> int:
    """
    How many schemas apply to the value and everything in it, references followed; counting stops above the limit.

    Two alternatives that lead to the same definition one level deeper double the work with each level of the value.
    Every pair of schema and value is counted once, so that counting stays cheap.
    """
    known: dict[tuple[int, int], int] = {}

    def count_pair(node: Any, value: Any) -> int:
        if not isinstance(node, Mapping):
            return 1
        key = (id(node), id(value))
        if key not in known:
            known[key] = 1
            count = 1
            for part, inner in itertools.chain(((part, value) for part in _parts(node, schema)), _inside(node, value)):
                count += count_pair(part, inner)
                if count > limit or len(known) > limit:
                    count = limit + 1
                    break
            known[key] = count
        return known[key]

    try:
        return count_pair(schema, value)
    except RecursionError:
        return limit + 1


def _inside(node: Json, value: Any) -> Iterator[tuple[Any, Any]]:
    """The schemas of one node for the parts of the value; rather too many than too few."""
    if isinstance(value, Mapping):
        named = _mapping(node.get("properties"))
        yield from ((named[name], value[name]) for name in value if name in named)
        others = [node[word] for word in OTHER_FIELDS if word in node]
        yield from ((part, inner) for part in others for name, inner in value.items() if name not in named)
        patterns = _mapping(node.get("patternProperties")).values()
        yield from ((part, inner) for part in patterns for inner in value.values())
    elif isinstance(value, list):
        prefix = [part for word in PREFIXES for part in _list(node.get(word))]
        yield from zip(prefix, value, strict=False)
        others = [node[word] for word in OTHER_ITEMS if isinstance(node.get(word), Mapping)]
        yield from ((part, inner) for part in others for inner in value)


def _parts(node: Json, root: Json) -> Iterator[Any]:
    """The schemas that apply to the same value as this one."""
    for word in COMBINATIONS:
        yield from _list(node.get(word))
    for word in CONDITIONS:
        if word in node:
            yield node[word]
    yield from _mapping(node.get("dependentSchemas")).values()
    if "$ref" in node:
        yield _resolve(node, root)


def _resolve(part: Any, root: Json) -> Any:
    """The target of a reference inside the document; anything else as it is."""
    reference = part.get("$ref") if isinstance(part, Mapping) else None
    return _at(reference, root) if isinstance(reference, str) else part


def _at(reference: str, root: Json) -> Any:
    """The part of the document that a pointer such as `#/$defs/name` refers to, or None."""
    start, *steps = unquote(reference).split("/")
    node: Any = root if start == "#" else None
    for step in steps:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list):
            node = node[int(name)] if name.isdecimal() and int(name) < len(node) else None
        else:
            node = _mapping(node).get(name)
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
