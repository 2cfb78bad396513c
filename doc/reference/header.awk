# SPDX-License-Identifier: MIT
# Writes the page of a public header, without the frame: its contract, then its declarations.
#
# Reads doc/api-index, then the header. Variables:
#   file    the header's name, such as cuatomic/append.h
#   types   adds the lines "NAME KIND FILE" of structs, unions, enumerations and their constants to this file
#   sync    writes the header's synchronization to this file; without a table of calls, a row of scope, memory order and
#           progress

function escape(s)
{
	gsub(/&/, "\\&amp;", s)
	gsub(/</, "\\&lt;", s)
	gsub(/>/, "\\&gt;", s)
	return s
}
BEGIN {
	labels = "^(Argument|Correctness|Direct calls|Errors|Full|Hostile keys|Memory order|Names|Operations|Order of values|" \
		"Progress|Progress on a GPU|Results|Rounds|Scope|Scope, memory order|Source|Statuses|Values|When to use each form)[:.]"
}
function spaces(s,   i, n, out, c)
{
	if (index(s, "\t") == 0)
		return s
	n = length(s)
	for (i = 1; i <= n; i++) {
		c = substr(s, i, 1)
		if (c == "\t")
			out = out substr("        ", 1, 8 - length(out) % 8)
		else
			out = out c
	}
	return out
}
function indent(s)
{
	match(s, /^ */)
	return RLENGTH
}
function trim(s)
{
	sub(/^ +/, "", s)
	sub(/ +$/, "", s)
	return s
}

# ---- prose of comments: lines text[1..count], without the stars ----

# A table of calls against calls: a line of column names, then lines of a name and an entry for each column.
# Returns "" if the lines have another form.
function table_of(first, last,   i, k, n, columns, cells, cell, out, heads)
{
	columns = split(trim(text[first]), heads, /  +/)
	# the last name may go on in the next line
	if (last > first && indent(text[first + 1]) > 30)
		heads[columns] = heads[columns] " " trim(text[++first])
	if (columns < 2 || last - first < 1)
		return ""
	for (i = first + 1; i <= last; i++) {
		k = split(trim(text[i]), cells, /  +/)
		if (k != columns + 1 && !(k == columns + 2 && cells[k] ~ /^\(/))
			return ""
		for (k = 2; k <= columns + 1; k++)
			if (cells[k] !~ /^(X|-)( \([0-9]\))?$/)
				return ""
	}
	out = "<div class=\"wide\"><table class=\"sync\">\n<tr><td></td>"
	for (k = 1; k <= columns; k++)
		out = out "<th scope=\"col\">" escape(heads[k]) "</th>"
	out = out "</tr>\n"
	for (i = first + 1; i <= last; i++) {
		n = split(trim(text[i]), cells, /  +/)
		out = out "<tr><th scope=\"row\">" escape(cells[1]) "</th>"
		for (k = 2; k <= columns + 1; k++) {
			cell = cells[k]
			out = out (cell ~ /^X/ ? "<td class=\"no\">" : "<td class=\"yes\">")
			sub(/^-/, "\342\200\223", cell)
			out = out cell "</td>"
		}
		out = out (n > columns + 1 ? "<td class=\"note\">" escape(cells[n]) "</td>" : "") "</tr>\n"
	}
	return out "</table></div>\n"
}
# Lines that are indented: a table, code or notes.
function block(first, last,   i, least, plain, out)
{
	out = table_of(first, last)
	if (out != "")
		return out
	least = 99
	plain = 1
	for (i = first; i <= last; i++) {
		if (text[i] ~ /[^ ]/ && indent(text[i]) < least)
			least = indent(text[i])
		if (text[i] ~ /[^ ]/ && indent(text[i]) != indent(text[first]) && text[i] !~ /^ +\([0-9]\)/)
			plain = 0
		if (trim(text[i]) ~ /   |[;{}]$|^#|^\.\.\.$/ || trim(text[i]) ~ /^[a-z_]+\(.*\)$/ || trim(text[i]) ~ /^[a-z0-9_]+  /)
			plain = 0
	}
	if (plain) {
		for (i = first; i <= last; i++)
			out = out (trim(text[i]) ~ /^\([0-9]\)/ && i > first ? "<br>" : "") escape(trim(text[i])) "\n"
		return "<p class=\"note\">" out "</p>\n"
	}
	for (i = first; i <= last; i++)
		out = out escape(substr(text[i], least + 1)) "\n"
	return "<pre>" out "</pre>\n"
}
function closed(   end)
{
	end = open == "li" ? "</li>\n</ul>\n" : open == "p" ? "</p>\n" : ""
	open = ""
	return end
}
# Text, with `names` as code.
function said(s)
{
	s = escape(s)
	while (match(s, /`[^`]+`/))
		s = substr(s, 1, RSTART - 1) "<code>" substr(s, RSTART + 1, RLENGTH - 2) "</code>" substr(s, RSTART + RLENGTH)
	return s
}
# Prose of the lines first..last. With anchors, a label such as "Scope:" has an id.
function prose(first, last, anchors,   i, j, line, at, out, label, id)
{
	out = open = ""
	for (i = first; i <= last; i++) {
		line = text[i]
		at = indent(line)
		if (line !~ /[^ ]/) {
			# a list goes on after an empty line if its next line is an item
			if (!(open == "li" && text[i + 1] ~ /^ *- /))
				out = out closed()
			hanging = 0
		} else if (line ~ /^ ? ? ?- /) {
			if (open == "li")
				out = out "</li>\n<li>"
			else
				out = out closed() "<ul>\n<li>"
			open = "li"
			out = out said(substr(line, at + 3)) "\n"
		} else if (at >= 2 && (open == "li" || open == "p" && hanging)) {
			out = out said(trim(line)) "\n"
		} else if (at >= 2) {
			out = out closed()
			for (j = i; j < last && text[j + 1] ~ /^  +[^ ]/; j++)
				;
			out = out block(i, j)
			i = j
		} else {
			label = ""
			if (match(line, labels))
				label = substr(line, 1, RLENGTH)
			if (match(line, /^Synchronization(, [a-z, ]*:| of [^.:]*[.:]|:)?/)) {
				if (RLENGTH > 15)
					label = substr(line, 1, RLENGTH)
				else
					label = "Synchronization"
			}
			if (label != "" || open != "p" || (hanging && at == 0)) {
				out = out closed() "<p"
				if (label != "") {
					id = tolower(label)
					sub(/^synchronization.*/, "synchronization", id)
					gsub(/[^a-z]+$/, "", id)
					gsub(/[^a-z]+/, "-", id)
					if (anchors && !(id in ids)) {
						ids[id]
						out = out " id=\"" id "\""
					}
					out = out "><strong>" said(trim(label)) "</strong> " said(trim(substr(line, length(label) + 1))) "\n"
					hanging = text[i + 1] ~ /^  [^ -]/
				} else {
					out = out ">" said(trim(line)) "\n"
					hanging = 0
				}
				open = "p"
			} else {
				out = out said(trim(line)) "\n"
			}
		}
	}
	out = out closed()
	# code with an empty line is one listing
	gsub(/<\/pre>\n<pre>/, "\n", out)
	return out
}
# Splits a comment into the lines text[1..count].
function lines_of(comment,   i)
{
	count = split(comment, text, "\n")
	for (i = 1; i <= count; i++) {
		text[i] = spaces(text[i])
		sub(/^ *\/\*+ ?/, "", text[i])
		sub(/ *\*+\/ *$/, "", text[i])
		sub(/^ \* ?/, "", text[i])
		sub(/^ \*$/, "", text[i])
	}
	while (count > 0 && text[count] !~ /[^ ]/)
		count--
	for (i = 1; i <= count && text[i] !~ /[^ ]/; i++)
		;
	if (i > 1) {
		for (count -= i - 1; i <= count + 100 && i in text; i++)
			text[++moved] = text[i]
		moved = 0
	}
	text[count + 1] = ""
}

# ---- the parts of a header ----

# A cell of a table: the paragraph whose label matches.
function cell(label,   i, out)
{
	for (i = 1; i <= count && match(text[i], /^[A-Z][A-Za-z, ]*:/) == 0 || i <= count && substr(text[i], 1, RLENGTH) !~ label; i++)
		;
	if (i > count)
		return "<td></td>"
	out = substr(text[i], RLENGTH + 2)
	while (text[++i] ~ /^  /)
		out = out " " trim(text[i])
	return "<td>" said(toupper(substr(out, 1, 1)) substr(out, 2)) "</td>"
}
function contract(comment,   i, first, last, scope, order)
{
	lines_of(comment)
	print "<section class=\"contract\" aria-label=\"Contract\">"
	printf "%s", prose(1, count, 1)
	print "</section>"
	if (sync != "" && comment !~ /\n \* Synchronization/ && comment ~ /\n \* Scope/) {
		scope = cell("^Scope")
		order = cell("[Mm]emory order")
		# one label may have both
		if (scope == order && sub(/<td>/, "<td colspan=\"2\">", scope))
			order = ""
		print "<tr class=\"stream\">" scope order cell("^Progress") "</tr>" >sync
		close(sync)
		return
	}
	# from "Synchronization" to the end of the scope, the order and the progress
	for (i = 1; i <= count; i++)
		if (text[i] ~ /^(Scope|Memory order|Progress)/)
			last = i
	for (i = 1; i <= count; i++) {
		if (text[i] ~ /^Synchronization/)
			first = i
		else if (first && i > last && text[i] ~ /^(Argument|Values|Errors|Full|Hostile|Results|Order of|Direct|Correctness|Sizes|Statuses)/)
			break
	}
	if (first && sync != "") {
		printf "%s", prose(first, i - 1, 0) >sync
		close(sync)
	}
}
function declaration(lines, first, last,   i, n, name, head, anchors, list, shown, public, kind, parts, tag)
{
	# the public names that these lines declare
	n = 0
	for (i = first; i <= last; i++)
		n += split(names[i], parts, " ") ? add(names[i]) : 0
	public = found
	head = lines
	if (match(head, /(^|\n)(typedef )?(struct|enum|union) cua_[a-z0-9_]+ *\{/)) {
		tag = substr(head, RSTART, RLENGTH)
		gsub(/^\n|typedef | *\{$/, "", tag)
		kind = tag
		sub(/ .*/, "", kind)
		sub(/.* /, "", tag)
		if (tag !~ /__/) {
			print tag, kind, file >>types
			public = public (public == "" ? "" : " ") tag
			if (kind == "enum")
				public = public constants(head)
		}
	} else if (match(head, /^struct cua_[a-z0-9_]+;/)) {
		tag = substr(head, 8, RLENGTH - 8)
		if (tag !~ /__/ && !(tag in opaque)) {
			opaque[tag]
			print tag, "struct", file >>types
			public = tag
		}
	} else if (head ~ /^#define CUA_[A-Z]+_LIST\(X\)/) {
		gsub(/[ \t]+\\/, " \\", head)
		while (match(lines, /X\(CUA_[A-Z_]+/)) {
			tag = substr(lines, RSTART + 2, RLENGTH - 2)
			lines = substr(lines, RSTART + RLENGTH)
			print tag, "constant", file >>types
			public = public " " tag
		}
		lines = head
	} else if (head ~ /^#/) {
		if (head ~ /\\\n/) {
			sub(/ *\\\n.*/, "", head)
			sub(/[ \t]+$/, "", head)
		}
	} else if (match(head, /\n\{/)) {
		head = substr(head, 1, RSTART - 1) ";"
	}
	found = ""
	if (public == "") {
		kept = pending
		pending = ""
		return
	}
	heading()
	# anchors of all names; the item has the first
	split(public, parts, " ")
	for (i = 2; i in parts; i++)
		anchors = anchors "<span id=\"" parts[i] "\"></span>"
	print "<section class=\"item\" id=\"" parts[1] "\">" anchors
	if (head !~ /^#/)
		gsub(/(CUA_FORCE|CUA_FN|CUA__RARE|CUA__HOST_FN|CUA_API) /, "", head)
	print "<pre class=\"code\">" escape(aligned(head)) "</pre>"
	# a comment may precede the private macros of a public one
	if (pending == "" && kept != "" && index(kept, parts[1]))
		pending = kept
	kept = ""
	if (pending != "") {
		lines_of(pending)
		printf "<div class=\"about\">%s</div>\n", prose(1, count, 0)
	}
	# names that a macro pastes together are in none of the lines
	list = ""
	n = 0
	for (i = 1; i in parts; i++)
		if (index(lines, parts[i]) == 0) {
			list = list (list == "" ? "" : ", ") parts[i]
			n++
		}
	if (n > 8)
		print "<details><summary>declares " n " names</summary><p class=\"names\">" list "</p></details>"
	else if (n)
		print "<p class=\"names\">declares " list "</p>"
	print "</section>"
	pending = ""
}
function add(more)
{
	found = found (found == "" ? "" : " ") more
	return 1
}
# The public enumerators of an enum.
function constants(s,   out, name)
{
	gsub(/\/\*[^*]*\*+([^\/*][^*]*\*+)*\//, "", s)
	sub(/^[^{]*\{/, "", s)
	while (match(s, /(^|[^A-Za-z0-9_])CUA_[A-Z0-9_]+[ \t\n]*(=[^,}]*)?[,}\n]/)) {
		name = substr(s, RSTART, RLENGTH)
		s = substr(s, RSTART + RLENGTH)
		match(name, /CUA_[A-Z0-9_]+/)
		name = substr(name, RSTART, RLENGTH)
		if (name ~ /__/ || name in constant)
			continue
		constant[name]
		print name, "constant", file >>types
		out = out " " name
	}
	return out
}
# Lines that continue a declaration were indented for the words that the page leaves out.
function aligned(s,   n, i, lines, out, least, cut)
{
	n = split(s, lines, "\n")
	if (n > 1 && s !~ /\{|^#/ && (i = index(lines[1], "("))) {
		least = 99
		for (k = 2; k <= n; k++) {
			lines[k] = spaces(lines[k])
			if (indent(lines[k]) < least)
				least = indent(lines[k])
		}
		for (k = 2; k <= n; k++)
			lines[k] = sprintf("%" i "s", "") substr(lines[k], least + 1)
	}
	out = lines[1]
	for (k = 2; k <= n; k++)
		out = out "\n" spaces(lines[k])
	return out
}
function heading()
{
	if (!declared++)
		print "<h2 id=\"declarations\">Declarations</h2>"
	if (title != "") {
		id = tolower(title)
		gsub(/[^a-z0-9]+/, "-", id)
		gsub(/^-|-$/, "", id)
		print "<h3 id=\"" id (id in ids ? "-" ++again : "") "\">" escape(title) "</h3>"
		ids[id]
		title = ""
	}
}

FNR == NR {
	split($2, part, ":")
	if (part[1] == file)
		names[part[2]] = names[part[2]] (names[part[2]] == "" ? "" : " ") $1
	next
}
# a comment at the left edge
!inside && depth == 0 && statement == "" && /^\/\*/ { inside = 1; comment = "" }
inside {
	comment = comment (comment == "" ? "" : "\n") $0
	if (/\*\//) {
		inside = 0
		if (comment ~ /SPDX/)
			next
		if (!contracted++) {
			contract(comment)
		} else if (comment ~ /^\/\* ?-+ [^\n]* -+ \*\/$/) {
			title = comment
			gsub(/^\/\* ?-+ | -+ \*\/$/, "", title)
		} else {
			pending = comment
		}
	}
	next
}
statement == "" && /^[ \t]*#/ {
	first = FNR
	statement = $0
	while (statement ~ /\\$/ && (getline line) > 0)
		statement = statement "\n" line
	if (statement ~ /^#[ \t]*define[ \t]+(CUA_)/ && statement !~ /^#[ \t]*define[ \t]+CUA_[A-Z0-9]*_[A-Z0-9_]*_H($|\n)/)
		declaration(statement, first, FNR)
	statement = ""
	next
}
statement == "" && (/^[ \t]*$/ || /^}/ || /^extern "C"/) { next }
{
	if (statement == "")
		first = FNR
	statement = statement (statement == "" ? "" : "\n") $0
	code = $0
	gsub(/\/\*.*\*\//, "", code)
	gsub(/"([^"\\]|\\.)*"/, "", code)
	gsub(/'.'/, "", code)
	depth += gsub(/[{(]/, "&", code) - gsub(/[})]/, "&", code)
	if (depth == 0 && (code ~ /[;}][ \t]*$/ || statement ~ /^[A-Za-z0-9_]+\(/)) {
		declaration(statement, first, FNR)
		statement = ""
	}
}
