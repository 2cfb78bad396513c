#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The reference in HTML, as `make html` makes it: the same bits twice, no dead links or anchors, nothing from outside of
# its folder, and every public name is found by the search. html_links.py finds planted errors.
set -uo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${AWK:?}" "${MANDOC?}" "${CMARK?}" "${PYTHON?}"

if [ -z "$MANDOC" ] || [ -z "$CMARK" ] || [ -z "$PYTHON" ]; then
  echo "skipped: no mandoc, no cmark-gfm or no Python"
  exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
fail() {
  failed=1
  echo "FAILED: $*"
}
export AWK MANDOC CMARK
version=$(sed -n 's/^#define CUA_VERSION_STRING "\(.*\)"$/\1/p' "$top_builddir/include/cuatomic/version.h")
generate() { sh "$top_srcdir/doc/reference/reference.sh" "$1" "$top_srcdir" "$top_builddir" "$version"; }
# errors FOLDER PATTERN: the checker prints an error with this pattern
errors() {
  "$PYTHON" "$top_srcdir/tests/html_links.py" "$1" "$top_srcdir/doc/api-index" >"$tmp/log" && fail "$2 was not found"
  grep -q -e "$2" "$tmp/log" || {
    fail "$2 was not reported"
    cat "$tmp/log"
  }
}

if ! generate "$tmp/html" 2>"$tmp/err" || [ -s "$tmp/err" ]; then
  echo "FAILED: reference.sh"
  cat "$tmp/err"
  exit 1
fi
(umask 077 && LC_ALL=C.UTF-8 TZ=Asia/Tokyo generate "$tmp/again") || fail "reference.sh, the second time"
diff -r "$tmp/html" "$tmp/again" || fail "two runs have different bits"
[ -z "$(find "$tmp/again" -type f ! -perm 644)" ] || fail "the umask changes the permissions of the files"
"$PYTHON" "$top_srcdir/tests/html_links.py" "$tmp/html" "$top_srcdir/doc/api-index" || fail "links"
diff <(find "$tmp/html" ! -name files.txt -type f -printf '%f\n' | sort) <(sort "$tmp/html/files.txt") || fail "files.txt does not list the files"

# each page of the manual, each header and each document is there, and the index links it
for file in "$top_srcdir"/doc/*.[1-9] "$top_srcdir"/include/cuatomic/*.h "$top_srcdir"/doc/*.md; do
  page=$(basename "$file").html
  case $file in
  *.h) page=cuatomic-$page ;;
  *.md) page=${page%.md.html}.html ;;
  esac
  grep -q "href=\"$page\"" "$tmp/html/index.html" || fail "the index does not link $page"
done
for header in append spinlock hashmap reduce; do
  grep -q "<h2 id=\"$header\">" "$tmp/html/synchronization.html" || fail "synchronization.html lacks $header.h"
done
tables=$(grep -c '<table class="sync">' "$tmp/html/synchronization.html")
[ "$tables" -ge 15 ] || fail "synchronization.html has only $tables tables"

# ---- planted errors ----

planted() { # planted PATTERN FILE SED-COMMAND
  rm -rf "$tmp/planted"
  cp -r "$tmp/html" "$tmp/planted"
  sed -i "$3" "$tmp/planted/$2"
  ! cmp -s "$tmp/html/$2" "$tmp/planted/$2" || fail "the error was not planted: $1"
  errors "$tmp/planted" "$1"
}
planted 'dead link nowhere.html' index.html 's/href="cua_join.3.html"/href="nowhere.html"/'
planted 'dead anchor #nowhere' cua_join.3.html 's/href="#EXAMPLES"/href="#nowhere"/'
planted 'not in the folder: https' index.html 's:</main>:<img alt="x" src="https\://example.org/x.png">&:'
planted '</main> closes <b>' index.html 's:</main>:<b>&:'
planted 'two elements have the id' cua_join.3.html 's/id="NOTES"/id="NAME"/'
planted 'does not find cua_join$' search-index.js '/"cua_join /d'
planted 'dead anchor cua_join.3.html#cua_join$' cua_join.3.html 's/id="cua_join"/id="cua_joins"/'
planted 'an external resource' style.css '1a@import "other.css";'
mkdir "$tmp/missing"
MANDOC=$tmp/missing/mandoc generate "$tmp/none" 2>"$tmp/err" && fail "a missing mandoc is no error"
grep -q 'mandoc is not installed' "$tmp/err" || fail "a missing mandoc: $(cat "$tmp/err")"
[ $failed = 0 ]
