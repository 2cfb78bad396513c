#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The reference in HTML, as `make html` makes it: the same bits twice, no dead links or anchors, nothing from outside of
# its folder, and every public name is found by the search. html_links.py finds planted errors.
set -uo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${AWK:?}" "${MANDOC?}" "${CMARK?}" "${PYTHON?}"

if [ -z "$MANDOC" ] || [ -z "$CMARK" ] || [ "$PYTHON" = : ]; then
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
for file in "$top_srcdir"/examples/README.md "$top_srcdir"/examples/*/README.md; do
  page=examples${file#"$top_srcdir/examples"}
  page=$(dirname "$page" | tr / -).html
  grep -q "href=\"$page\"" "$tmp/html/index.html" || fail "the index does not link $page"
done
[ -z "$(find "$tmp/html" -name '*.md.html')" ] || fail "documents as sources: $(find "$tmp/html" -name '*.md.html')"
# shellcheck disable=SC2016 # backticks of Markdown
! grep -n '`' "$tmp/html/index.html" "$tmp/html/search-index.js" || fail "backticks in the index or in the search"
# shellcheck disable=SC2016
! grep -n '<title>.*`' "$tmp"/html/*.html || fail "backticks in titles"
! grep -n '<table' "$tmp"/html/*.html | grep -v '<div class="wide"><table\|<table class="list"' || fail "tables that do not scroll"
# the contract of each header with calls, in a section or in a row of the table "Stream order"
for file in "$top_srcdir"/include/cuatomic/*.h; do
  header=$(basename "$file" .h)
  case $header in
  atomic_path | lock | port | status | types) continue ;;
  esac
  "$AWK" -v header="$header" '
    /<h2/ { inside = index($0, "<h2 id=\"" header "\">") }
    inside { text = text $0 }
    index($0, ">cuatomic/" header ".h</a></td>") && !/<td><\/td>/ { row = 1 }
    END { exit !(row || text ~ /[Ss]cope/ && text ~ /[Mm]emory order/ && text ~ /[Pp]rogress/) }' "$tmp/html/synchronization.html" ||
    fail "synchronization.html lacks the scope, memory order or progress of $header.h"
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
# a run that fails changes nothing
cp -r "$tmp/html" "$tmp/kept"
for folder in none kept; do
  CMARK=false generate "$tmp/$folder" 2>"$tmp/err" && fail "a failure of cmark-gfm is no error"
done
diff -r "$tmp/html" "$tmp/kept" || fail "a run that fails changes the reference"
[ -z "$(find "$tmp" -maxdepth 1 -name 'none*' -o -maxdepth 1 -name '*.tmp')" ] || fail "a run that fails leaves a folder"
[ $failed = 0 ]
