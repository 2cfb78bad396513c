#!/bin/sh
# SPDX-License-Identifier: MIT
# api-index.sh index|links DOC INCLUDE COMMAND...: finds the header line and the manual page of each public function
# and macro of the headers below INCLUDE. COMMAND is the C preprocessor, with the folders of headers.
#
# index prints "NAME HEADER:LINE PAGE". LINE is the line that declares the name, or the use of the macro that pastes
# the name together. PAGE is "-" for a constant that no page describes.
# links prints "NAME PAGE" for each name that is not itself the name of a page in DOC.
#
# A page describes the names under NAME and their families: cua_atomic_fetch_add stands for
# cua_atomic_fetch_add_explicit_u32. If the name's own header has a page, that page describes the other names of a
# family: cua_atomic_warp.3 has cua_atomic_fetch_add_warp_u32. A macro is also described by the page of its header, or
# else the first page, that has it in its text. What CUA_DEFINE_HASHMAP and its like make for the user's types (name_erase) is
# described by the page of the bulk call without _n.
#
# The status is 1, with a line on standard error, if a function, a macro with arguments or an initializer has no page,
# or if a function has the name of a struct, union or enum.
set -u
output=$1
doc=$2
include=$3
shift 3
LC_ALL=C
export LC_ALL
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

for header in "$include"/cuatomic/*.h; do
	echo "#include <cuatomic/${header##*/}>"
done >"$tmp/all.c"
"$@" -E "$tmp/all.c" >"$tmp/all.i" || exit 1

# ---- names, as "NAME HEADER:LINE" in "where" ----

# Names with two underscores are internal, and those of the port layer are described in port.h alone. A function is
# declared before its first call, so its first line is its declaration. For the text of a macro, the preprocessor
# reports the line of the macro's use.
awk -v folder="$include/" '
	/^#(line)? [0-9]+ "/ {
		split($0, part, "\"")
		file = index(part[2], folder) == 1 ? substr(part[2], length(folder) + 1) : ""
		line = $2
		next
	}
	{
		n = file == "" ? 0 : split($0, part, "(")
		for (i = 1; i < n; i++) {
			# a "*" follows the type of a pointer to a function
			if (part[i + 1] ~ /^\*/ || !match(part[i], /[A-Za-z0-9_]+ ?$/))
				continue
			name = substr(part[i], RSTART, RLENGTH)
			sub(/ $/, "", name)
			if (name ~ /^cua_/ && name !~ /__|^cua_port_/ && !(name in known)) {
				known[name]
				print name, file ":" line
			}
		}
		line++
	}' "$tmp/all.i" >"$tmp/functions"
if [ ! -s "$tmp/functions" ]; then
	echo "the preprocessor reads no header below $include" >&2
	exit 1
fi
# configure makes version.h of version.h.in, line by line.
for header in "$include"/cuatomic/*.h "$include"/cuatomic/version.h.in; do
	name=${header##*/}
	[ "$name" = version.h ] ||
		awk -v file="cuatomic/${name%.in}" '
			/^# *define CUA_[A-Z0-9_]+/ {
				sub(/^# *define /, "")
				name = $0
				sub(/[^A-Z0-9_].*/, "", name)
				kind = substr($0, length(name) + 1, 1) == "(" || name ~ /_INIT$/ ? "code" : "constant"
				if (name !~ /__/ && !(name in known)) {
					known[name]
					print name, file ":" FNR, kind
				}
			}' "$header"
done >"$tmp/macros"
cut -d ' ' -f 1,2 "$tmp/macros" | sort - "$tmp/functions" | sort -s -u -k 1,1 >"$tmp/where"
cut -d ' ' -f 1 "$tmp/where" >"$tmp/public"
# Constants and what the headers are made of need no page.
{
	cut -d ' ' -f 1 "$tmp/functions"
	sed -n 's/ [^ ]* code$//p' "$tmp/macros" |
		grep -vxE 'CUA_(STATIC_ASSERT|STATUS_LIST|API|FORCE|PORT_PATH)'
} | sort -u >"$tmp/required"

# ---- pages, as "NAME PAGE" in "pages" ----

for page in "$doc"/*.3; do
	name=${page##*/}
	sed -n '/^\.SH NAME/,/^\.SH SYNOPSIS/{/^\./d;s/\\-.*//;s/,/ /g;p;}' "$page" | tr -s ' ' '\n' |
		grep -E '^(cua|CUA)_' | sed "s/\$/ $name/"
done >"$tmp/named"
type='_(b|bf|c|complex_f|f|i|u)[0-9]+'
sed -E "s/_(scope|SCOPE)\$//; s/$type\$//; s/_explicit\$//; s/_(warp|block)\$//; s/_cas\$//" \
	<"$tmp/public" | paste -d ' ' "$tmp/public" - >"$tmp/both"
cut -d ' ' -f 2 "$tmp/where" | paste -d ' ' "$tmp/both" - >"$tmp/sought"
# The pages that have a macro in their text.
(cd "$doc" && grep -owE 'CUA_[A-Z0-9_]+' ./*.3) | sed -E 's:^\./([^:]*)\:(.*):\2 \1:' | sort -u >"$tmp/text"
awk '
	FILENAME ~ /named$/ { page[$1] = $2; there[$2]; next }
	FILENAME ~ /text$/ {
		has[$1, $2]
		if (!($1 in text))
			text[$1] = $2
		next
	}
	{
		short = $1
		sub(/_(scope|SCOPE)$/, "", short)
		own = $3
		sub(/^cuatomic\//, "cua_", own)
		sub(/\.h:.*/, ".3", own)
		sub(/_(b128|complex|half)\.3$/, "_wide.3", own)
		if ($1 in page)
			found = page[$1]
		else if (short in page)
			found = page[short]
		else if ($2 in page)
			found = own in there ? own : page[$2]
		else
			found = ($1, own) in has ? own : $1 in text ? text[$1] : "-"
		print $1, found
	}' "$tmp/named" "$tmp/text" "$tmp/sought" >"$tmp/pages"

# ---- output ----

case $output in
index)
	echo "# NAME HEADER:LINE PAGE of each public function and macro. Made by doc/api-index.sh."
	join "$tmp/where" "$tmp/pages"
	;;
links)
	awk '
		FILENAME ~ /named$/ { page[$1] = $2; next }
		$2 == "-" { next }
		$1 ".3" != $2 { print $1, $2 }
		{
			made = $1
			if (sub(/_n$/, "", made) && !(made in page))
				print made, $2
		}' "$tmp/named" "$tmp/pages" >"$tmp/links"
	# names of a page that no header has, such as the general name of a family
	awk 'NR == FNR { there[$1]; next } !($1 in there) && $1 ".3" != $2' "$tmp/links" "$tmp/named" |
		sort -u - "$tmp/links"
	;;
esac

# ---- mistakes ----

sed -n 's/ -$//p' "$tmp/pages" | grep -xFf "$tmp/required" | sed 's/^/no page in doc has the name /' >"$tmp/bad"
tr -s ' \t' '\n\n' <"$tmp/all.i" | awk '
	NR == FNR { called[$1]; next }
	{ sub(/[^A-Za-z0-9_].*/, "") }
	(before == "struct" || before == "union" || before == "enum") && $0 in called && !($0 in told) {
		told[$0]
		print "a function has the name of " before " " $0
	}
	{ before = $0 }' "$tmp/functions" - >>"$tmp/bad"
cat "$tmp/bad" >&2
[ ! -s "$tmp/bad" ]
