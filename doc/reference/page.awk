# SPDX-License-Identifier: MIT
# Frames the fragment of a page, gives its headings anchors, and links the names in it.
#
# Variables, files:
#   names     NAME URL: the page of a public name; also man:NAME, type:NAME, declared:NAME, and of a header
#   paths     FILE URL: the page of a file of the source tree
#   anchors   PAGE NAME SECTION: the section of a manual page that has the anchor of a name
#   headings  the lines "PAGE ANCHOR TEXT" are added to this file
# Other variables: self, the page; kind: man, header, contracts, document, source or index; title; heading, in HTML; version;
# from, the source folder of a document.

function fill(file, map,   line, part) {
	while ((getline line <file) > 0) {
		split(line, part, " ")
		map[part[1]] = part[2]
	}
	close(file)
}
BEGIN {
	FS = "\n"
	fill(names, url)
	fill(paths, path)
	if (anchors != "") {
		while ((getline line <anchors) > 0) {
			split(line, part, " ")
			if (part[1] == self)
				own[part[2]] = part[3]
		}
		close(anchors)
	}
}
{ all = all $0 "\n" }
# The page of a file that a document links, with the part after "#".
function resolved(href,   part, n, i, parts, at, hash, out) {
	if (href ~ /^[a-z]+:/ || href ~ /^#/)
		return href
	hash = ""
	if ((at = index(href, "#"))) {
		hash = substr(href, at)
		href = substr(href, 1, at - 1)
	}
	n = split((from == "" ? "" : from "/") href, parts, "/")
	at = 0
	for (i = 1; i <= n; i++)
		if (parts[i] == "..")
			at--
		else if (parts[i] != "." && parts[i] != "")
			part[++at] = parts[i]
	out = part[1]
	for (i = 2; i <= at; i++)
		out = out "/" part[i]
	return out in path ? path[out] hash : ""
}
function link(name, to,   at) {
	at = to
	if (index(at, self "#") == 1)
		at = substr(at, length(self) + 1)
	return "<a class=\"name\" href=\"" at "\">" name "</a>"
}
# Text without tags: links names of the library, pages such as cua_append(3), and headers.
function linked(s,   out, token, before, to) {
	out = ""
	while (match(s, /(cua|CUA)_[A-Za-z0-9_]+|cuatomic(\/[a-z0-9_]+)*\.h|[a-z0-9_]+\.h|cuatomic(_memory_order)?/)) {
		token = substr(s, RSTART, RLENGTH)
		before = out substr(s, 1, RSTART - 1)
		s = substr(s, RSTART + RLENGTH)
		out = before
		if (before ~ /[A-Za-z0-9_\/.-]$/ && token !~ /^cuatomic\//) {
			out = out token
			continue
		}
		if (token ~ /\.h$/) {
			to = url[token ~ /\// || token == "cuatomic.h" ? token : "cuatomic/" token]
			if (to == "")
				to = url["cuatomic/detail/" token]
		} else if (token ~ /^cuatomic(_memory_order)?$/) {
			# only with the section behind it: cuatomic(7)
			if (match(s, /^\([17]\)/)) {
				token = token substr(s, 1, 3)
				s = substr(s, 4)
				to = url[token]
			} else {
				to = s == "" && following ~ /^\([17]\)/ ? url[token substr(following, 1, 3)] : ""
			}
		} else if (match(s, /^\([137]\)/) && ("man:" token) in url) {
			to = url["man:" token]
			token = token substr(s, 1, 3)
			s = substr(s, 4)
		}
		else if (s == "" && following ~ /^\([137]\)/ && ("man:" token) in url)
			to = url["man:" token]
		else if (before ~ /(struct|enum|union) $/ && ("type:" token) in url)
			to = url["type:" token]
		else if (token in url)
			to = url[token]
		else if (("man:" token) in url)
			to = url["man:" token]
		else if (("type:" token) in url)
			to = url["type:" token]
		else
			to = ""
		if (token in own && own[token] == section && !(token in placed)) {
			placed[token]
			out = out "<span id=\"" token "\">" (("declared:" token) in url ? link(token, url["declared:" token]) : token) "</span>"
		} else if (to == "" || to == self || to == self "#" item || to == self "#" token && kind == "header" && item != "" && token in anchored_here) {
			out = out token
		} else {
			out = out link(token, to)
		}
	}
	return out s
}
function attribute(tag, name,   value) {
	if (!match(tag, name "=\"[^\"]*\""))
		return ""
	value = substr(tag, RSTART + length(name) + 2, RLENGTH - length(name) - 3)
	return value
}
function slug(s,   base, n) {
	s = tolower(s)
	gsub(/&[a-z]+;/, "", s)
	gsub(/[^a-z0-9 _-]/, "", s)
	gsub(/ /, "-", s)
	base = s
	while (s in slugs)
		s = base "-" ++n
	slugs[s]
	return s
}
function plain(s) {
	gsub(/<[^>]*>/, "", s)
	gsub(/[ \n]+/, " ", s)
	return s
}
function sentence(s) { # SEE ALSO: See also
	return s ~ /^[A-Z ]+$/ ? substr(s, 1, 1) tolower(substr(s, 2)) : s
}
END {
	n = split(all, part, "<")
	body = linked(part[1])
	for (i = 2; i <= n; i++) {
		end = index(part[i], ">")
		tag = substr(part[i], 1, end)
		text = substr(part[i], end + 1)
		name = tag
		sub(/[ >\n].*/, "", name)
		following = ""
		if (i < n) {
			following = part[i + 1]
			sub(/^[^>]*>/, "", following)
		}
		# ---- headings of manual pages and documents ----
		if (name ~ /^h[1-4]$/ && kind != "index") {
			inner = text
			while (++i <= n && part[i] !~ /^\/h[1-4]>/)
				inner = inner "<" part[i]
			rest = substr(part[i], index(part[i], ">") + 1)
			level = substr(name, 2, 1) + 0
			gsub(/<\/?a[^>]*>/, "", inner)
			if (kind == "man") {
				id = attribute(tag, "id")
				section = plain(inner)
				inner = sentence(section)
				level++
			} else {
				id = attribute(tag, "id")
				if (id == "")
					id = slug(plain(inner))
			}
			if (level == 1) {
				heading = inner
				body = body rest
				continue
			}
			print self " " id " " plain(inner) >>headings
			if (level <= 3)
				toc = toc "<li class=\"l" level "\"><a href=\"#" id "\">" inner "</a></li>\n"
			body = body "<h" level " id=\"" id "\">" inner " <a class=\"mark\" href=\"#" id "\" aria-label=\"Link to this section\">#</a></h" level ">" linked(rest)
			continue
		}
		if (name == "section" && tag ~ /class="item"/) {
			item = attribute(tag, "id")
			split("", anchored_here)
			toc = toc "<li class=\"l3\"><a href=\"#" item "\">" item "</a></li>\n"
		}
		if (item != "" && tag ~ /^span id=/)
			anchored_here[attribute(tag, "id")]
		if (name == "a" && tag ~ /href=/ && kind == "document") {
			href = attribute(tag, "href")
			to = resolved(href)
			if (to == "" || to ~ /^-/) {
				# a folder has no page
				if (to == "")
					print self ": " href >"/dev/stderr"
				dropped = 1
				body = body text
				continue
			}
			sub(/href="[^"]*"/, "href=\"" to "\"", tag)
			anchored = 1
		} else if (name == "a" && tag ~ /href=|class="permalink"/) {
			anchored = 1
		}
		if (name == "/a") {
			if (dropped) {
				dropped = 0
				body = body linked(text)
				continue
			}
			anchored = 0
		}
		if (name == "img") {
			src = attribute(tag, "src")
			to = src ~ /^[a-z]+:/ ? "" : resolved(src)
			if (to == "")
				tag = attribute(tag, "alt")
			else
				sub(/src="[^"]*"/, "src=\"" to "\" loading=\"lazy\"", tag)
		}
		# another form of the image that follows
		if (name == "source") {
			body = body text
			continue
		}
		# wider than a narrow window
		if (name == "table" && (kind == "document" || kind == "man"))
			tag = "div class=\"wide\"><" tag
		if (name == "/table" && (kind == "document" || kind == "man"))
			tag = "/table></div>"
		body = body (name == "img" && to == "" ? "" : "<") tag (anchored ? text : linked(text))
	}

	print "<!DOCTYPE html>"
	print "<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">"
	print "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
	print "<meta name=\"color-scheme\" content=\"light dark\">"
	print "<title>" title (title == "cuatomic" ? " " version : " - cuatomic " version) "</title>"
	print "<link rel=\"stylesheet\" href=\"style.css\">"
	print "<script src=\"search.js\" defer></script>\n</head>\n<body>"
	print "<a class=\"skip\" href=\"#frame-content\">Skip to the content</a>"
	print "<header>\n<a class=\"home\" href=\"index.html\">cuatomic <span>" version "</span></a>"
	print "<nav aria-label=\"Main\">"
	nav("index.html#families", "Families", "man")
	nav("index.html#headers", "Headers", "header")
	nav("synchronization.html", "Synchronization", "")
	nav("index.html#documents", "Documents", "document")
	print "</nav>"
	print "<form role=\"search\" action=\"search.html\"><input id=\"frame-search\" name=\"q\" type=\"search\" placeholder=\"Search names (press /)\" aria-label=\"Search\" autocomplete=\"off\" spellcheck=\"false\" autocapitalize=\"off\"></form>"
	print "</header>\n<div class=\"page\">"
	if (toc ~ /<li.*<li/) {
		print "<nav class=\"toc\" aria-label=\"On this page\">\n<details open><summary>On this page</summary>\n<ul>"
		printf "%s", toc
		print "</ul></details>\n</nav>"
	}
	print "<main id=\"frame-content\" class=\"" kind "\">"
	if (heading != "")
		print "<h1>" heading "</h1>"
	printf "%s", body
	print "</main>\n</div>\n<footer>cuatomic " version ". MIT license.</footer>\n</body>\n</html>"
}
function nav(to, what, of) {
	print "<a href=\"" to "\"" (self == to || kind == of && of != "" ? " aria-current=\"" (self == to ? "page" : "true") "\"" : "") ">" what "</a>"
}
