#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every public function and every macro that makes or holds code has a manual page: its name is in the NAME of a
# page, or in a family that is there, and `make install` links it to that page. And no page has a name that the
# headers do not have. cuatomic(7) lists all pages and headers. Each page names the release and its date, and its
# examples keep their indentation.
#
# A family shares the name of its plain form: cua_atomic_fetch_add stands for cua_atomic_fetch_add_explicit_u32 and
# for cua_atomic_fetch_add_explicit_complex_f64.
#
# CHECK_MANUAL_DOC   look for the pages here [doc of the source]
set -uo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${CC:?}"

export LC_ALL=C
doc=${CHECK_MANUAL_DOC:-$top_srcdir/doc}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

# The suffixes that may follow the name of a family.
type='_(b|bf|c|complex_f|f|i|u)[0-9]+'
plain() { sed -E "s/_scope$//; s/$type$//; s/_explicit$//; s/_(warp|block)$//; s/_cas$//"; }

# ---- names in the headers ----

for header in "$top_srcdir"/include/cuatomic/*.h; do
  echo "#include <cuatomic/$(basename "$header")>"
done >"$tmp/all.c"
# shellcheck disable=SC2086 # a command with its flags
if ! $CC -E -P -I"$top_srcdir/include" -I"$top_builddir/include" "$tmp/all.c" >"$tmp/all.i"; then
  echo "FAILED: the headers do not go through the preprocessor"
  exit 1
fi
# Names with two underscores are internal. port.h alone describes the names of the port layer. "(*" follows the type of
# a pointer to a function.
{
  grep -oE '\bcua_[A-Za-z0-9_]+ ?\((\*|)' "$tmp/all.i" | grep -v '\*' | tr -d ' ('
  grep -hoE '^#define CUA_(WITH|DEFINE)_[A-Z_]+' "$top_srcdir"/include/cuatomic/*.h | cut -d ' ' -f 2 |
    sed 's/_SCOPE$//'
} | grep -Ev '__|^cua_port_' | sort -u >"$tmp/public"
n=$(wc -l <"$tmp/public")
if [ "$n" -lt 500 ]; then
  echo "FAILED: only $n functions were found in the headers"
  exit 1
fi

# ---- names in the pages ----

pages=$(sed -n '/^dist_man_MANS/,/[^\\]$/p' "$top_srcdir/doc/Makefile.am" | grep -oE '[A-Za-z_]+\.3')
for page in "$doc"/*.3; do
  page=$(basename "$page")
  if ! grep -qxF "$page" <<<"$pages"; then
    echo "FAILED: $page is not in doc/Makefile.am"
    failed=1
  fi
  for name in $(sed -n '/^\.SH NAME/,/^\.SH SYNOPSIS/{/^\./d;s/\\-.*//;s/,/ /g;p;}' "$doc/$page"); do
    case $name in
    cua_* | CUA_*) echo "$name $page" ;;
    esac
  done >>"$tmp/named"
done
cut -d ' ' -f 1 "$tmp/named" | sort >"$tmp/names"

# Pages that name a function of the port layer declare it as the port does.
for name in $(grep -ohE '\bcua_port_[a-z0-9_]+' "$doc"/*.[1-7] | sort -u); do
  sed -n "s/^\.B[IR]* \"\(.*$name(.*\)/\1/p" "$doc"/*.[1-7] | tr -d '";' | sed 's: \([,)]\):\1:g; s:  *: :g' >"$tmp/declared"
  if [ ! -s "$tmp/declared" ] || ! grep -qF "$(head -n 1 "$tmp/declared")" "$top_srcdir/include/cuatomic/port/port_host.h"; then
    echo "FAILED: no page declares $name as port_host.h does: $(cat "$tmp/declared")"
    failed=1
  fi
done

# ---- compared ----

for name in $(uniq -d "$tmp/names"); do
  echo "FAILED: two pages have the name $name"
  failed=1
done
plain <"$tmp/public" >"$tmp/families"
paste -d ' ' "$tmp/public" "$tmp/families" >"$tmp/both"
awk 'NR == FNR { named[$1]; next }
  { short = $1; sub(/_scope$/, "", short) }
  !($1 in named || short in named || $2 in named) {
    print "FAILED: the NAME of no page in doc/ has " $1 ", nor its family " $2; bad = 1
  }
  END { exit bad }' "$tmp/named" "$tmp/both" || failed=1
# A page is known by its own name, too: cua_atomic for the family.
while read -r name page; do
  if [ "$name.3" != "$page" ] && ! grep -qwF -e "$name" "$tmp/both" &&
    ! grep -qrwF -e "$name" "$top_srcdir/include/cuatomic"; then
    echo "FAILED: $page has the name $name, the headers have not"
    failed=1
  fi
done <"$tmp/named"

# ---- the links of make install ----

# shellcheck disable=SC2086
if ! bash "$top_srcdir/doc/api-index.sh" links "$doc" "$top_srcdir/include" $CC -I"$top_srcdir/include" \
  -I"$top_builddir/include" >"$tmp/links"; then
  echo "FAILED: doc/api-index.sh"
  failed=1
fi
{
  cut -d ' ' -f 1 "$tmp/links"
  for page in "$doc"/*.3; do basename "$page" .3; done
} | sort >"$tmp/linked"
for name in $(uniq -d "$tmp/linked"); do
  echo "FAILED: man has two pages for $name"
  failed=1
done
{
  grep -E '^cua_' "$top_srcdir/lib/libcuatomic.symbols"
  cat "$tmp/public"
  # also names that are not functions of the headers: a typed form, a function from
  # CUA_DEFINE_HASHMAP, initializers
  printf '%s\n' cua_dot_f32 cua_hashmap_insert_or_get CUA_SPINLOCK_INIT CUA_TICKETLOCK_INIT CUA_FINISH_INIT
} | sort -u | comm -23 - "$tmp/linked" | sed 's/^/FAILED: man finds no page for /' >"$tmp/unlinked"
if [ -s "$tmp/unlinked" ]; then
  cat "$tmp/unlinked"
  failed=1
fi
while read -r name page; do
  if [ ! -f "$doc/$page" ]; then
    echo "FAILED: the link of $name is to $page, which is not there"
    failed=1
  fi
done <"$tmp/links"

# ---- the overview ----

for page in "$doc"/*.[137]; do
  name=$(basename "$page")
  [ "$name" = cuatomic.7 ] || sed -n '/^\.SH SEE ALSO/,$p' "$doc/cuatomic.7" |
    grep -qxE "\.BR ${name%.*} \(${name##*.}\),?" || {
    echo "FAILED: cuatomic(7) does not list $name"
    failed=1
  }
done
for header in "$top_srcdir"/include/cuatomic/*.h; do
  header=cuatomic/$(basename "$header")
  sed -n '/^\.TS/,/^\.TE/p' "$doc/cuatomic.7" | grep -qF "|$header|" || [ "$header" = cuatomic/port.h ] || {
    echo "FAILED: cuatomic(7) does not list $header"
    failed=1
  }
done

# ---- release and date ----

version=$(sed -n 's/^#define CUA_VERSION_STRING "\(.*\)"$/\1/p' "$top_builddir/include/cuatomic/version.h")
released=$(sed -n '/^%changelog/{n;s/^\* \(.*20[0-9][0-9]\) .*/\1/p;}' "$top_srcdir/rpm/cuatomic.spec")
released=$(date -u -d "$released" +%F)
for page in "$doc"/*.[137]; do
  title=$(grep '^\.TH ' "$page")
  case $title in
  *" $released \"cuatomic $version\" "*) ;;
  *)
    echo "FAILED: $(basename "$page") is not of cuatomic $version of $released: $title"
    failed=1
    ;;
  esac
done

# ---- the indentation of examples ----

# In a page with a table a tab jumps to the columns of the table.
for page in "$doc"/*.[137]; do
  grep -q '^\.TS' "$page" || continue
  if sed '/^\.TS/,/^\.TE/d' "$page" | grep -n $'\t'; then
    echo "FAILED: $(basename "$page") has tabs outside its tables"
    failed=1
  fi
done
if command -v groff >/dev/null && command -v tbl >/dev/null && echo '.TH A 1' | groff -man -Tascii >/dev/null 2>&1; then
  for page in "$doc"/*.[137]; do
    grep -q '^\.TS' "$page" || continue
    groff -t -man -Tascii -P-c -P-b -P-u -rLL=140n "$page" >"$tmp/rendered" 2>"$tmp/err"
    # the lines that only man escapes would change are left out
    sed -n '/^\.EX/,/^\.EE/{/^ .*[A-Za-z]/p;}' "$page" | grep -v '\\' >"$tmp/example" || :
    while IFS= read -r line; do
      if ! grep -qxF -e "       $line" "$tmp/rendered"; then
        echo "FAILED: $(basename "$page") does not show this line of an example as it is: $line"
        failed=1
        break
      fi
    done <"$tmp/example"
  done
else
  echo "no groff: the examples were not rendered"
fi

echo "$n public functions and macros, $(wc -l <"$tmp/names") names of pages"
[ $failed = 0 ]
