# SPDX-License-Identifier: MIT
"""Compares the members of a JSON file with a schema of doc/: both must have the same, at every level.

usage: json_schema.py SCHEMA FILE
"""
import json
import sys

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float),
         "null": type(None)}


def has_type(value, name):
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def compare(schema, value, where):
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    assert not types or any(has_type(value, name) for name in types), where
    assert "const" not in schema or value == schema["const"], where
    assert "enum" not in schema or value in schema["enum"], where
    assert "minimum" not in schema or value is None or value >= schema["minimum"], where
    if isinstance(value, dict):
        assert set(value) == set(schema["required"]) == set(schema["properties"]), where
        for name in value:
            compare(schema["properties"][name], value[name], where + "." + name)
    if isinstance(value, list):
        for item in value:
            compare(schema["items"], item, where + "[]")


with open(sys.argv[1], encoding="utf-8") as s, open(sys.argv[2], encoding="utf-8") as f:
    SCHEMA, VALUE = json.load(s), json.load(f)
assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
compare(SCHEMA, VALUE, "file")
