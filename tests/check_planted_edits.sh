#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Whether each error of check_simt_planted.sh still edits code, in seconds: a header that has changed may have left
# an edit with nothing to edit.
set -uo pipefail
CUA_TEST_PLANTED=edits exec "$BASH" "${top_srcdir:?}/tests/check_simt_planted.sh"
