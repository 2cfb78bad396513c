#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Install into an empty folder, then build programs against that copy with the
# flags that pkg-config gives and nothing else, as a user does. check_examples.sh builds the examples.
set -euo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${CC:?}" "${NVCC?}" "${NVCC_GENCODE?}" \
  "${CUDA_LIBDIR?}" "${SANITIZER_FLAGS?}" "${PKG_CONFIG?}" "${MAKE:?}" "${prefix?}" \
  "${libdir:?}" "${includedir?}" "${pkgconfigdir?}" "${docdir:?}" "${AWK:?}" "${MPICC?}" "${MPIRUN?}" \
  "${PYTHON:?}" "${MANDOC?}" "${CMARK?}" "${htmldir:?}" "${INSTALL_PYTHON:?}" "${pythondir?}"

# shellcheck source=tests/installed_copy.sh
. "$top_srcdir/tests/installed_copy.sh"
here=$(cd "$(dirname "$0")" && pwd)

version=$(pc --modversion cuatomic)
[ "$version" = "$(pc --modversion cuatomic-device)" ]

if [ ! -f "$root$docdir/LICENSE" ]; then
  echo "FAILED: the licence is not installed"
  exit 1
fi

say "the links of the installed README"
grep -oE '\]\([^):]*\)' "$root$docdir/README.md" | sed -E 's/^..//; s/\)$//' | sort -u >"$tmp/links"
[ "$(wc -l <"$tmp/links")" -ge 20 ]
while read -r link; do
  if [ ! -e "$root$docdir/$link" ]; then
    echo "FAILED: the installed README has a dead link: $link"
    exit 1
  fi
done <"$tmp/links"

say "a manual page for each function of the library"
while read -r symbol; do
  if [ -z "$(find -L "$root" -type f -name "$symbol.3")" ]; then
    echo "FAILED: the NAME of no page in doc/ has $symbol"
    exit 1
  fi
done < <(grep '^cua_' "$top_srcdir/lib/libcuatomic.symbols")
# other names would be other packages' pages
if find "$root" -name '*.3' ! -name 'cua_*' ! -name 'CUA_*' | grep .; then
  echo "FAILED: manual pages that are not of cuatomic"
  exit 1
fi

read -ra flags < <(pc --cflags cuatomic) || true
read -ra libs < <(pc --libs cuatomic) || true
read -ra static_libs < <(pc --static --libs cuatomic) || true
read -ra device_flags < <(pc --cflags cuatomic-device) || true
if [ -n "$(pc --libs cuatomic-device)" ]; then
  echo "FAILED: cuatomic-device.pc is for headers only, but names libraries"
  exit 1
fi

if [ -f "$root$libdir/libcuatomic.so" ]; then
  build "${cc[@]}" -Wall -Wextra "${flags[@]}" "$here/install_host.c" "${libs[@]}" -o "$tmp/host"
  "$tmp/host" "$version"
  if [ -f "$root$libdir/libcuatomic-mpi.so" ]; then
    read -ra mpi_flags < <(pc --cflags cuatomic-mpi)
    read -ra mpi_libs < <(pc --libs cuatomic-mpi)
    OMPI_CC=$CC MPICH_CC=$CC build "$MPICC" -Wall -Wextra "${mpi_flags[@]}" "$here/mpi_ranks.c" "${mpi_libs[@]}" \
      -o "$tmp/mpi_ranks"
  fi
  # Linked with -ffast-math a program takes subnormal numbers as zero.
  build "${cc[@]}" -Wall -Wextra "${flags[@]}" -c "$here/install_fixed.c" -o "$tmp/fixed.o"
  build "${cc[@]}" "$tmp/fixed.o" "${libs[@]}" -o "$tmp/fixed"
  build "${cc[@]}" -ffast-math "$tmp/fixed.o" "${libs[@]}" -o "$tmp/fixed_fast"
  "$tmp/fixed" >"$tmp/fixed.bits"
  "$tmp/fixed_fast" >"$tmp/fixed_fast.bits"
  if [ "$(wc -l <"$tmp/fixed.bits")" -lt 100 ] || ! diff "$tmp/fixed.bits" "$tmp/fixed_fast.bits"; then
    echo "FAILED: a program linked with -ffast-math has other results"
    exit 1
  fi
fi

if [ -f "$root$libdir/libcuatomic.a" ]; then
  # A folder with the archive alone: beside a shared library the linker takes that.
  mkdir "$tmp/static"
  cp "$root$libdir/libcuatomic.a" "$tmp/static"
  read -ra static_libs < <(pc_libdir=$tmp/static pc --static --libs cuatomic)
  build "${cc[@]}" "${flags[@]}" "$here/install_host.c" "${static_libs[@]}" -o "$tmp/host_static"
  "$tmp/host_static" "$version"
  if readelf -dW "$tmp/host_static" | grep 'NEEDED.*libcuatomic' >/dev/null; then
    echo "FAILED: the static program needs libcuatomic.so"
    exit 1
  fi

  # Each module names its own table of a backend, so a program gets the device code of the modules
  # that it calls.
  build "${cc[@]}" "${flags[@]}" "$here/install_locks.c" "${static_libs[@]}" -o "$tmp/locks_static"
  "$tmp/locks_static"
  tables() { nm "$1" | sed -nE 's/.* [DR] (cua__(cpu|cuda)_[a-z_]+)$/\1/p' | grep -v _runtime; }
  if ! tables "$tmp/host_static" | grep -x cua__cpu_reduce >/dev/null; then
    echo "FAILED: the table of reductions is not among the symbols of a program with a sum"
    exit 1
  fi
  if tables "$tmp/locks_static"; then
    echo "FAILED: these modules are in a static program that uses only the spinlock"
    exit 1
  fi
fi

# The programs of the README, compiled by the commands that stand below them.
mkdir "$tmp/readme"
$AWK -v dir="$tmp/readme" -f "$top_srcdir/tests/readme_blocks.awk" "$top_srcdir/README.md"
if [ "$(ls "$tmp/readme"/*.command | wc -l)" != "$(grep -c '^```c$' "$top_srcdir/README.md")" ] ||
  ! grep -lF 'cua_exact_sum(' "$tmp/readme"/*.c >/dev/null; then
  echo "FAILED: a program of README.md has no command, or none of them is of an exact sum"
  exit 1
fi
user_commands
for command in "$tmp/readme"/*.command; do
  program=${command%.command}
  if [ -f "$program.cu" ]; then
    say "README.md: $(cat "$command")"
    if ! grep 'main(' "$program.cu" >/dev/null && ! grep -e ' -c ' "$command" >/dev/null; then
      echo "FAILED: the command links a file without main"
      exit 1
    fi
    [ -n "$NVCC" ] || continue
  elif [ ! -f "$root$libdir/libcuatomic.so" ]; then
    continue
  fi
  (
    mkdir "$program"
    cp "$program".c* "$program"
    cd "$program"
    for source in *.c *.cu; do
      [ ! -f "$source" ] || [ "$source" = "${program##*/}.command" ] || mv "$source" "file.${source##*.}"
    done
    eval "$(cat "$command")"
    [ ! -f a.out ] || ./a.out >out
    if grep -F 'cua_exact_sum(' file.c* >/dev/null && [ "$(cat out)" != 1 ]; then
      echo "FAILED: the exact sum of README.md prints $(cat out)"
      exit 1
    fi
  )
done
unset -f cc nvcc pkg-config

if [ -n "$NVCC" ]; then
  # Headers alone, compiled and linked by nvcc.
  build "${nvcc[@]}" "${device_flags[@]}" "$here/install_device.cu" -o "$tmp/device"
  rc=0
  "$tmp/device" || rc=$?
  case $rc in
  0 | 77) ;;
  *) echo "FAILED: install_device exits $rc"; exit 1 ;;
  esac
fi

package=$root$pythondir/cuatomic
if [ "$INSTALL_PYTHON" = no ]; then
  if [ -e "$package" ]; then
    echo "FAILED: the Python package is installed without --enable-python"
    exit 1
  fi
else
  say "the Python package"
  if ! diff <({ cd "$top_srcdir/python/cuatomic" && printf '%s\n' _config.py py.typed *.py *.cu; } | sort -u) \
    <(cd "$package" && printf '%s\n' * | grep -v __pycache__ | sort); then
    echo "FAILED: < not installed; > installed without a source"
    exit 1
  fi
  if [ -f "$root$libdir/libcuatomic.so" ] && [ -z "$SANITIZER_FLAGS" ]; then
    # under DESTDIR the folder of the headers is another one
    grep -qxF "INCLUDE_DIR = \"$includedir\"" "$package/_config.py"
    echo "INCLUDE_DIR = \"$root$includedir\"" >"$package/_config.py"
    cat >"$tmp/installed.py" <<'END'
import sys
import cuatomic

assert cuatomic.__file__ == sys.argv[1] + "/__init__.py", cuatomic.__file__
assert cuatomic.get_include() == sys.argv[2], cuatomic.get_include()
assert sys.argv[3] in open("/proc/self/maps").read(), "the installed library is not loaded"
END
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root$pythondir "$PYTHON" "$tmp/installed.py" "$package" "$root$includedir" \
      "$(realpath "$root$libdir")/libcuatomic.so.0"
  fi
fi

say "cuatomic-uninstalled.pc"
export PKG_CONFIG_PATH=$builddir/pkgconfig
read -ra flags < <("$PKG_CONFIG" --cflags cuatomic)
read -ra libs < <("$PKG_CONFIG" --libs cuatomic)
libtool=$("$PKG_CONFIG" --variable=libtool cuatomic-uninstalled)
build "${cc[@]}" "${flags[@]}" -c "$here/install_host.c" -o "$tmp/uninstalled.o"
(
  # libtool's wrapper relinks or runs from the folder it was made in
  cd "$tmp"
  build "$libtool" --silent --tag=CC --mode=link "${cc[@]}" uninstalled.o "${libs[@]}" -o uninstalled
  unset LD_LIBRARY_PATH
  [ -z "$CUDA_LIBDIR" ] || export LD_LIBRARY_PATH=$CUDA_LIBDIR
  ./uninstalled "$version"
)

if [ -n "$MANDOC" ] && [ -n "$CMARK" ]; then
  say "make install-html"
  $MAKE -C "$builddir" install-html DESTDIR="$root" >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
  # the files of an earlier release are removed
  echo old >"$root$htmldir/old.html"
  echo old.html >>"$root$htmldir/files.txt"
  $MAKE -C "$builddir" install-html DESTDIR="$root" >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
  if [ ! -f "$root$htmldir/index.html" ] || [ -f "$root$htmldir/old.html" ]; then
    echo "FAILED: make install-html"
    exit 1
  fi
fi

say "make uninstall"
make_copy uninstall
if grep 'line [0-9]*:' "$tmp/log"; then
  echo "FAILED: the shell reports an error in make uninstall"
  exit 1
fi
# no file, and no folder that other packages would not have made
left=$(find "$root" ! -type d -o -type d \( -name cuatomic -o -path '*/cuatomic/*' -o -path "$root$docdir" \
  -o -path "$root$docdir/*" \))
if [ -n "$left" ]; then
  echo "FAILED: make uninstall leaves"
  echo "$left"
  exit 1
fi
# a user's own file beside our files remains
make_copy install
echo mine >"$root$docdir/mine"
make_copy uninstall
if [ "$(cat "$root$docdir/mine")" != mine ] || [ "$(find "$root$docdir" | wc -l)" != 2 ]; then
  echo "FAILED: make uninstall and a file of the user's own"
  exit 1
fi
