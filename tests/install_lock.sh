# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Sourced by the tests that run `make install`. libtool links again in the build folder, so installations take turns.
: "${top_builddir:?}"
install_lock=$(cd "$top_builddir/tests" && pwd)/install.lock

# locked COMMAND...: runs the command while no other test installs.
locked() {
  (
    ! command -v flock >/dev/null || flock 9
    "$@" 9>&-
  ) 9>"$install_lock"
}
