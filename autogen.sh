#!/bin/sh
# SPDX-License-Identifier: MIT
# Make ./configure from configure.ac.
set -eu
cd "$(dirname "$0")"
exec autoreconf -fi
