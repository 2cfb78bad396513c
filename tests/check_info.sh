#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# cuatomic info: the text and the JSON of the real machine, and of fake devices with a double of NVML. Needs no GPU.
set -uo pipefail

# shellcheck source=tests/cli_runs.sh
. "${top_srcdir:?}/tests/cli_runs.sh"
unset CUATOMIC_NVML FAKE_NVML_INIT FAKE_DEVICES
fake=$top_builddir/tests/info_fake
nvml=$tmp/nvml.so

# the compiler may hold options
# shellcheck disable=SC2086
if ! ${CC:?} -std=gnu11 -shared -fPIC "$top_srcdir/tests/fake_nvml.c" -o "$nvml"; then
  echo "FAILED: the double of NVML does not compile"
  exit 1
fi

# schema NAME COMMAND...: the output is JSON with the members of the schema; it is kept in $tmp/info.json.
schema() {
  local what=$1
  shift
  runs 0 "$what" "$@" --json || return
  [ ! -s "$tmp/err" ] || fail "$what: something on stderr"
  cp "$tmp/out" "$tmp/info.json"
  python_says "schema of $what" "$top_srcdir/doc/info-schema.json" "$tmp/info.json" <"$top_srcdir/tests/json_schema.py"
}

# ---- this machine ----

runs 0 "info" "$cuatomic" info
says out info '^Build$'
says out info '^  architectures built: +(none|[0-9].*)$'
says out info '^  features: +[A-Za-z]'
says out info '^  NCCL: +(usable|.*libnccl.*)$'
says out info '^    last cache: +(unknown|[0-9.]+ [KMG]iB)$'
silent out info '^    atomics:'
runs 0 "atomics" "$cuatomic" info --atomics
says out "atomics" '^    u32 +(N +){6}'
schema "this machine" "$cuatomic" info
# either order of the options
schema "this machine, atomics" "$cuatomic" info --atomics
python_says "JSON of this machine" "$tmp/info.json" <<'END'
import json, sys
data = json.load(open(sys.argv[1]))
assert data["schema"] == 1 and data["cpu"]["threads"] >= 1 and data["cpu"]["memory_bytes"] > 2 ** 24
paths = {(a["type"], a["operation"]): a["path"] for a in data["cpu"]["atomics"]}
assert paths["u32", "load"] == "native" and paths["f32", "add"] == "cas_32" and ("f32", "and") not in paths
assert len(paths) == len(data["cpu"]["atomics"]) > 150
END
for option in --jsn --json=x -j --atomics=1 --backend=cpu -q; do
  runs 2 "option $option" "$cuatomic" info "$option" && one_line "option $option"
done
runs 2 "argument" "$cuatomic" info --json x && one_line "argument"
if [ -w /dev/full ]; then
  rc=0
  "$cuatomic" info --json >/dev/full 2>"$tmp/err" || rc=$?
  [ $rc = 1 ] || fail "a full disk: exit status $rc, not 1"
fi

# ---- fake devices ----

with_nvml() { # with_nvml DEVICES COMMAND...
  local devices=$1
  shift
  env FAKE_DEVICES="$devices" CUATOMIC_NVML="$nvml" "$@"
}

runs 0 "no device" "$fake" info
says out "no device" '^  no device: no fake device$'
says out "no device" '^  architectures built:  90 \+PTX90$'
says out "no device" '^  NCCL:                 no fake NCCL$'
schema "no device" "$fake" info
runs 0 "one device" with_nvml 1 "$fake" info
sed -n '/^  device 0: Fake/,$p' "$tmp/out" | sed -E '/^    driver:/s/580.65.06|unknown/DRIVER/' >"$tmp/shown"
cat >"$tmp/expected" <<'END'
  device 0: Fake GPU
    compute capability: 9.0
    multiprocessors:    132
    maximum clocks:     SM 1980 MHz, memory 3201 MHz
    memory:             141.0 GiB
    memory bus:         6144 bits, bandwidth 4916 GB/s
    L2 cache:           60.0 MiB
    shared memory:      227.0 KiB a block, 228.0 KiB a multiprocessor
    ECC:                on
    PCI id:             0000:1b:00.0
    UUID:               00112233-4455-6677-8899-aabbccddeeff
    driver:             DRIVER, for CUDA up to 13.0
    CUDA runtime:       12.4
    PCIe:               generation 4 of 5, 8 of 16 lanes
    NVLink:             18 links of version 4.0
    managed memory:     yes, concurrent access: yes
    host atomics:       not native
    cooperative launch: yes
    memory pools:       yes
    state:              ready
END
if diff "$tmp/expected" "$tmp/shown" >"$tmp/diff"; then
  passed=$((passed + 1))
else
  fail "one device: $(cat "$tmp/diff")"
fi
says out "one device" '^  CUDA runtime:         12.4$'
says out "one device" '^    driver: +580.65.06, '

runs 0 "many devices" with_nvml 7 "$fake" info --atomics
sed -n '/^  access of a device/,$p' "$tmp/out" | sed -E 's/ +/ /g' >"$tmp/shown"
cat >"$tmp/expected" <<'END'
 access of a device (row) to the memory of another (column)
 0 1 2 3 4 5 6
 0 - NV16+A none none none none ?
 1 NV16+A - none none none none ?
 2 PCIe none - none none none ?
 3 none none none - NV4+A none ?
 4 none none none NV4+A - none ?
 5 rank5 rank5 rank5 rank5 rank5 - ?
 6 ? ? ? ? ? ? -
END
if diff "$tmp/expected" <(sed '/^ NVn:/,$d' "$tmp/shown") >"$tmp/diff"; then
  passed=$((passed + 1))
else
  fail "peers: $(cat "$tmp/diff")"
fi
says out "many devices" '^    NVLink:             none$'
says out "many devices" '^    NVLink:             4 links of version 3.1$'
says out "many devices" '^    NVLink:             unknown$'
says out "many devices" '^    ECC:                off$'
says out "many devices" '^    PCIe:               unknown$'
says out "many devices" '^    maximum clocks:     SM unknown, memory unknown$'
says out "many devices" '^    memory bus:         unknown, bandwidth unknown$'
says out "many devices" '^    UUID:               unknown$'
says out "many devices" '^    host atomics:       native$'
says out "many devices" '^    managed memory:     yes, concurrent access: no$'
says out "many devices" '^    state:              out of memory$'
says out "many devices" '^  device 6: .*CUDA'
[ "$(grep -c '^    atomics:' "$tmp/out")" = 6 ] || fail "many devices: not 6 tables of atomics"

schema "many devices" with_nvml 7 "$fake" info
python_says "JSON of many devices" "$tmp/info.json" <<'END'
import json, sys
data = json.load(open(sys.argv[1]))
gpus = data["cuda"]["devices"]
assert data["cuda"]["problem"] is None and [g["device"] for g in gpus] == list(range(7))
assert data["build"]["cuda_runtime"] == "12.4" and data["build"]["cuda_architectures"] == "90 +PTX90"
assert data["nccl"] == {"usable": False, "problem": "no fake NCCL"}
first = {n: v for n, v in gpus[0].items() if n not in ("atomics", "driver")}
assert first == {
    "device": 0, "name": "Fake GPU", "problem": None, "pci_id": "0000:1b:00.0",
    "uuid": "00112233-4455-6677-8899-aabbccddeeff", "driver_cuda": "13.0", "compute_capability": "9.0",
    "multiprocessors": 132, "sm_clock_mhz": 1980, "memory_clock_mhz": 3201, "memory_bytes": 141 << 30,
    "memory_bus_bits": 6144, "memory_bytes_per_second": 2 * 3201 * 10 ** 6 * 768, "l2_bytes": 60 << 20,
    "shared_block_bytes": 227 << 10, "shared_multiprocessor_bytes": 228 << 10, "ecc": True, "managed_memory": True,
    "concurrent_managed_access": True, "host_native_atomics": False, "cooperative_launch": True,
    "memory_pools": True, "pcie_generation": 4, "pcie_generation_max": 5, "pcie_lanes": 8, "pcie_lanes_max": 16,
    "nvlinks": 18, "nvlink_version": "4.0"}, first
assert gpus[2]["name"] == 'Fake "GPU"' and gpus[2]["nvlinks"] == 0 and gpus[2]["nvlink_version"] is None
assert gpus[2]["ecc"] is False and len(gpus[0]["atomics"]) > 150
assert gpus[4]["problem"] and gpus[4]["atomics"] == []
little = gpus[5]
for name in ("pci_id", "uuid", "driver_cuda", "sm_clock_mhz", "memory_bytes", "l2_bytes", "nvlinks", "pcie_lanes",
             "memory_bytes_per_second"):
    assert little[name] is None, name
# of a device that cannot be described, nothing but the reason is known
assert [n for n, v in gpus[6].items() if v is not None] == ["device", "problem", "atomics"], gpus[6]
peers = {(p["device"], p["peer"]): p for p in data["cuda"]["peers"]}
assert len(peers) == len(data["cuda"]["peers"]) == 30
assert peers[1, 0] == {"device": 1, "peer": 0, "access": True, "native_atomics": True, "array_access": True,
                       "performance_rank": 0, "nvlinks": 16}, peers[1, 0]
assert peers[4, 3]["nvlinks"] == 4 and peers[2, 0]["nvlinks"] == 0 and not peers[2, 0]["native_atomics"]
assert peers[5, 0]["nvlinks"] is None and peers[5, 0]["performance_rank"] == 5
END

# ---- no NVML ----

runs 0 "no NVML" env FAKE_DEVICES=2 CUATOMIC_NVML="$tmp/absent.so" "$fake" info
says out "no NVML" '^    PCIe:               unknown$'
says out "no NVML" '^    NVLink:             unknown$'
says out "no NVML" '^ +0 +- +rank0\+A$'
schema "no NVML" env FAKE_DEVICES=2 CUATOMIC_NVML="$tmp/absent.so" "$fake" info

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
