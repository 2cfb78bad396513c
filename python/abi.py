#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes cuatomic/_abi.py, the library's interface as the public headers declare it.

Usage: abi.py INCLUDE-FOLDER > cuatomic/_abi.py

The module has the enumerators, the structs that host calls take, and the prototypes.
"""

import re
import sys
from pathlib import Path

SCALARS = {
    "int": "c_int",
    "unsigned": "c_uint",
    "size_t": "c_size_t",
    "double": "c_double",
    "uint8_t": "c_uint8",
    "uint16_t": "c_uint16",
    "uint32_t": "c_uint32",
    "uint64_t": "c_uint64",
    "int64_t": "c_int64",
}
ENUM = re.compile(r"\benum\s+(cua_\w+)\s*\{(.*?)\}", re.S)
STRUCT = re.compile(
    r"\bstruct\s+(?:__attribute__\(\(aligned\(\d+\)\)\)\s+)?(cua_\w+)\s*\{(.*?)\}\s*;", re.S
)
PROTOTYPE = re.compile(r"\bCUA_API\s+([^;{}#]*?)\b(cua_\w+)\(([^;{}#]*?)\);", re.S)
CONSTANT = re.compile(r"^#define\s+(CUA_\w+)\s+\(?(\d+)u?(?:\s*<<\s*(\d+))?\)?\s*$", re.M)


def read_headers(folder):
    """The text of the public headers without comments and macro bodies, and the plain constants."""
    texts, constants = [], {}
    for path in sorted(Path(folder).glob("cuatomic/**/*.h")):
        text = re.sub(r"/\*.*?\*/", " ", path.read_text(encoding="utf-8"), flags=re.S)
        for name, value, shift in CONSTANT.findall(text):
            constants[name] = int(value) << int(shift or 0)
        listed = [line for line in re.findall(r"^\s*X\((\w+), (-?\d+),", text, re.M)]
        if listed:
            texts.append("enum cua_status {%s};" % ",".join("%s = %s" % pair for pair in listed))
        texts.append(re.sub(r"^#(?:.*\\\n)*.*$", "", text, flags=re.M))
    return "\n".join(texts), constants


def read_enums(text):
    enums, known = {}, {}
    # an enumerator may have the value of another that a later header defines
    for _ in range(2):
        for name, body in ENUM.findall(text):
            values, following = {}, 0
            for item in filter(None, (part.strip() for part in body.split(","))):
                label, _, value = (part.strip() for part in item.partition("="))
                if not re.fullmatch(r"CUA_[A-Z0-9]\w*", label):
                    continue
                if value:
                    following = known.get(value, 0) if value[0].isalpha() else int(value, 0)
                values[label] = known[label] = following
                following += 1
            if values and len(values) >= len(enums.get(name, ())):
                enums[name] = values
    return enums


class Unknown(Exception):
    """A type that no host call needs from Python."""


def field_type(words, constants):
    """The ctypes expression of a declaration `type name[n]`, and the name."""
    match = re.fullmatch(
        r"(?:const\s+)?((?:struct|enum)\s+)?(\w+)([\s*]*(?:const)?[\s*]*)(\w+)((?:\[\w+\])*)", words
    )
    if not match:
        raise Unknown(words)
    tag, base, stars, name, sizes = match.groups()
    if "*" in stars:
        kind = "c_void_p"
    elif tag and tag.startswith("enum"):
        kind = "c_int"
    elif tag:
        kind = base
    elif base == "char":
        kind = "c_char"
    elif base in SCALARS:
        kind = SCALARS[base]
    else:
        raise Unknown(words)
    for size in re.findall(r"\[(\w+)\]", sizes):
        kind = "%s * %d" % (kind, constants[size] if size in constants else int(size))
    return kind, name


def read_structs(text, constants):
    structs = {}
    for name, body in STRUCT.findall(text):
        fields = []
        try:
            for line in filter(None, (part.strip() for part in body.split(";"))):
                first, *others = [part.strip() for part in line.split(",")]
                kind, field = field_type(first, constants)
                fields.append((field, kind))
                fields += [(other, kind) for other in others]
        except (Unknown, ValueError):
            continue
        structs[name] = fields
    return structs


def parameter(words):
    words = " ".join(words.split())
    if words == "void":
        return None
    if "(*" in words or "*" in words:
        return "p"
    match = re.fullmatch(r"(?:const )?(enum )?(\w+) \w+", words)
    if match.group(1):
        return "i"
    return {
        "int": "i",
        "unsigned": "I",
        "size_t": "N",
        "uint32_t": "L",
        "uint64_t": "Q",
        "double": "d",
    }[match.group(2)]


def read_prototypes(text):
    prototypes = {}
    for result, name, arguments in PROTOTYPE.findall(text):
        result = " ".join(result.split())
        if result == "void":
            code = "-"
        elif result == "const char *":
            code = "s"
        elif result.endswith("*"):
            code = "p"
        else:
            code = parameter(result + " x")
        # a comma inside parentheses belongs to a function pointer
        parts = re.split(r",(?![^(]*\))", arguments)
        prototypes[name] = code + "".join(filter(None, map(parameter, parts)))
    return prototypes


def needed(structs, text):
    """The structs in prototypes, with the structs inside them, in an order of definition."""
    named = {
        name
        for _, _, arguments in PROTOTYPE.findall(text)
        for name in re.findall(r"\bstruct\s+(cua_\w+)\s*\*", arguments)
    }
    order = []

    def visit(name):
        if name in order:
            return
        for _, kind in structs[name]:
            inner = kind.split(" ")[0]
            if inner.startswith("cua_"):
                if inner not in structs:
                    raise Unknown(inner)
                visit(inner)
        order.append(name)

    for name in structs:
        if name in named:
            try:
                visit(name)
            except Unknown:
                pass
    return order


def main():
    text, constants = read_headers(sys.argv[1])
    structs = read_structs(text, constants)
    order = needed(structs, text)
    kinds = {kind.split(" ")[0] for name in order for _, kind in structs[name]}
    used = sorted(kind for kind in kinds if kind.startswith("c_"))
    out = [
        "# SPDX-License-Identifier: MIT",
        '"""The library\'s interface, made from the public headers by abi.py: not to be edited."""',
        "",
        "from ctypes import (",
        "    Structure,",
        *("    %s," % name for name in used),
        ")",
        "",
        'SONAME = "libcuatomic.so.0"',
        "",
    ]
    for name, values in sorted(read_enums(text).items()):
        out += [
            "# enum %s" % name,
            *("%s = %d" % (label, value) for label, value in values.items()),
            "",
        ]
    for name in order:
        out += ["", "class %s(Structure):" % name, "    _fields_ = ["]
        out += ['        ("%s", %s),' % field for field in structs[name]]
        out += ["    ]", ""]
    out += [
        "",
        "# The result and the parameters of each function, a letter each: - void, s string,",
        "# p pointer, i int, I unsigned, L uint32_t, N size_t, Q uint64_t, d double.",
        "PROTOTYPES = {",
        *('    "%s": "%s",' % pair for pair in sorted(read_prototypes(text).items())),
        "}",
    ]
    print("\n".join(out))


if __name__ == "__main__":
    main()
