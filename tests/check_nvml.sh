#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bench/bench_nvml.h against a double of NVML: values, texts, missing functions, no library. Needs no GPU.
set -uo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${CC:?}" "${CXX?}" "${SANITIZER_FLAGS?}"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
passed=0

# double NAME FLAG...: a libnvidia-ml.so.1 without NVML
double() {
  local name=$1
  shift
  # the compiler may hold options
  # shellcheck disable=SC2086
  $CC -std=gnu11 -shared -fPIC "$@" "$top_srcdir/tests/fake_nvml.c" -o "$tmp/$name.so"
}

# program NAME LANGUAGE COMPILER FLAG...
program() {
  local name=$1 language=$2
  shift 2
  # shellcheck disable=SC2068,SC2086
  $@ -Wall -Wextra -Wpedantic -Werror $SANITIZER_FLAGS -I"$top_srcdir/bench" -o "$tmp/$name" -x "$language" \
    "$top_srcdir/tests/nvml_values.c" -ldl
}

if ! { double good && double events -DnvmlDeviceGetCurrentClocksThrottleReasons=nvmlOther &&
  double no_reasons -DnvmlDeviceGetCurrentClocksThrottleReasons=nvmlOther \
    -DnvmlDeviceGetCurrentClocksEventReasons=nvmlOther2 &&
  double no_links -DnvmlDeviceGetNvLinkState=nvmlOther && double no_init -DnvmlInit_v2=nvmlOther &&
  double no_types -DnvmlDeviceGetNvLinkRemoteDeviceType=nvmlOther &&
  double no_remote -DnvmlDeviceGetNvLinkRemotePciInfo_v2=nvmlOther -DnvmlDeviceGetNvLinkVersion=nvmlOther2 &&
  double no_handle -DnvmlDeviceGetHandleByPciBusId_v2=nvmlOther &&
  double no_clocks -DnvmlDeviceGetClockInfo=nvmlOther -DnvmlDeviceGetMaxClockInfo=nvmlOther2 \
    -DnvmlDeviceGetEccMode=nvmlOther3 -DnvmlDeviceGetTemperature=nvmlOther4 -DnvmlDeviceGetPowerUsage=nvmlOther5 &&
  program values c "$CC" -std=c11 -D_GNU_SOURCE; }; then
  echo "FAILED: the programs do not compile"
  exit 1
fi
if [ -n "$CXX" ]; then
  if program values_cxx c++ "$CXX" -std=c++17; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: bench_nvml.h does not compile as C++"
  fi
fi

# values LIBRARY DEVICE...
values() {
  local library=$1
  shift
  CUATOMIC_NVML=$tmp/$library.so "$tmp/values" "$@"
}
# expect NAME EXPECTED COMMAND...: the output has this text
expect() {
  local name=$1 expected=$2 got
  shift 2
  got=$("$@" 2>&1)
  case $got in
  *"$expected"*) passed=$((passed + 1)) ;;
  *)
    failed=$((failed + 1))
    echo "FAILED: $name: expected \"$expected\" in"
    printf '%s\n' "$got"
    ;;
  esac
}

first=0000:1b:00.0 second=0000:1c:00.0 plain=0000:3d:00.0 left=0000:4a:00.0 right=0000:4b:00.0
expect driver "driver 580.65.06" values good
expect "all values" "$first: sm_clock 1027 memory_clock 2619 sm_clock_max 1980 temperature 41 power 123456 \
pcie_generation 4 pcie_generation_max 5 pcie_width 8 pcie_width_max 16 ecc 1 [] \
links 18 (17: 40, 0000:05:00.0 switch)" values good "$first"
expect "inactive links" "links 16 (15: 40, 0000:05:00.0 switch)" values good "$second"
expect "no NVLink" "ecc - [] links 0" values good "$plain"
expect "no sensors" "temperature - power - pcie" values good "$right"
expect "direct links" "links 4 (3: 31, 0000:4b:00.0)" values good "$left"
expect "a wrong device" "0000:77:00.0 unknown: sm_clock - memory_clock - sm_clock_max - temperature - power - \
pcie_generation - pcie_generation_max - pcie_width - pcie_width_max - ecc - [-] links -" values good 0000:77:00.0
expect "links through a switch" "between 16" values good "$first" "$second"
expect "direct links of a pair" "between 4" values good "$left" "$right"
expect "a PCI bus id in upper case" "between 4" values good "$left" "${right^^}"
expect "no links of a pair" "between 0" values good "$first" "$left"
expect "no links of a device" "between 0" values good "$first" "$plain"

# reasons BITS TEXT
reasons() {
  FAKE_NVML_REASONS=$1 expect "reasons $1" " [$2] " values good "$first"
  FAKE_NVML_REASONS=$1 expect "event reasons $1" " [$2] " values events "$first"
}
reasons 0x0 ""
reasons 0x103 ""
reasons 0x4 "power cap"
reasons 0x8 "hardware slowdown"
reasons 0x10 "sync boost"
reasons 0x20 "thermal"
reasons 0x40 "thermal"
reasons 0x60 "thermal"
reasons 0x80 "power brake"
reasons 0x400 "other"
reasons 0x8000000000000001 "other"
reasons 0x25 "power cap + thermal"
reasons 0xffffffffffffffff "power cap + thermal + power brake + hardware slowdown + sync boost + other"

expect "no reasons" "ecc 1 [-] links 18" values no_reasons "$first"
expect "no state of links" "[] links -" values no_links "$first"
expect "no type of links" "links 18 (17: 40, 0000:05:00.0)" values no_types "$first"
expect "no remote device" "links 18 (17: 0, - switch)" values no_remote "$first"
expect "no clocks" "$first: sm_clock - memory_clock - sm_clock_max - temperature - power - pcie_generation 4 \
pcie_generation_max 5 pcie_width 8 pcie_width_max 16 ecc - [] links 18" values no_clocks "$first"
for library in no_init no_handle absent; do
  expect "$library" "$first unknown: sm_clock - " values "$library" "$first"
done
expect "no library" "driver -" values absent
FAKE_NVML_INIT=9 expect "no driver" "driver -" values good
expect "no driver, no device" "unknown: sm_clock - " env FAKE_NVML_INIT=9 CUATOMIC_NVML="$tmp/good.so" "$tmp/values" "$first"
expect "no variable" "driver " env -u CUATOMIC_NVML "$tmp/values"
expect "an empty variable" "driver " env CUATOMIC_NVML= "$tmp/values"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
