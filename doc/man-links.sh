#!/bin/sh
# SPDX-License-Identifier: MIT
# man-links.sh DOC INCLUDE COMMAND...: prints "NAME PAGE" for each public function and macro of the headers below
# INCLUDE that is not itself the name of a page in DOC. COMMAND is the C preprocessor, with the folders of headers.
#
# A page describes the names under NAME and their families: cua_atomic_fetch_add stands for
# cua_atomic_fetch_add_explicit_u32 and for cua_atomic_fetch_add_explicit_complex_f64. A macro is also described by the
# first page that has it in its text. What CUA_DEFINE_HASHMAP and its like make for the user's types (name_erase) goes
# by the name of the bulk call without _n. Functions, macros with arguments and initializers without a page are told on
# standard error, and the status is 1.
set -u
doc=$1
include=$2
shift 2
LC_ALL=C
export LC_ALL
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

for header in "$include"/cuatomic/*.h; do
	echo "#include <cuatomic/${header##*/}>"
done >"$tmp/all.c"
"$@" -E -P "$tmp/all.c" >"$tmp/all.i" || exit 1

# Names with two underscores are internal, and those of the port layer are described in port.h alone.
{
	grep -oE '\bcua_[A-Za-z0-9_]+ ?\(' "$tmp/all.i" | tr -d ' ('
	sed -nE 's/^#[ ]*define (CUA_[A-Z0-9_]+).*/\1/p' "$include"/cuatomic/*.h
} | grep -Ev '__|^cua_port_' | sort -u >"$tmp/public"
# Constants and what the headers are made of need no page.
{
	grep '^cua_' "$tmp/public"
	sed -nE 's/^#[ ]*define (CUA_[A-Z0-9_]+)(\(.*|[A-Z0-9_]* .*)/\1 \2/p' "$include"/cuatomic/*.h |
		awk '$2 ~ /^\(/ || $1 ~ /_INIT$/ { print $1 }' |
		grep -Ev '__|^CUA_(STATIC_ASSERT|STATUS_LIST|API|FORCE|PORT_PATH)$'
} | sort -u >"$tmp/required"

for page in "$doc"/*.3; do
	name=${page##*/}
	sed -n '/^\.SH NAME/,/^\.SH SYNOPSIS/{/^\./d;s/\\-.*//;s/,/ /g;p;}' "$page" | tr -s ' ' '\n' |
		grep -E '^(cua|CUA)_' | sed "s/\$/ $name/"
done >"$tmp/named"
type='_(b|bf|c|complex_f|f|i|u)[0-9]+'
sed -E "s/_(scope|SCOPE)\$//; s/$type\$//; s/_explicit\$//; s/_(warp|block)\$//; s/_cas\$//" \
	<"$tmp/public" | paste -d ' ' "$tmp/public" - >"$tmp/both"

# The pages that have a macro in their text.
grep -E '^CUA_' "$tmp/public" >"$tmp/macros"
(cd "$doc" && grep -owE 'CUA_[A-Z0-9_]+' ./*.3) | sed -E 's:^\./([^:]*)\:(.*):\2 \1:' | sort -u >"$tmp/text"

awk -v missing="$tmp/missing" '
	FILENAME ~ /named$/ { page[$1] = $2; next }
	FILENAME ~ /text$/ { if (!($1 in text)) text[$1] = $2; next }
	{
		short = $1
		sub(/_(scope|SCOPE)$/, "", short)
		found = $1 in page ? page[$1] : short in page ? page[short] : $2 in page ? page[$2] : text[$1]
		if (!found)
			print $1 >missing
		else if ($1 ~ /_n$/ && !(substr($1, 1, length($1) - 2) in page))
			print substr($1, 1, length($1) - 2), found
		if (!found)
			next
		if (found != $1 ".3")
			print $1, found
	}' "$tmp/named" "$tmp/text" "$tmp/both" >"$tmp/links"
# names of a page that no header has, such as the general name of a family
awk 'NR == FNR { there[$1]; next } !($1 in there) && $1 ".3" != $2' "$tmp/links" "$tmp/named" >>"$tmp/links"
sort -u "$tmp/links"
touch "$tmp/missing"
if grep -xFf "$tmp/required" "$tmp/missing" >"$tmp/bad"; then
	sed 's/^/no page in doc has the name /' "$tmp/bad" >&2
	exit 1
fi
