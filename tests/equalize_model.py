#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pictures for the example equalize, and the pictures that it has to make of them.

usage: equalize_model.py make FOLDER             writes PNG files of several kinds
       equalize_model.py check [-e] FROM TO      exits with 1 unless TO is FROM, equalized
"""
import bisect
import random
import struct
import sys
import zlib

CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def write(path, kind, width, height, data, palette=b"", depth=8):
    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    row = len(data) // height
    rows = b"".join(b"\0" + data[i * row:(i + 1) * row] for i in range(height))
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header))
        f.write(chunk(b"PLTE", palette) if palette else b"")
        f.write(chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def predictor(kind, left, up, corner):
    if kind == 3:
        return (left + up) // 2
    if kind == 4:
        guess = left + up - corner
        return min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
    return (0, left, up)[kind]


def read(path):
    """The pixels of an 8-bit PNG file, as tuples of colours and the alpha value, or None."""
    data = open(path, "rb").read()
    at, packed, palette = 8, b"", b""
    while at < len(data):
        (n,), name = struct.unpack(">I", data[at:at + 4]), data[at + 4:at + 8]
        body = data[at + 8:at + 8 + n]
        if name == b"IHDR":
            width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert depth == 8 and not interlaced
        elif name == b"PLTE":
            palette = body
        elif name == b"IDAT":
            packed += body
        at += 12 + n
    c = CHANNELS[kind]
    raw, row = zlib.decompress(packed), width * c
    last, pixels = bytes(row), []
    for y in range(height):
        line = bytearray(raw[y * (row + 1) + 1:(y + 1) * (row + 1)])
        for i in range(row):
            left, corner = (line[i - c], last[i - c]) if i >= c else (0, 0)
            line[i] = (line[i] + predictor(raw[y * (row + 1)], left, last[i], corner)) & 255
        last = bytes(line)
        pixels += [last[i:i + c] for i in range(0, row, c)]
    if kind == 3:
        return [(tuple(palette[3 * p[0]:3 * p[0] + 3]), None) for p in pixels]
    colours = c if kind in (0, 2) else c - 1
    return [(tuple(p[:colours]), p[colours] if kind in (4, 6) else None) for p in pixels]


def table(values):
    """The new value of each value: by ranks in the sorted array, not by counts."""
    ordered = sorted(values)
    below = {v: bisect.bisect_left(ordered, v) for v in set(values)}
    most = below[ordered[-1]]
    return {v: (2 * 255 * b + most) // (2 * most) if most else v for v, b in below.items()}


def equalized(pixels, each):
    colours = len(pixels[0][0])
    if each or colours == 1:
        tables = [table([p[0][c] for p in pixels]) for c in range(colours)]
        return [(tuple(t[v] for t, v in zip(tables, p[0])), p[1]) for p in pixels]
    brightness = [(54 * r + 183 * g + 19 * b) // 256 for (r, g, b), _ in pixels]
    new = table(brightness)
    return [(tuple(max(0, min(255, v + new[y] - y)) for v in p[0]), p[1]) for p, y in zip(pixels, brightness)]


def make(folder):
    draw = random.Random(1)
    foggy = [min(255, max(0, int(draw.gauss(120, 15)))) for _ in range(4 * 61 * 47)]
    n = 61 * 47
    write(folder + "/grey.png", 0, 61, 47, bytes(foggy[:n]))
    write(folder + "/rgb.png", 2, 61, 47, bytes(foggy[:3 * n]))
    write(folder + "/grey-alpha.png", 4, 61, 47, bytes(foggy[:2 * n]))
    write(folder + "/rgb-alpha.png", 6, 61, 47, bytes(foggy))
    write(folder + "/palette.png", 3, 61, 47, bytes(v % 50 for v in foggy[:n]), bytes(foggy[:150]))
    write(folder + "/one.png", 2, 1, 1, bytes([9, 80, 200]))
    write(folder + "/flat.png", 0, 9, 7, bytes([77] * 63))
    write(folder + "/two.png", 0, 4, 1, bytes([100, 101, 101, 100]))
    write(folder + "/full.png", 0, 256, 2, bytes(list(range(256)) * 2))
    write(folder + "/deep.png", 0, 61, 47, b"".join(struct.pack(">H", v * 257) for v in foggy[:n]), depth=16)


def main(arguments):
    if arguments[0] == "make":
        make(arguments[1])
        return
    each = "-e" in arguments
    source, result = arguments[-2:]
    expected, got = equalized(read(source), each), read(result)
    if expected != got:
        wrong = [i for i, (a, b) in enumerate(zip(expected, got)) if a != b]
        i = wrong[0] if wrong else 0
        sys.exit("%s: %d pixels are wrong; pixel %d is %s, not %s" % (result, len(wrong), i, got[i], expected[i]))


main(sys.argv[1:])
