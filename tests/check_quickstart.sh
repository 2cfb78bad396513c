#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# quickstart on simulated machines: a private PATH with a compiler, packages and root that are
# scripts, and a source tree with scripts for configure and make. Nothing is installed and nothing
# is compiled.
set -u

: "${top_srcdir:?}"
quickstart=$(cd "$top_srcdir" && pwd -P)/quickstart
for folder in /usr/local/sbin /usr/sbin /sbin; do
  # quickstart looks there as well
  if [ -x $folder/gcc ]; then
    echo "skipped: $folder has a compiler"
    exit 77
  fi
done
tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
tmp=$(cd "$tmp" && pwd -P)
export LC_ALL=C
failed=0
fail() {
  echo "FAIL: $what: $*"
  sed 's/^/  | /' "$tmp/out" "$tmp/err"
  failed=1
}

# ---- the machine ----

mkdir "$tmp/tools"
for t in basename bash cat chmod cksum cmp cp cut dirname env find grep head ls ln mkdir mktemp mv readlink rm sed sh \
  sleep sort stat tail touch tr true uniq wc; do
  ln -s "$(command -v $t)" "$tmp/tools/$t"
done

# program FILE: from standard input
program() {
  cat >"$1"
  chmod +x "$1"
}

# The packages' files; apt-get copies them.
mkdir "$tmp/store"
for t in g++ autoconf automake libtoolize; do echo '#!/bin/sh' | program "$tmp/store/$t"; done
program "$tmp/store/gcc" <<'END'
#!/bin/sh
case $* in
*-dumpfullversion*) echo 12.2.0 ;;
*-E*) read -r _ header && [ -e "$WORLD/headers/$(echo "$header" | tr -d '<>/')" ] ;;
esac
END
program "$tmp/store/pkg-config" <<'END'
#!/bin/sh
[ -e "$WORLD/headers/check.h" ] && echo 0.15.2
END
program "$tmp/store/make" <<'END'
#!/bin/sh
echo "make $*" "FULL=${CUA_TEST_FULL-}" >>"$WORLD/log"
case " $* " in
*' list-tests '*) echo one two three ;;
*' list-deep '*) echo four ;;
*' TESTS= '*) ;;
*' check-deep '*) echo 'PASS: four' ;;
*' check '*)
  echo 'PASS: one'
  echo 'SKIP: two'
  if [ -e "$WORLD/wrong" ]; then
    echo 'FAIL: three'
    exit 2
  fi
  echo 'PASS: three'
  ;;
*)
  mkdir -p tools
  printf '#!/bin/sh\necho "cuatomic $* in $PWD"\n' >tools/cuatomic
  chmod +x tools/cuatomic
  ;;
esac
END
program "$tmp/store/apt-get" <<'END'
#!/bin/sh
echo "apt-get $* umask $(umask)" >>"$WORLD/log"
[ ! -e "$WORLD/offline" ] || exit 100
case " $* " in *' install '*) ;; *) exit 0 ;; esac
while [ "$1" != install ]; do shift; done
shift
for package; do
  case $package in
  gcc | g++ | make | autoconf | automake | pkg-config) cp "$STORE/$package" "$WORLD/bin/" ;;
  libtool) cp "$STORE/libtoolize" "$WORLD/bin/" ;;
  libc6-dev) touch "$WORLD/headers/stdio.h" ;;
  libjansson-dev) touch "$WORLD/headers/jansson.h" ;;
  libmpfr-dev) touch "$WORLD/headers/mpfr.h" ;;
  zlib1g-dev) touch "$WORLD/headers/zlib.h" ;;
  check) touch "$WORLD/headers/check.h" ;;
  -*) ;;
  *) exit 100 ;;
  esac
done
END

# new_world UID PACKAGE...: a machine with these, and a clone in $source
new_world() {
  WORLD=$tmp/world
  STORE=$tmp/store
  export WORLD STORE
  [ ! -e "$WORLD" ] || chmod -R u+w "$WORLD"
  rm -rf "$WORLD"
  mkdir -p "$WORLD/bin" "$WORLD/headers" "$WORLD/home"
  printf '#!/bin/sh\necho %s\n' "$1" | program "$WORLD/bin/id"
  printf '#!/bin/sh\necho 2\n' | program "$WORLD/bin/nproc"
  printf '#!/bin/sh\nexit 1\n' | program "$WORLD/bin/sudo"
  cp "$tmp/store/apt-get" "$WORLD/bin/"
  shift
  [ $# = 0 ] || "$WORLD/bin/apt-get" install "$@"
  : >"$WORLD/log"
  make_clone "$WORLD/clone"
}
make_clone() {
  source=$1
  mkdir -p "$source/.git" "$source/doc"
  cp "$quickstart" "$source/quickstart"
  echo text >"$source/doc/text"
  program "$source/autogen.sh" <<'END'
#!/bin/sh
set -e
cd "$(dirname "$0")"
cat >configure <<'CONFIGURE'
#!/bin/sh
echo "configure $*" >>"$WORLD/log"
touch config.status
echo '#define CUA_HAVE_CUDA 1' >config.h
echo 'cuatomic 0.1.0'
CONFIGURE
chmod +x configure
END
}
# run NAME ARGUMENT...: runs quickstart of the clone on the simulated machine alone; the status is
# in $rc
run() {
  what=$1
  shift
  : >"$WORLD/log"
  rc=0
  (
    cd "${run_in:-$WORLD/home}" && exec env -i PATH="$WORLD/bin:$tmp/tools" WORLD="$WORLD" STORE="$STORE" LC_ALL=C \
      CUATOMIC_CONFIGURE=--without-cuda ${home+HOME="$home"} ${settings[@]+"${settings[@]}"} \
      "$source/quickstart" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
  ) || rc=$?
  # no end without a word
  [ $rc = 0 ] || [ -s "$tmp/err" ] || fail "status $rc and no message"
}
settings=()
run_in=
home=$tmp/world/home
works() { [ $rc = 0 ] || fail "status $rc"; }
refuses() { [ $rc != 0 ] || fail "status 0"; }
says() { cat "$tmp/out" "$tmp/err" | grep -q -e "$1" || fail "does not say: $1"; }
installs() { # installs PACKAGE...: these and no others, in one go
  local expected got
  expected=$(printf '%s\n' "$@" | sort)
  got=$(sed -n 's/^apt-get .* install \(.*\) umask .*/\1/p' "$WORLD/log")
  [ "$(printf '%s\n' "$got" | wc -l)" = 1 ] || fail "apt-get install ran more than once"
  got=$(printf '%s\n' "$got" | tr ' ' '\n' | sort)
  [ "$got" = "$expected" ] || fail "installs ${got//$'\n'/ }, and not ${expected//$'\n'/ }"
}
installs_nothing() { ! grep -q apt-get "$WORLD/log" || fail "calls apt-get"; }
builds() { grep -q "$1" "$WORLD/log" || fail "does not run: $1; but $(cat "$WORLD/log")"; }
for_demo=(gcc libc6-dev make autoconf automake libtool pkg-config)

# ---- a bare machine ----

new_world 0
run "demo on a bare machine" demo one 'two three'
works
installs "${for_demo[@]}"
says "^cuatomic demo one two three in $WORLD/home$"
builds '^configure --disable-static --without-cuda$'
builds '^make .*SUBDIRS=include cuda lib tools'
run "demo again" demo
works
installs_nothing
! grep -q '^configure' "$WORLD/log" || fail "configures again"
run "check after demo" check
works
installs check g++ libjansson-dev libmpfr-dev zlib1g-dev
builds '^configure'
says '^\[ *1 of 3, .* PASS: one$'
says '^\[ *3 of 3, .* PASS: three$'
run "demo after check" demo
works
! grep -q '^configure' "$WORLD/log" || fail "configures again"

new_world 0
run "check on a bare machine" check
works
installs "${for_demo[@]}" check g++ libjansson-dev libmpfr-dev zlib1g-dev
! grep -q '^make .* check-deep ' "$WORLD/log" || fail "runs check-deep"
run "check --all" check --all
works
builds '^make .* check FULL=1$'
builds '^make .* check-deep FULL=1$'
says '^\[ *1 of 1, .* PASS: four$'
touch "$WORLD/wrong"
run "check with a failure" check
refuses
says 'FAIL: three'
says 'tests failed'
run "an argument of check" check --some
refuses

new_world 0 "${for_demo[@]}" check
touch "$WORLD/offline"
run "optional packages that cannot be installed" check
works
says 'left out.*libmpfr-dev'
new_world 0 "${for_demo[@]}"
touch "$WORLD/offline"
run "a needed package that cannot be installed" check
refuses
says 'installing check failed'

# ---- nobody's machine ----

new_world 4294967 "${for_demo[@]}"
run "demo without root" demo
works
installs_nothing
run "check without root and without the check library" check
refuses
says 'install these first.*: check$'
new_world 4294967 "${for_demo[@]}" check
run "check without root and without optional packages" check
works
installs_nothing
says 'left out.*libmpfr-dev'
says 'left out.*libjansson-dev'
says 'left out.*zlib1g-dev'
says 'left out.*g++'
new_world 4294967
run "demo without root on a bare machine" demo
refuses
says 'install these first.*gcc'

# ---- no silent end ----

new_world 4294967 "${for_demo[@]}"
printf '#!/bin/sh\nexit 3\n' | program "$WORLD/bin/sed"
run "a command that fails without a word" demo
refuses
says 'line [0-9]* failed with status 3'

# ---- folders ----

new_world 0
umask 077
run "umask 077" demo
umask 022
works
! grep 'apt-get' "$WORLD/log" | grep -qv 'umask 0022' || fail "installs with umask 077"

for kind in empty unset file; do
  new_world 4294967 "${for_demo[@]}"
  make_clone "$WORLD/a clone with spaces"
  touch "$WORLD/a file"
  case $kind in
  empty) home= ;;
  unset) unset home ;;
  file) home="$WORLD/a file" ;;
  esac
  run_in="$WORLD/a clone with spaces/doc"
  run "HOME: $kind, a path with spaces" demo a
  works
  says "^cuatomic demo a in $run_in$"
  link=$(readlink "$source/build") || fail "build is no link to a folder without spaces"
  case $link in
  /var/tmp/cuatomic-4294967/* | /tmp/cuatomic-4294967/*)
    rm -rf "${link%/build}"
    rmdir "$(dirname "${link%/build}")" 2>/dev/null
    ;;
  *) fail "builds in $link" ;;
  esac
  run_in=
  home=$tmp/world/home
done

new_world 4294967 "${for_demo[@]}"
make_clone "$WORLD/a clone with spaces"
run "a path with spaces" demo
works
[ -d "$WORLD/home/.cache/cuatomic" ] || fail "no link in the cache of the user"

new_world 4294967 "${for_demo[@]}"
chmod -R a-w "$source"
before=$(find "$source" | sort)
settings=(CUATOMIC_BUILD_DIR="$WORLD/build")
run "a clone that is read-only" demo
works
says '^cuatomic demo'
[ "$(find "$source" | sort)" = "$before" ] || fail "the clone has changed"
run "a clone that is read-only, again" demo
works
! grep -q '^configure' "$WORLD/log" || fail "configures again"
chmod -R u+w "$source"
echo other >"$source/doc/text"
chmod -R a-w "$source"
run "a clone that is read-only, and has changed" demo
works
cmp -s "$source/doc/text" "$WORLD/build/source/doc/text" || fail "the copy is the former one"
settings=()
run "a clone that is read-only, and no other folder" demo
refuses
says 'CUATOMIC_BUILD_DIR'

new_world 4294967 "${for_demo[@]}"
make_clone "$WORLD/a clone with spaces"
chmod -R a-w "$source"
settings=(CUATOMIC_BUILD_DIR="$WORLD/a build")
run "a clone that is read-only, and spaces in both paths" demo
works
says '^cuatomic demo'
[ -x "$WORLD/a build/tools/cuatomic" ] || fail "nothing in the folder that was named"

[ $failed = 0 ] && echo "quickstart: all as it should be"
exit $failed
