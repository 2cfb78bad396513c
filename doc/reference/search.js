/* SPDX-License-Identifier: MIT */
/* The search of the reference: over the names, pages and headings of search-index.js, which is loaded at first use. */
(function () {
	"use strict";

	var KINDS = { f: "function", m: "macro", s: "struct", e: "enum", u: "union", c: "constant" };
	var entries = null;
	var input = document.getElementById("frame-search");
	var results = document.getElementById("frame-results");
	var list = null;
	var selected = -1;

	function load(then) {
		if (entries) {
			then();
			return;
		}
		var script = document.createElement("script");
		script.src = "search-index.js";
		script.onload = function () {
			entries = entriesOf(window.cuatomicReference);
			then();
		};
		document.head.appendChild(script);
	}

	/* An entry: text as found and shown, small print, address, weight among equal ranks. */
	function entriesOf(index) {
		var all = [];
		index.names.forEach(function (line) {
			var part = line.split(" ");
			var page = index.pages[part[1]];
			var header = index.pages[part[4]];
			all.push({
				text: part[0],
				low: part[0].toLowerCase(),
				about: KINDS[part[3]] + (page === header ? "" : " of " + page[1]) + " \u00b7 " + header[1] +
					(page[2] ? " \u00b7 " + page[2] : ""),
				extra: "",
				href: page[0] + "#" + (part[2] === "*" ? part[0] : part[2]),
				header: header[0] + "#" + part[0],
				weight: "fmsuec".indexOf(part[3]),
				name: true
			});
		});
		index.pages.forEach(function (page) {
			if (page)
				all.push({ text: page[1], low: page[1].toLowerCase(), about: page[2] || "document", extra: page[2].toLowerCase(),
					href: page[0], weight: -1 });
		});
		index.headings.forEach(function (heading) {
			if (heading)
				all.push({ text: heading[2], low: heading[2].toLowerCase(), about: "section of " + index.pages[heading[0]][1],
					extra: "", href: index.pages[heading[0]][0] + "#" + heading[1], weight: 9 });
		});
		return all;
	}

	/*
	 * 0: the text, also without cua_ or a section (3). 1: its beginning. 2: the beginning of a word. 3: within the text.
	 * 4: all words are in the text or the description. 9: none.
	 */
	function rank(entry, query, words) {
		var low = entry.low, bare = low.replace(/^cua_|^cuatomic\//, "").replace(/\([137]\)$|\.h$/, ""), at;

		if (low === query || bare === query || low.replace(/\([137]\)$/, "") === query)
			return 0;
		if (low.indexOf(query) === 0 || bare.indexOf(query) === 0)
			return 1;
		at = low.indexOf(query);
		while (at > 0) {
			if (!/[a-z0-9]/.test(low.charAt(at - 1)))
				return 2;
			at = low.indexOf(query, at + 1);
		}
		if (low.indexOf(query) >= 0)
			return 3;
		return words.every(function (word) {
			return low.indexOf(word) >= 0 || entry.extra.indexOf(word) >= 0;
		}) ? 4 : 9;
	}

	function find(text) {
		var query = text.trim().toLowerCase().replace(/\(\)$/, "");
		var words = query.split(/\s+/);

		if (!query)
			return [];
		return entries.map(function (entry) {
			return { entry: entry, rank: rank(entry, query, words) };
		}).filter(function (hit) {
			return hit.rank < 9;
		}).sort(function (a, b) {
			return a.rank - b.rank || a.entry.weight - b.entry.weight || a.entry.text.length - b.entry.text.length ||
				(a.entry.text < b.entry.text ? -1 : a.entry.text > b.entry.text ? 1 : 0);
		}).map(function (hit) {
			return hit.entry;
		});
	}

	function item(entry) {
		var li = document.createElement("li"), a = document.createElement("a"), small = document.createElement("small");

		a.href = entry.href;
		a.textContent = entry.text;
		a.className = entry.name ? "hit" : "hit text";
		small.textContent = entry.about;
		li.appendChild(a);
		return { li: li, a: a, small: small };
	}

	/* ---- the list below the input ---- */

	function close() {
		if (list)
			list.remove();
		list = null;
		selected = -1;
		input.setAttribute("aria-expanded", "false");
		input.removeAttribute("aria-activedescendant");
	}
	function select(at) {
		var items = list ? list.children : [];

		if (!items.length)
			return;
		if (selected >= 0)
			items[selected].setAttribute("aria-selected", "false");
		selected = (at + items.length) % items.length;
		items[selected].setAttribute("aria-selected", "true");
		items[selected].scrollIntoView({ block: "nearest" });
		input.setAttribute("aria-activedescendant", items[selected].id);
	}
	function suggest() {
		var found = find(input.value).slice(0, 12);

		close();
		if (!found.length)
			return;
		list = document.createElement("ul");
		list.id = "frame-suggestions";
		list.setAttribute("role", "listbox");
		list.setAttribute("aria-label", "Names and pages");
		found.forEach(function (entry, i) {
			var made = item(entry);
			made.li.id = "frame-suggestion-" + i;
			made.li.setAttribute("role", "option");
			made.li.setAttribute("aria-selected", "false");
			made.a.tabIndex = -1;
			made.a.appendChild(made.small);
			list.appendChild(made.li);
		});
		input.form.appendChild(list);
		input.setAttribute("aria-expanded", "true");
	}

	/* ---- the page of all results ---- */

	function showAll() {
		var found = find(input.value), shown = found.slice(0, 200), ol = document.createElement("ol"), count;

		document.title = input.value ? "Search: " + input.value : "Search";
		results.textContent = "";
		if (!input.value.trim())
			return;
		count = document.createElement("p");
		count.textContent = found.length + (found.length === 1 ? " result" : " results") + " for \u201c" + input.value + "\u201d" +
			(found.length > shown.length ? "; the first " + shown.length + ":" : "");
		results.appendChild(count);
		shown.forEach(function (entry) {
			var made = item(entry), declared;
			made.li.appendChild(made.small);
			if (entry.name && entry.href !== entry.header) {
				declared = document.createElement("a");
				declared.href = entry.header;
				declared.textContent = "declaration";
				made.small.appendChild(document.createTextNode(" \u00b7 "));
				made.small.appendChild(declared);
			}
			ol.appendChild(made.li);
		});
		results.appendChild(ol);
	}

	input.setAttribute("role", "combobox");
	input.setAttribute("aria-autocomplete", "list");
	input.setAttribute("aria-controls", "frame-suggestions");
	input.setAttribute("aria-expanded", "false");
	input.addEventListener("focus", function () {
		load(function () {});
	});
	input.addEventListener("input", function () {
		load(results ? showAll : suggest);
	});
	input.addEventListener("keydown", function (event) {
		if (event.key === "ArrowDown" || event.key === "ArrowUp") {
			event.preventDefault();
			if (list)
				select(event.key === "ArrowDown" ? selected + 1 : selected < 0 ? -1 : selected - 1);
			else if (!results)
				load(suggest);
		} else if (event.key === "Escape") {
			close();
		} else if (event.key === "Enter" && selected >= 0) {
			event.preventDefault();
			window.location.href = list.children[selected].firstChild.href;
			close();
		}
	});
	input.addEventListener("blur", function () {
		window.setTimeout(close, 200);
	});
	document.addEventListener("keydown", function (event) {
		var at = document.activeElement;
		if (event.key === "/" && !event.ctrlKey && !event.altKey && !event.metaKey && !/^(INPUT|TEXTAREA)$/.test(at ? at.tagName : "")) {
			event.preventDefault();
			input.focus();
			input.select();
		}
	});
	if (results) {
		input.value = new URLSearchParams(window.location.search).get("q") || "";
		load(showAll);
		input.focus();
	}
	/* a narrow screen begins with the text */
	if (window.matchMedia("(max-width: 62rem)").matches)
		document.querySelectorAll(".toc details").forEach(function (details) {
			details.open = false;
		});
})();
