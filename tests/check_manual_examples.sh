#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The examples of the manual pages. Each page has a complete program. A program in C compiles without warnings, runs,
# and prints the output of the page. Other functions compile. If nvcc is installed, it compiles the kernels.
#
# CHECK_MANUAL_DOC   look for the pages here [doc of the source]
set -uo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${AWK:?}" "${CC:?}" "${NVCC?}" "${NVCC_GENCODE?}" "${MPICC?}" "${MPIRUN?}"

export LC_ALL=C
top=$(cd "$top_srcdir" && pwd)
build=$(cd "$top_builddir" && pwd)
doc=${CHECK_MANUAL_DOC:-$top/doc}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
fail() {
  failed=1
  echo "FAILED: $*"
}
read -ra cc <<<"$CC ${SANITIZER_FLAGS-}"
read -ra nvcc <<<"$NVCC $NVCC_GENCODE"
flags=(-I"$top/include" -I"$build/include")
strict=(-std=gnu11 -Wall -Wextra -Werror)

export OMPI_CC=${cc[0]} MPICH_CC=${cc[0]}
# shellcheck source=tests/mpi_env.sh
. "$top_srcdir/tests/mpi_env.sh"

mkdir "$tmp/x"
$AWK -v dir="$tmp/x" -f "$top/tests/manual_examples.awk" "$doc"/*.[37]
cd "$tmp/x" || exit 1
for page in "$doc"/*.[37]; do
  page=$(basename "$page")
  set -- "$page".*.c "$page".*.cu
  [ -f "$1" ] || [ -f "$2" ] || fail "$page has no complete program"
done

# link COMPILER FILE FLAG...: an executable of the library in this build, shared or static
link() {
  local compiler=$1 source=$2
  shift 2
  "$compiler" "${cc[@]:1}" "${strict[@]}" "${flags[@]}" "$@" -c "$source" -o "$source.o" &&
    "$build/libtool" --silent --tag=CC --mode=link "$compiler" "${cc[@]:1}" -no-install "$source.o" "${libs[@]}" \
      "$build/lib/libcuatomic.la" -lpthread -lm -o "$source.out"
}
# ran SOURCE COMMAND...: runs the program and compares its output with that of the page
ran() {
  local stem=${1%.*} rc=0
  shift
  timeout 60 "$@" >out 2>err </dev/null || rc=$?
  if [ $rc != 0 ] && [ "${CUA_REQUIRE_GPU:-0}" = 0 ] && grep -qxF -f nodevice err; then
    echo "$stem: not run: $(cat err)"
  elif [ $rc != 0 ] || ! cmp -s "$stem.output" out; then
    fail "$stem: status $rc; < page, > program"
    diff "$stem.output" out
    cat err
  else
    programs=$((programs + 1))
  fi
}

printf '%s\n' 'no usable CUDA device' 'this library was built without CUDA' >nodevice
programs=0
for source in *.c; do
  stem=${source%.c} libs=()
  if [ ! -f "$stem.output" ]; then
    fail "$stem: the page does not state the output of its program"
    continue
  fi
  says=$(cat "$stem.says")
  run=()
  if grep -q 'cuatomic/mpi\.h' "$source"; then
    if [ ! -f "$build/mpi/libcuatomic-mpi.la" ] || [ -z "$MPIRUN" ] || [ -n "${SANITIZER_FLAGS-}" ]; then
      echo "$stem: not run: no MPI in this build, or a sanitizer"
      continue
    fi
    libs=("$build/mpi/libcuatomic-mpi.la")
    link "$MPICC" "$source" -I"$top/mpi" || {
      fail "$stem does not compile"
      continue
    }
    read -ra run <<<"$MPIRUN"
    run+=(-n 2)
  elif grep -q 'nccl\.h' "$source"; then
    # a double of the three declarations, where NCCL is missing
    echo '#include <nccl.h>' | "${cc[@]}" -E - >/dev/null 2>&1 || {
      mkdir -p nccl
      printf '%s\n' 'typedef void *ncclComm_t;' 'int ncclCommInitAll(ncclComm_t *, int, const int *);' \
        'int ncclCommDestroy(ncclComm_t);' >nccl/nccl.h
    }
    "${cc[@]}" "${strict[@]}" "${flags[@]}" -Inccl -fsyntax-only "$source" || fail "$stem does not compile"
    continue
  elif ! link "${cc[0]}" "$source"; then
    fail "$stem does not compile"
    continue
  fi
  case $says in
  'Without a GPU'*) ran "$source" env CUDA_VISIBLE_DEVICES=-1 "./$source.out" ;;
  'On x86-64'*) [ "$(uname -m)" != x86_64 ] || ran "$source" "./$source.out" ;;
  *) ran "$source" "${run[@]}" "./$source.out" ;;
  esac
done
[ $programs -ge 25 ] || fail "only $programs programs ran"

{
  printf '#include <%s>\n' stdio.h stdlib.h cuatomic.h
  cat ./*.part
} >parts.c
"${cc[@]}" "${strict[@]}" -Wno-unused-function "${flags[@]}" -fsyntax-only parts.c || fail "functions do not compile"

if [ -z "$NVCC" ]; then
  echo "no nvcc: the kernels were not compiled"
else
  # Pages repeat names, so each kernel has a namespace. Its own #include finds the header included already.
  {
    printf '#include <%s>\n' cmath cstdio cuatomic.h
    for kernel in *.kernel; do
      grep -q 'define CUA_LOCK_DEBUG' "$kernel" || {
        echo "namespace ${kernel//[.]/_} {"
        cat "$kernel"
        echo "}"
      }
    done
  } >kernels.cu
  for kernel in kernels.cu $(grep -l 'define CUA_LOCK_DEBUG' ./*.kernel); do
    "${nvcc[@]}" -x cu "${flags[@]}" -c "$kernel" -o kernels.o || fail "$kernel: kernels do not compile"
  done
  for source in *.cu; do
    [ "$source" != kernels.cu ] || continue
    # shellcheck disable=SC2086 # options of the linker
    if "${nvcc[@]}" "${flags[@]}" -c "$source" -o "$source.o" &&
      "$build/libtool" --silent --tag=CC --mode=link "${cc[@]}" -no-install "$source.o" "$build/lib/libcuatomic.la" \
        $CUDART_LIBS -lstdc++ -lpthread -lm -o "$source.out"; then
      ran "$source" "./$source.out"
    else
      fail "$source does not compile"
    fi
  done
fi
echo "$programs programs, $(ls ./*.part | wc -l) functions and $(ls ./*.kernel | wc -l) kernels of the pages"
[ $failed = 0 ]
