# SPDX-License-Identifier: MIT
"""html_links.py FOLDER [API_INDEX]: checks a tree of HTML pages.

Links and anchors within the tree exist, resources are files of the tree, elements are closed in order, ids are unique,
each page has a title, a language and a main part, and each image has a text. With doc/api-index, the search finds each
public name, and its targets exist. Prints a line for each error. The status is 1 if there are any.
"""

import json
import os
import re
import sys
from html.parser import HTMLParser

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
# elements that the next element of the same kind, or the end of the parent, closes
OPTIONAL = {"li", "dt", "dd", "p", "tr", "td", "th", "thead", "tbody"}


class Page(HTMLParser):
    """The ids, links and resources of a page, and errors of its form."""

    def __init__(self, name, text):
        super().__init__()
        self.name = name
        self.ids = set()
        self.links = []
        self.resources = []
        self.errors = []
        self.open = []
        self.tags = set()
        self.feed(text)
        self.close()
        for tag in self.open:
            if tag not in OPTIONAL:
                self.errors.append(f"<{tag}> is not closed")
        for tag in ("title", "main", "h1"):
            if tag not in self.tags:
                self.errors.append(f"no <{tag}>")

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        if "id" in attrs:
            if attrs["id"] in self.ids:
                self.errors.append(f"two elements have the id {attrs['id']}")
            self.ids.add(attrs["id"])
        if tag == "html" and not attrs.get("lang"):
            self.errors.append("no language")
        if tag == "a" and "href" in attrs:
            if "a" in self.open[:-1]:
                self.errors.append(f"a link in a link: {attrs['href']}")
            self.links.append(attrs["href"])
        if tag == "form":
            self.links.append(attrs["action"])
        if tag == "link":
            self.resources.append(attrs["href"])
        if "src" in attrs:
            self.resources.append(attrs["src"])
        if tag == "img" and not attrs.get("alt"):
            self.errors.append(f"an image without a text: {attrs['src']}")

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        while self.open and self.open[-1] != tag and self.open[-1] in OPTIONAL:
            self.open.pop()
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            self.errors.append(f"line {self.getpos()[0]}: </{tag}> closes <{self.open[-1] if self.open else ''}>")


def main(folder, api_index=None):
    errors = []
    files = set(os.listdir(folder))
    pages = {}
    for name in sorted(files):
        if name.endswith(".html"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                pages[name] = Page(name, file.read())

    def check(name, href):
        target, _, anchor = href.partition("#")
        target = target or name
        if target not in files:
            errors.append(f"{name}: dead link {href}")
        elif anchor and anchor not in pages[target].ids:
            errors.append(f"{name}: dead anchor {href}")

    for name, page in pages.items():
        errors += [f"{name}: {error}" for error in page.errors]
        for href in page.links:
            if not re.match("[a-z]+:", href):
                check(name, href)
        for src in page.resources:
            if src not in files:
                errors.append(f"{name}: a resource that is not in the folder: {src}")
    for name in files:
        if name.endswith((".css", ".js")):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                if re.search(r"url\(|@import|https?://", file.read()):
                    errors.append(f"{name}: an external resource")

    names = 0
    if api_index:
        with open(os.path.join(folder, "search-index.js"), encoding="utf-8") as file:
            index = json.loads(file.read().partition("cuatomicReference =")[2].rstrip().rstrip(";"))
        found = {}
        for line in index["names"]:
            name, at, anchor, _, header = line.split()
            found[name] = True
            check("search-index.js", index["pages"][int(at)][0] + "#" + (name if anchor == "*" else anchor))
            check("search-index.js", index["pages"][int(header)][0] + "#" + name)
        for at, anchor, _ in index["headings"]:
            check("search-index.js", index["pages"][at][0] + "#" + anchor)
        with open(api_index, encoding="utf-8") as file:
            for line in file:
                if not line.startswith("#"):
                    names += 1
                    if line.split()[0] not in found:
                        errors.append(f"the search does not find {line.split()[0]}")
    for error in errors[:40]:
        print(error)
    print(f"{len(pages)} pages, {sum(len(p.links) for p in pages.values())} links, {names} names, {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
