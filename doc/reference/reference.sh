#!/bin/sh
# SPDX-License-Identifier: MIT
# reference.sh OUT SOURCE BUILD VERSION: replaces the folder OUT by the reference in HTML. OUT/files.txt lists the
# files.
#
# SOURCE is the source tree, BUILD the build tree with include/cuatomic/version.h. MANDOC, CMARK and AWK name the
# tools. The output depends on the sources alone, so that two runs have the same bits.
set -eu
out=$1
source=$(cd "$2" && pwd)
build=$(cd "$3" && pwd)
version=$4
: "${MANDOC:=mandoc}" "${CMARK:=cmark-gfm}" "${AWK:=awk}"
LC_ALL=C
export LC_ALL
tools=$source/doc/reference
for tool in "$MANDOC" "$CMARK"; do
	command -v "$tool" >/dev/null || {
		echo "make html: $tool is not installed" >&2
		exit 1
	}
done
final=$(cd "$(dirname "$out")" && pwd)/${out##*/}
out=$final.tmp
tmp=$(mktemp -d)
trap 'rm -rf "$tmp" "$out"' EXIT
trap 'exit 1' HUP INT TERM
rm -rf "$out"
mkdir "$out"
mkdir "$tmp/page" "$tmp/sync"
: >"$tmp/types"
: >"$tmp/headings"
: >"$tmp/list"

# ---- headers: the fragments, and the types and constants that they declare ----

headers="cuatomic.h $(cd "$source/include" && find cuatomic cuatomic/detail -maxdepth 1 -name '*.h' ! -name '*.tmpl.h') cuatomic/version.h cuatomic/mpi.h"
headers=$(printf '%s\n' $headers | sort -u)
for header in $headers; do
	case $header in
	cuatomic/version.h) file=$build/include/$header ;;
	cuatomic/mpi.h) file=$source/mpi/$header ;;
	*) file=$source/include/$header ;;
	esac
	page=$(echo "$header" | tr / -).html
	$AWK -v file="$header" -v types="$tmp/types" -v sync="$tmp/sync/$page" -f "$tools/header.awk" \
		"$source/doc/api-index" "$file" >"$tmp/page/$page"
	echo "$header $page" >>"$tmp/headers"
done

# ---- manual pages: the fragments, and the section that has the anchor of each name ----

for file in "$source"/doc/*.[1-9]; do
	name=${file##*/}
	page=$name.html
	$MANDOC -T html -O fragment "$file" | $AWK '
		/<table class="(head|foot)">/ { skip = 1 }
		# merge adjacent listings of a synopsis
		!skip {
			if (ended && sub(/^<pre>/, ""))
				print ""
			else if (ended)
				printf "</pre>"
			if (NR > 1)
				print ""
			ended = sub(/<\/pre>$/, "")
			printf "%s", $0
		}
		/<\/table>/ { skip = 0 }
		END { print (ended ? "</pre>" : "") }' >"$tmp/page/$page"
	$AWK -v page="$page" -v name="${name%.*}(${name##*.})" '
		{ all = all $0 " " }
		END {
			sub(/.*id="NAME">/, "", all)
			sub(/<\/section>.*/, "", all)
			gsub(/<[^>]*>/, "", all)
			gsub(/ +/, " ", all)
			sub(/^ *NAME */, "", all)
			sub(/ *$/, "", all)
			names = lead = all
			sub(/ - .*/, "", names)
			sub(/.* - /, "", lead)
			print page "|" name "|" lead "|" names
		}' "$tmp/page/$page" >>"$tmp/man"
done
$AWK -v man="$tmp/man" '
	BEGIN {
		while ((getline line <man) > 0) {
			split(line, part, "|")
			n = split(part[4], name, /, */)
			for (i = 1; i <= n; i++)
				wanted[part[1], name[i]]
		}
	}
	FILENAME ~ /api-index$/ { wanted[$3 ".html", $1]; next }
	FNR == 1 {
		page = FILENAME
		sub(/.*\//, "", page)
		section = ""
	}
	match($0, /<h1[^>]*id="[A-Za-z-]*"/) {
		section = substr($0, RSTART, RLENGTH)
		gsub(/.*id="|"/, "", section)
	}
	# an anchor that mandoc made
	match($0, /<dt id="[A-Za-z0-9_]*"/) {
		id = substr($0, RSTART + 8, RLENGTH - 9)
		where[page, id] = "-"
	}
	section == "NAME" || section == "SYNOPSIS" {
		gsub(/<[^>]*>/, "")
		while (match($0, /(cua|CUA)_[A-Za-z0-9_]+/)) {
			id = substr($0, RSTART, RLENGTH)
			$0 = substr($0, RSTART + RLENGTH)
			if ((page, id) in wanted && where[page, id] !~ /SYNOPSIS|-/)
				where[page, id] = section
		}
	}
	END {
		for (key in where) {
			split(key, part, SUBSEP)
			print part[1], part[2], where[key]
		}
	}' "$source/doc/api-index" "$tmp"/page/*.[1-9].html | sort >"$tmp/anchors"

# ---- documents ----

# document FILE: the page of a Markdown document of the source tree
document() {
	case $1 in
	README.md | doc/README.md) echo "$(dirname "$1" | tr -d ./)README.html" ;;
	doc/lab-notes/README.md) echo lab-notes.html ;;
	*/README.md) dirname "$1" | sed 's:^doc/::; s:/:-:g; s:$:.html:' ;;
	*) echo "${1%.md}" | sed 's:^doc/::; s:/:-:g; s:$:.html:' ;;
	esac
}
# addressed FILE: the files of the source tree that a document links, and the folders, with a slash
addressed() {
	tr '<' '\n' <"$tmp/page/$(document "$1")" | sed -nE 's/^(a|img) .*(href|src)="([^":#]*)["#].*/\3/p' |
		grep -v '^[a-z]*:' | sort -u | while read -r target; do
			[ -z "$target" ] || (
				cd "$source/$(dirname "$1")"
				if [ -d "$target" ]; then
					cd "$target" && echo "$PWD/"
				elif [ -f "$target" ]; then
					cd "$(dirname "$target")" && echo "$PWD/${target##*/}"
				fi
			)
		done
}
cd "$source"
documents=$(ls README.md HACKING.md CONTRIBUTING.md doc/*.md doc/lab-notes/*.md examples/README.md examples/*/README.md 2>/dev/null || :)
for file in $documents; do
	page=$(document "$file")
	echo "$file $page" >>"$tmp/paths"
	$CMARK -e table -e strikethrough -e autolink --unsafe "$file" >"$tmp/page/$page"
done
echo "doc index.html#documents" >>"$tmp/paths"
for file in $documents; do
	case $file in
	examples/*)
		[ -f examples/README.md ] || echo "examples index.html#examples" >>"$tmp/paths"
		echo "${file%/*} $(document "$file")" >>"$tmp/paths"
		;;
	esac
done
for header in $headers; do
	echo "include/$header $(echo "$header" | tr / -).html" >>"$tmp/paths"
done
for file in doc/*.[1-9]; do
	echo "$file ${file##*/}.html" >>"$tmp/paths"
done
# plots, and other files that a document links
for file in $documents; do
	addressed "$file"
done | sort -u | sed "s:^$source/::" | while read -r file; do
	! grep -q "^${file%/} " "$tmp/paths" || continue
	case $file in
	*/) echo "${file%/} -" >>"$tmp/paths" ;;
	*.svg | *.png)
		cp "$file" "$out/${file##*/}"
		chmod 644 "$out/${file##*/}"
		echo "$file ${file##*/}" >>"$tmp/paths"
		;;
	/*) ;;
	*)
		page=$(echo "$file" | tr / -).html
		{
			echo "<pre class=\"code\">"
			sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g' "$file"
			echo "</pre>"
		} >"$tmp/page/$page"
		echo "$file $page" >>"$tmp/paths"
		echo "$file $page" >>"$tmp/sources"
		;;
	esac
done

# ---- the page of each name ----

$AWK -v man="$tmp/man" -v anchors="$tmp/anchors" -v headers="$tmp/headers" -v types="$tmp/types" -v kinds="$tmp/kinds" '
	function family(name) {
		sub(/_(scope|SCOPE)$/, "", name)
		sub(/_(b|bf|c|complex_f|f|i|u)[0-9]+$/, "", name)
		sub(/_explicit$/, "", name)
		if (!((page, name) in at))
			sub(/_(warp|block)$/, "", name)
		if (!((page, name) in at))
			sub(/_cas$/, "", name)
		return name
	}
	BEGIN {
		while ((getline line <anchors) > 0) {
			split(line, part, " ")
			at[part[1], part[2]]
			if (part[3] != "-" && !(part[2] in first))
				first[part[2]] = part[1] "#" part[2]
		}
		while ((getline line <headers) > 0) {
			split(line, part, " ")
			header[part[1]] = part[2]
			print part[1], part[2]
		}
		while ((getline line <man) > 0) {
			split(line, part, "|")
			name = part[1]
			sub(/\..*/, "", name)
			if (part[1] ~ /\.3\.html$/)
				print "man:" name, part[1]
			print part[2], part[1]
		}
		while ((getline line <types) > 0) {
			split(line, part, " ")
			print (part[2] == "constant" ? "" : "type:") part[1], header[part[3]] "#" part[1]
			print part[1], header[part[3]] "#" part[1], part[2], header[part[3]] "#" part[1] >kinds
		}
		print "man:cuatomic", "cuatomic.7.html"
		print "man:cuatomic_memory_order", "cuatomic_memory_order.7.html"
	}
	/^#/ { next }
	{
		split($2, part, ":")
		declared = header[part[1]] "#" $1
		page = $3 ".html"
		if ((page, $1) in at)
			to = page "#" $1
		else if ((page, family($1)) in at)
			to = page "#" family($1)
		else
			to = declared
		print $1, to
		print "declared:" $1, declared
		print $1, to, ($1 ~ /^cua_/ ? "function" : "macro"), declared >kinds
		delete first[$1]
	}
	END {
		# the families that only a manual page names
		for (name in first)
			print name, first[name]
	}' "$source/doc/api-index" | sort -u >"$tmp/names"

# ---- the framed pages ----

# framed PAGE KIND TITLE HEADING [FROM]
framed() {
	$AWK -v names="$tmp/names" -v paths="$tmp/paths" -v anchors="$tmp/anchors" -v headings="$tmp/headings" -v self="$1" \
		-v kind="$2" -v title="$3" -v heading="$4" -v version="$version" -v from="${5-}" -f "$tools/page.awk" \
		"$tmp/page/$1" >"$out/$1"
	echo "$1|$3|$6|$2" >>"$tmp/list"
}
while IFS='|' read -r page name lead _; do
	framed "$page" man "$name" "$name <small>$lead</small>" "" "$lead"
done <"$tmp/man"
while read -r header page; do
	# the first sentence
	lead=$($AWK '
		{ all = all " " $0 }
		/<\/p>/ { exit }
		END {
			gsub(/<[^>]*>|`/, "", all)
			gsub(/^ +| +$/, "", all)
			sub(/\. .*/, "", all)
			sub(/\.$/, "", all)
			gsub(/\|/, "", all)
			print all
		}' "$tmp/page/$page")
	framed "$page" header "$header" "&lt;$header&gt;" "" "$lead"
done <"$tmp/headers"
for file in $documents; do
	page=$(document "$file")
	title=$(sed -n '/^# /{s/^# *//;s/`//g;p;q;}' "$file")
	from=$(dirname "$file")
	[ "$from" != . ] || from=
	framed "$page" document "$title" "$title" "$from" ""
done
[ ! -f "$tmp/sources" ] || while read -r file page; do
	framed "$page" source "$file" "$file" "" ""
done <"$tmp/sources"

# ---- synchronization: that of all headers ----

{
	echo "<p>The contracts of the headers. In a table of calls, X means that the caller must order the two"
	echo "calls, and a dash that they may run concurrently. cuatomic_memory_order(7) explains orders, scopes and progress.</p>"
	echo "<section><h2 id=\"stream-order\">Stream order</h2>"
	echo "<p>The stream of the context orders the host calls of these headers. The functions of"
	echo "cuatomic/hash.h access no shared object.</p>"
	echo "<div class=\"wide\"><table><thead><tr><th scope=\"col\">Header</th><th scope=\"col\">Scope</th>"
	echo "<th scope=\"col\">Memory order</th><th scope=\"col\">Progress</th></tr></thead><tbody>"
	while read -r header page; do
		! grep -q '^<tr class="stream">' "$tmp/sync/$page" 2>/dev/null || sed "s:^<tr[^>]*>:<tr><td>$header</td>:" "$tmp/sync/$page"
	done <"$tmp/headers"
	echo "</tbody></table></div></section>"
	while read -r header page; do
		[ ! -f "$tmp/sync/$page" ] || grep -q '^<tr class="stream">' "$tmp/sync/$page" || {
			id=${header#cuatomic/}
			echo "<section><h2 id=\"${id%.h}\">$header</h2>"
			echo "<p>Header $header</p>"
			cat "$tmp/sync/$page"
			echo "</section>"
		}
	done <"$tmp/headers"
} >"$tmp/page/synchronization.html"
framed synchronization.html contracts "Synchronization" "Synchronization" "" "the calls that may run concurrently, of all headers"

# ---- index and search ----

# listed WITHOUT [WITH]: a list of documents, by patterns of their pages
listed() {
	echo "<ul>"
	$AWK -F '|' -v without="${1:-^$}" -v with="${2:-.}" '
		$4 == "document" && $1 ~ with && $1 !~ without { print "<li><a href=\"" $1 "\">" $2 "</a></li>" }' "$tmp/list"
	echo "</ul>"
}

{
	$AWK '/^\.SH NAME/ { getline; sub(/.*\\- /, ""); print "<p class=\"lead\">A C library of " $0 ".</p>"; exit }' doc/cuatomic.7
	echo "<ul class=\"start\">"
	echo "<li><a href=\"README.html\">Introduction</a> and first programs</li>"
	[ ! -f "$out/tutorial.html" ] || echo "<li><a href=\"tutorial.html\">Tutorial</a></li>"
	echo "<li><a href=\"cuatomic.7.html\">cuatomic(7)</a>: overview, errors, contexts and backends</li>"
	echo "<li><a href=\"cuatomic_memory_order.7.html\">cuatomic_memory_order(7)</a>: orders, scopes, progress</li>"
	echo "<li><a href=\"synchronization.html\">Synchronization</a>: the calls that may run concurrently</li>"
	echo "<li><a href=\"cuatomic.1.html\">cuatomic(1)</a>: the command</li>"
	echo "</ul>"
	echo "<h2 id=\"families\">Families</h2>"
	echo "<table class=\"list\"><thead><tr><th scope=\"col\">Part</th><th scope=\"col\">Manual page</th><th scope=\"col\">Header</th></tr></thead><tbody>"
	$AWK -F '|' '
		/^\.TS/ { table = 1 }
		/^\.TE/ { table = 0 }
		table && NF == 3 && $3 ~ /\(3\)$/ { print "<tr><td>" $1 "</td><td>" $3 "</td><td>" $2 "</td></tr>" }' doc/cuatomic.7
	echo "</tbody></table>"
	echo "<h2 id=\"headers\">Headers</h2>"
	echo "<table class=\"list\"><thead><tr><th scope=\"col\">Header</th><th scope=\"col\">Contents</th></tr></thead><tbody>"
	$AWK -F '|' '$4 == "header" { print "<tr><td><a href=\"" $1 "\">" $2 "</a></td><td>" $3 "</td></tr>" }' "$tmp/list"
	echo "</tbody></table>"
	echo "<h2 id=\"documents\">Documents</h2>"
	listed '^examples[-.]|^lab-notes|^HACKING|^CONTRIBUTING|^README'
	! grep -q '^examples-.*|document$' "$tmp/list" || {
		echo "<h2 id=\"examples\">Examples</h2>"
		listed '' '^examples[-.]'
	}
	echo "<h2 id=\"development\">Development</h2>"
	listed '' '^HACKING|^CONTRIBUTING|^lab-notes[.]'
} >"$tmp/page/index.html"
framed index.html index cuatomic "cuatomic $version" "" ""
{
	echo "<div id=\"frame-results\" aria-live=\"polite\"><noscript><p>The search needs JavaScript. <a href=\"index.html\">The index</a>"
	echo "lists all pages.</p></noscript></div>"
} >"$tmp/page/search.html"
framed search.html index Search Search "" ""

$AWK -v list="$tmp/list" -v headings="$tmp/headings" '
	function quoted(s) {
		gsub(/&lt;/, "<", s)
		gsub(/&gt;/, ">", s)
		gsub(/&quot;/, "\"", s)
		gsub(/&amp;/, "\\&", s)
		gsub(/\\/, "\\\\", s)
		gsub(/"/, "\\\"", s)
		gsub(/<\//, "<\\/", s)
		return "\"" s "\""
	}
	BEGIN {
		print "/* SPDX-License-Identifier: MIT */"
		print "/* pages: file, title, description. names: name, page, anchor (* is the name), kind, header. */"
		print "var cuatomicReference =\n{ \"pages\": ["
		while ((getline line <list) > 0) {
			split(line, part, "|")
			if (part[1] ~ /^(index|search)\.html$/)
				continue
			number[part[1]] = n++
			print (n > 1 ? "," : "") "[" quoted(part[1]) "," quoted(part[2]) "," quoted(part[3]) "]"
		}
		print "],\n\"names\": ["
	}
	{
		split($2, to, "#")
		split($4, declared, "#")
		print (NR > 1 ? "," : "") quoted($1 " " number[to[1]] " " (to[2] == $1 ? "*" : to[2]) " " substr($3, 1, 1) " " number[declared[1]])
	}
	END {
		print "],\n\"headings\": ["
		while ((getline line <headings) > 0) {
			split(line, part, " ")
			if (!(part[1] in number))
				continue
			text = line
			sub(/^[^ ]* [^ ]* /, "", text)
			if (text !~ /^(NAME|SYNOPSIS|DESCRIPTION|RETURN VALUE|EXAMPLES?|SEE ALSO|NOTES|ERRORS|Declarations)$/)
				print (headed++ ? "," : "") "[" number[part[1]] "," quoted(part[2]) "," quoted(text) "]"
		}
		print "]\n};"
	}' "$tmp/kinds" >"$out/search-index.js"
cp "$tools/style.css" "$tools/search.js" "$out"
chmod 644 "$out"/*
(cd "$out" && ls) >"$tmp/files"
cp "$tmp/files" "$out/files.txt"
chmod 644 "$out/files.txt"
rm -rf "$final"
mv "$out" "$final"
