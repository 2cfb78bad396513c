#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# CMake, Meson, pkg-config and Autotools find an installed copy that was moved. The programs, files and commands come
# from doc/build-systems.md. Each program verifies its results and loads the library of the moved copy, or none.
# CMake refuses other versions and missing components with a reason.
#
# With CUA_TEST_QUICK=1 the slow parts are left out: CUDA, MPI and Autotools.
set -euo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${CC:?}" "${CXX?}" "${NVCC?}" "${SANITIZER_FLAGS?}" "${PKG_CONFIG?}" \
  "${MAKE:?}" "${prefix?}" "${libdir:?}" "${includedir:?}" "${pkgconfigdir?}" "${AWK:?}" "${MPICC?}"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export LC_ALL=C
builddir=$(cd "$top_builddir" && pwd)
srcdir=$(cd "$top_srcdir" && pwd)
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES PKG_CONFIG_PATH CMAKE_PREFIX_PATH cuatomic_DIR cuatomic_ROOT

have() { command -v "${1%% *}" >/dev/null 2>&1; }
parts=0
left_out() { echo "skipped: $*"; }
fail() {
  echo "FAILED: $*"
  exit 1
}
# quietly WHAT COMMAND...: the output is printed if the command fails
quietly() {
  local what=$1
  shift
  "$@" >"$tmp/log" 2>&1 || {
    cat "$tmp/log"
    fail "$what"
  }
}
if ! have cmake && ! have "${PKG_CONFIG:-none}"; then
  left_out "neither CMake nor pkg-config"
  exit 77
fi

# ---- an installed copy, moved ----

# shellcheck source=tests/install_lock.sh
. "$top_srcdir/tests/install_lock.sh"
quietly "make install" locked $MAKE -C "$builddir" install DESTDIR="$tmp/root"
mkdir "$tmp/moved"
mv "$tmp/root" "$tmp/moved/elsewhere"
root=$tmp/moved/elsewhere
copy=$root$prefix
version=$(sed -n 's/^#define CUA_VERSION_STRING "\(.*\)"$/\1/p' "$root$includedir/cuatomic/version.h")
# a folder of the build is a hint for the CUDA runtime at most
for file in "$root$pkgconfigdir"/*.pc "$root$libdir"/cmake/cuatomic/*; do
  for folder in "$builddir" "$srcdir" "$tmp"; do
    ! grep -nF "$folder" "$file" || fail "$file names $folder"
  done
  case $prefix in
  /usr) ;;
  *) ! grep -nE "(^|[^A-Za-z0-9_/])$prefix/(lib|include)" "$file" || fail "$file names the prefix" ;;
  esac
done
have_shared=
have_static=
[ ! -f "$root$libdir/libcuatomic.so" ] || have_shared=yes
[ ! -f "$root$libdir/libcuatomic.a" ] || have_static=yes
# /usr is an absolute prefix: its copies are roots of other systems
if grep -q '^prefix=/' "$root$pkgconfigdir/cuatomic.pc"; then
  export PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
fi

# ---- the document ----

mkdir "$tmp/document"
$AWK -v dir="$tmp/document" -f "$srcdir/tests/document_files.awk" "$srcdir/doc/build-systems.md"
export CC CXX PKG_CONFIG CFLAGS="$SANITIZER_FLAGS" CXXFLAGS="$SANITIZER_FLAGS" LDFLAGS="$SANITIZER_FLAGS"
# the commands cc, pkg-config and make of the document
mkdir "$tmp/bin"
wrap() { # wrap NAME COMMAND...
  local name=$1 first
  shift
  first=$(type -P "$1")
  shift
  { echo '#!/bin/sh' && echo "exec $first $* \"\$@\""; } >"$tmp/bin/$name"
  chmod +x "$tmp/bin/$name"
}
# shellcheck disable=SC2086 # commands with their options
{
  wrap cc $CC $SANITIZER_FLAGS -Wall -Wextra
  wrap make $MAKE
  [ -z "$PKG_CONFIG" ] || wrap pkg-config $PKG_CONFIG
}
# folder NAME FILE...: the files of the document for a build, in $tmp/NAME
folder() {
  local name=$1 file
  shift
  [ -d "$tmp/document/$name" ] || fail "doc/build-systems.md has no files $name/"
  cp -r "$tmp/document/$name" "$tmp/$name"
  for file; do cp "$tmp/document/$file" "$tmp/$name/"; done
}
# commands NAME [LIKE]: the commands of NAME, or of LIKE, for the moved copy
commands() {
  local name=$1 file=$tmp/document/${2:-$1}/commands
  [ -f "$file" ] || fail "doc/build-systems.md has no commands of $name"
  sed -e "s|/opt/cuatomic/lib/pkgconfig|$root$pkgconfigdir|g" -e "s|/opt/cuatomic/lib|$root$libdir|g" \
    -e "s|/opt/cuatomic|$copy|g" "$file" >"$tmp/commands"
  (cd "$tmp/$name" && PATH=$tmp/bin:$PATH bash -eux "$tmp/commands") >"$tmp/log" 2>&1 || {
    cat "$tmp/log"
    fail "the commands of $name"
  }
  parts=$((parts + 1))
}
# links FILE static|shared: whether the program loads the library, and from the moved copy
links() {
  local loads
  loads=$(readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(libcuatomic\.so.*\)\]$/\1/p')
  case $2:$loads in
  shared:libcuatomic.so.*)
    loads=$(LD_LIBRARY_PATH=${3-}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ldd "$1" | sed -n 's/.*libcuatomic\.so.* => \([^ ]*\) .*/\1/p')
    [ "$(realpath "$loads")" = "$(realpath "$root$libdir/libcuatomic.so")" ] || fail "$1 loads $loads"
    ;;
  static:) ;;
  *) fail "$1, linked $2, loads '$loads'" ;;
  esac
}
usual=shared
[ -n "$have_shared" ] || usual=static

# ---- CMake ----

# cmake_says MESSAGE ARGUMENTS...: find_package(cuatomic ARGUMENTS) fails with the message; "" if it succeeds
questions=0
# without a language, CMake does not know Debian's folder of this machine
architecture=
case $libdir in */lib/*-linux-*) architecture=-DCMAKE_LIBRARY_ARCHITECTURE=${libdir##*/} ;; esac
cmake_says() {
  local expected=$1 rc=0
  shift
  questions=$((questions + 1))
  mkdir -p "$tmp/question"
  printf '%s\n' 'cmake_minimum_required(VERSION 3.16)' 'project(question NONE)' "find_package(cuatomic $*)" \
    'message(STATUS "found=${cuatomic_FOUND} version=${cuatomic_VERSION} cuda=${cuatomic_CUDA}")' \
    'message(STATUS "static=${cuatomic_static_FOUND}")' >"$tmp/question/CMakeLists.txt"
  rm -rf "$tmp/question/build"
  cmake -S "$tmp/question" -B "$tmp/question/build" -DCMAKE_PREFIX_PATH="$copy" $architecture \
    >"$tmp/log" 2>"$tmp/err" || rc=$?
  if [ -z "$expected" ] && { [ $rc != 0 ] || [ -s "$tmp/err" ] || ! grep -F "found=1 version=$version" "$tmp/log" >/dev/null; }; then
    cat "$tmp/log" "$tmp/err"
    fail "find_package(cuatomic $*) fails or has a warning"
  fi
  if [ -n "$expected" ] && { [ $rc = 0 ] || ! tr -s '\n ' '  ' <"$tmp/err" | grep -F "$expected" >/dev/null; }; then
    cat "$tmp/log" "$tmp/err"
    fail "find_package(cuatomic $*) does not say: $expected"
  fi
}
if ! have cmake; then
  left_out "no CMake"
else
  if [ -n "$have_shared$have_static" ]; then
    folder cmake program.c
    commands cmake
    links "$tmp/cmake/build/program" $usual
  fi
  if [ -n "$have_static" ]; then
    folder cmake-static program.c counter.c
    commands cmake-static cmake
    links "$tmp/cmake-static/build/program" static
    quietly "the program with the headers alone" "$tmp/cmake-static/build/counter"
  else
    left_out "CMake with a static library: none in this build"
  fi

  # C++, and the other languages and libraries of this machine
  mkdir "$tmp/more"
  cp "$tmp/document/program.c" "$tmp/more/program.cc"
  cp "$tmp/document/cmake-cuda/kernel.cu" "$srcdir/tests/mpi_ranks.c" "$tmp/more"
  languages=
  {
    echo 'find_package(cuatomic 0.1 REQUIRED OPTIONAL_COMPONENTS static mpi)'
    echo 'find_package(cuatomic 0.1 REQUIRED)'
    if [ -n "$CXX" ]; then
      languages="$languages CXX"
      printf '%s\n' 'add_executable(program program.cc)' 'target_link_libraries(program PRIVATE cuatomic::cuatomic)'
    fi
    nvcc=${NVCC:-$(command -v nvcc || :)}
    if [ -n "${CUA_TEST_QUICK-}" ] || [ -z "$nvcc" ] || [ -n "$SANITIZER_FLAGS" ]; then
      left_out "CMake with CUDA: quick, a sanitizer or no nvcc" >&2
    else
      languages="$languages CUDA"
      read -ra words <<<"$nvcc"
      export CUDACXX=${words[0]} CUDAFLAGS="${words[*]:1}"
      # compiled once, with the headers alone
      printf '%s\n' 'add_library(object OBJECT kernel.cu)' 'target_link_libraries(object PRIVATE cuatomic::device)' \
        'add_executable(kernel $<TARGET_OBJECTS:object>)' 'target_link_libraries(kernel PRIVATE cuatomic::cuatomic)' \
        'set_target_properties(kernel PROPERTIES LINKER_LANGUAGE CUDA)' 'if(TARGET cuatomic::static)' \
        'add_executable(kernel_static $<TARGET_OBJECTS:object>)' \
        'target_link_libraries(kernel_static PRIVATE cuatomic::static)' \
        'set_target_properties(kernel_static PROPERTIES LINKER_LANGUAGE CUDA)' 'endif()'
    fi
    if [ -n "${CUA_TEST_QUICK-}" ] || [ -n "$SANITIZER_FLAGS" ] || [ ! -f "$root$libdir/libcuatomic-mpi.so" ]; then
      left_out "CMake with MPI: quick, a sanitizer or no libcuatomic-mpi.so" >&2
    else
      languages="$languages C"
      printf '%s\n' 'if(NOT TARGET cuatomic::mpi)' 'message(FATAL_ERROR "no cuatomic::mpi")' 'endif()' \
        'add_executable(ranks mpi_ranks.c)' 'target_link_libraries(ranks PRIVATE cuatomic::mpi)'
    fi
    # the project's languages are known only here
    printf '%s\n' 'cmake_minimum_required(VERSION 3.16)' 'if(POLICY CMP0104)' 'cmake_policy(SET CMP0104 OLD)' 'endif()' \
      "project(more$languages)" >"$tmp/more/CMakeLists.txt"
  } >"$tmp/more/body"
  cat "$tmp/more/body" >>"$tmp/more/CMakeLists.txt"
  if [ -n "$languages" ] && [ -n "$have_shared$have_static" ]; then
    more() { cmake -S "$tmp/more" -B "$tmp/more/build" -DCMAKE_PREFIX_PATH="$copy" && cmake --build "$tmp/more/build"; }
    quietly "CMake with$languages" more
    parts=$((parts + 1))
    if [ -n "$CXX" ]; then
      quietly "the program in C++" "$tmp/more/build/program"
      links "$tmp/more/build/program" $usual
    fi
    [ ! -f "$tmp/more/build/kernel" ] || links "$tmp/more/build/kernel" $usual
    [ ! -f "$tmp/more/build/kernel_static" ] || links "$tmp/more/build/kernel_static" static
    [ ! -f "$tmp/more/build/ranks" ] || links "$tmp/more/build/ranks" shared
  fi

  # versions
  series=${version%.*}
  cmake_says "" REQUIRED COMPONENTS device
  grep -xF -e "-- found=1 version=$version cuda=$($AWK -F= '/^cuda=/ { print $2 }' "$root$pkgconfigdir/cuatomic.pc")" "$tmp/log" >/dev/null ||
    fail "cuatomic_CUDA differs from the variable of pkg-config"
  cmake_says "" 0.1 REQUIRED COMPONENTS device
  cmake_says "" "$version" EXACT REQUIRED COMPONENTS device
  cmake_says 'compatible with requested version "99"' 99 REQUIRED
  cmake_says 'compatible with requested version "0.0.9"' 0.0.9 REQUIRED
  cmake_says "compatible with requested version \"$series.99\"" "$series.99" REQUIRED
  case $(cmake --version | head -n 1) in
  *' 3.1'[0-8].*) ;;
  *)
    cmake_says "" "0.1...<1" REQUIRED COMPONENTS device
    cmake_says 'compatible with requested version range "99...<100"' "99...<100" REQUIRED
    cmake_says "" "0.1...$version" REQUIRED COMPONENTS device
    ;;
  esac

  # components: a distribution may put a library into another package
  away() { [ ! -e "$root$libdir/$1" ] || mv "$root$libdir/$1" "$tmp/away/"; }
  mkdir "$tmp/away"
  cmake_says "cuatomic has the components shared, static, device and mpi" REQUIRED COMPONENTS planted
  away libcuatomic.a
  cmake_says "cannot offer the component static: there is no $root$libdir/libcuatomic.a" REQUIRED COMPONENTS static
  if [ -n "$have_shared" ]; then
    cmake_says "" REQUIRED OPTIONAL_COMPONENTS static mpi
    grep -xF -e '-- static=FALSE' "$tmp/log" >/dev/null || fail "cuatomic_static_FOUND without an archive"
  fi
  [ ! -e "$tmp/away/libcuatomic.a" ] || mv "$tmp/away/libcuatomic.a" "$root$libdir/"
  away libcuatomic-mpi.so
  away libcuatomic-mpi.a
  if [ -n "$have_shared$have_static" ]; then
    cmake_says "cannot offer the component mpi: there is no $root$libdir/libcuatomic-mpi.so" REQUIRED COMPONENTS mpi
  fi
  away libcuatomic.so
  cmake_says "cannot offer the component shared: there is no $root$libdir/libcuatomic.so" REQUIRED COMPONENTS shared
  if [ -n "$have_static" ] && [ -n "$have_shared" ]; then
    # cuatomic::cuatomic is the archive then
    rm -rf "$tmp/cmake/build"
    commands cmake
    links "$tmp/cmake/build/program" static
  fi
  away libcuatomic.a
  cmake_says "cannot offer the library: there is no $root$libdir/libcuatomic.so" REQUIRED
  cmake_says "" REQUIRED COMPONENTS device
  for file in "$tmp"/away/*; do
    # libcuatomic.so is a link to a file that remained
    [ ! -e "$file" ] && [ ! -L "$file" ] || mv "$file" "$root$libdir/"
  done
fi

# ---- pkg-config, Meson, Autotools ----

if [ -z "$PKG_CONFIG" ] || ! have "$PKG_CONFIG"; then
  left_out "Meson, Autotools: no pkg-config"
else
  [ "$(PKG_CONFIG_PATH=$root$pkgconfigdir $PKG_CONFIG --modversion cuatomic)" = "$version" ]
  if [ -n "$have_shared" ]; then
    folder pkg-config program.c counter.c
    commands pkg-config
    links "$tmp/pkg-config/program" shared "$root$libdir"
  else
    left_out "pkg-config with a shared library: none in this build"
  fi
  if [ -n "$have_static" ]; then
    folder pkg-config-static program.c
    commands pkg-config-static
    links "$tmp/pkg-config-static/program" static
  else
    left_out "pkg-config and Meson with a static library: none in this build"
  fi
  if ! have meson || ! have ninja; then
    left_out "no Meson"
  else
    if [ -n "$have_shared" ]; then
      folder meson program.c counter.c
      commands meson
      links "$tmp/meson/build/program" shared
    fi
    if [ -n "$have_static" ]; then
      folder meson-static program.c counter.c
      sed -i '/counter/d' "$tmp/document/meson/commands"
      commands meson-static meson
      links "$tmp/meson-static/build/program" static
    fi
  fi
  if [ -n "${CUA_TEST_QUICK-}" ] || [ -z "$have_shared" ] || ! have autoreconf || ! have automake; then
    left_out "Autotools: quick, no shared library or no autoconf and automake"
  else
    folder autotools program.c
    commands autotools
    links "$tmp/autotools/program" shared "$root$libdir"
  fi
fi

if [ $parts = 0 ]; then
  left_out "no build system of this machine can use this build"
  exit 77
fi
echo "$parts builds, $questions calls of find_package"
