#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The compiled device code. Each primitive of the port layer must be its PTX instruction in every
# order, scope and state space. The atomics and the locks must consist of the expected instructions.
# Needs nvcc, no GPU.
set -uo pipefail

# Set by `make check`.
: "${top_srcdir:?}" "${top_builddir:?}" "${NVCC?}"

if [ -z "$NVCC" ]; then
  echo "skipped: no nvcc in this build"
  exit 77
fi
export LC_ALL=C
read -ra nvcc <<<"$NVCC"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# ---- the kernels, and their expected instructions ----

# kernel NAME EXPECTED BODY: the body sees p (an address), v and w (operands) and out (for results).
# EXPECTED lists, in order, every instruction that is atomic, ordered, a fence, a wait, between
# lanes, or arithmetic of floats; "loop" is a branch back.
# - patient_*: the compiler lays out these loops in several orders, so their instructions are listed
#   sorted.
# - leader_*: the compiler may also rotate the loop. Each instruction is listed once. "again" is a
#   swap whose operand comes from an earlier swap; "test" is a branch between a read and its swap.
# - plain_*: plain loads and stores are listed too.
# With limit=LOW-HIGH the kernel is compiled and checked on these architectures only.
limit=
kernel() {
  if [ -n "$limit" ]; then
    printf '@%s ' "$limit" >&3
    printf '#if __CUDA_ARCH__ >= %s0 && __CUDA_ARCH__ <= %s9\n' "${limit%-*}" "${limit#*-}" >&4
  fi
  printf '%s %s\n' "$1" "$2" >&3
  printf 'KERNEL(%s) { %s }\n' "$1" "$3" >&4
  [ -z "$limit" ] || printf '#endif\n' >&4
}

# Some instructions need a compiler version besides an architecture: nvcc's version determines the
# PTX version.
nvcc_version=$("${nvcc[@]}" --version | sed -n 's/.*release \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
if [ -z "$nvcc_version" ]; then
  echo "nvcc does not print its version"
  exit 1
fi
# since ARCH MAJOR MINOR: the first architecture on which this nvcc has a feature that needs both;
# 999 if nvcc is older.
since() {
  local major=${nvcc_version% *} minor=${nvcc_version#* }
  if [ "$major" -gt "$2" ] || { [ "$major" -eq "$2" ] && [ "$minor" -ge "$3" ]; }; then
    echo "$1"
  else
    echo 999
  fi
}
b128_from=$(since 90 12 4)
add_v2_from=$(since 90 12 1)
acquire_fence_from=$(since 90 12 8)
[ "$b128_from" != 999 ] || echo "skipped: this nvcc has no atomics of 128 bits"
[ "$add_v2_from" != 999 ] || echo "skipped: this nvcc has no add of two neighbours"
[ "$acquire_fence_from" != 999 ] || echo "skipped: this nvcc has no fence of acquire"

orders='RELAXED ACQUIRE RELEASE ACQ_REL SEQ_CST'
declare -A scope_ptx=([BLOCK]=cta [DEVICE]=gpu [SYSTEM]=sys)
declare -A space_ptx=([GENERIC]='' [GLOBAL]=.global [SHARED]=.shared)

# everywhere CALL ORDER QUALIFIER NAME BEFORE AFTER BODY: a primitive in every scope and space. The
# instruction is BEFORE, .order.scope.space, AFTER; AT in the body stands for order, scope and
# space.
everywhere() {
  local order=$1 qualifier=$2 name=$3 before=$4 after=$5 body=$6 scope space fence
  for scope in BLOCK DEVICE SYSTEM; do
    fence=
    [ "$order" != SEQ_CST ] || fence="fence.sc.${scope_ptx[$scope]} "
    for space in GENERIC GLOBAL SHARED; do
      kernel "port_${name}_${order}_${scope}_${space}" \
        "$fence$before.$qualifier.${scope_ptx[$scope]}${space_ptx[$space]}$after" \
        "${body/AT/CUA_$order, CUA_SCOPE_$scope, CUA_SPACE_$space}"
    done
  done
}

# With a result: any order.
atom() {
  local order qualifier
  for order in $orders; do
    case $order in
    RELAXED) qualifier=relaxed ;;
    ACQUIRE) qualifier=acquire ;;
    RELEASE) qualifier=release ;;
    *) qualifier=acq_rel ;;
    esac
    everywhere "$order" "$qualifier" "$1" atom "$2" "$3"
  done
}

# A load: relaxed or acquire. A store or a RED: relaxed or release.
load() {
  everywhere RELAXED relaxed "$1" ld "$2" "$3"
  everywhere ACQUIRE acquire "$1" ld "$2" "$3"
  everywhere SEQ_CST acquire "$1" ld "$2" "$3"
}

quiet() {
  everywhere RELAXED relaxed "$1" "$4" "$2" "$3"
  everywhere RELEASE release "$1" "$4" "$2" "$3"
  everywhere SEQ_CST release "$1" "$4" "$2" "$3"
}

port_kernels() {
  local bits op type c
  load load_b16 .b16 "*out = cua_port_load_b16(p, AT);"
  quiet store_b16 .b16 "cua_port_store_b16(p, (uint16_t)v, AT);" st
  atom cas_b16 .cas.b16 "*out = cua_port_cas_b16(p, (uint16_t)v, (uint16_t)w, AT);"
  for bits in 32 64; do
    load "load_b$bits" ".b$bits" "*out = cua_port_load_b$bits(p, AT);"
    quiet "store_b$bits" ".b$bits" "cua_port_store_b$bits(p, (uint${bits}_t)v, AT);" st
    atom "exchange_b$bits" ".exch.b$bits" \
      "*out = cua_port_exchange_b$bits(p, (uint${bits}_t)v, AT);"
    atom "cas_b$bits" ".cas.b$bits" \
      "*out = cua_port_cas_b$bits(p, (uint${bits}_t)v, (uint${bits}_t)w, AT);"
    for op in and or xor; do
      atom "fetch_${op}_b$bits" ".$op.b$bits" \
        "*out = cua_port_fetch_${op}_b$bits(p, (uint${bits}_t)v, AT);"
      quiet "${op}_b$bits" ".$op.b$bits" "cua_port_${op}_b$bits(p, (uint${bits}_t)v, AT);" red
    done
  done
  for op in add_u32 add_u64 add_f32 add_f64 inc_u32 dec_u32 min_u32 min_i32 min_u64 min_i64 \
    max_u32 max_i32 max_u64 max_i64; do
    type=${op#*_}
    c=CUA__TYPE_$type
    atom "fetch_$op" ".${op%_*}.${type/i/s}" \
      "*($c *)out = cua_port_fetch_$op(($c *)p, ($c)v, AT);"
    quiet "$op" ".${op%_*}.${type/i/s}" "cua_port_$op(($c *)p, ($c)v, AT);" red
  done

  local scope order name
  for scope in BLOCK DEVICE SYSTEM; do
    for order in $orders; do
      case $order in
      RELAXED) name= ;;
      SEQ_CST) name=fence.sc.${scope_ptx[$scope]} ;;
      *) name=fence.acq_rel.${scope_ptx[$scope]} ;;
      esac
      kernel "port_fence_${order}_$scope" "$name" "cua_port_fence(CUA_$order, CUA_SCOPE_$scope);"
    done
  done

  kernel port_pause nanosleep.u32 'cua_port_pause((uint32_t)v);'
  kernel port_clock_ns %globaltimer '*out = cua_port_clock_ns();'
  kernel port_lane %laneid '*out = cua_port_lane();'
  kernel port_grid_id %gridid '*out = cua_port_grid_id();'
  kernel port_active_mask activemask.b32 '*out = cua_port_active_mask();'
  kernel port_ballot vote.sync.ballot.b32 '*out = cua_port_ballot((uint32_t)w, v == 5);'
  kernel port_match_any_u32 match.any.sync.b32 \
    '*out = cua_port_match_any_u32((uint32_t)w, (uint32_t)v);'
  kernel port_match_any_u64 match.any.sync.b64 '*out = cua_port_match_any_u64((uint32_t)w, v);'
  kernel port_shuffle_u32 shfl.sync.idx.b32 \
    '*out = cua_port_shuffle_u32((uint32_t)w, (uint32_t)v, 3);'
  kernel port_shuffle_u64 'shfl.sync.idx.b32 shfl.sync.idx.b32' \
    '*out = cua_port_shuffle_u64((uint32_t)w, v, 3);'
  kernel port_sync_warp bar.warp.sync 'cua_port_sync_warp((uint32_t)w);'
  kernel port_sync_block bar.sync 'cua_port_sync_block();'
  kernel port_sync_block_or bar.red.or.pred '*out = cua_port_sync_block_or(v == 5);'

  # A product and a sum stay two roundings, and flush nothing, in fast math too.
  for bits in 32 64; do
    c=CUA__TYPE_f$bits
    kernel "port_mul_add_rn_f$bits" "mul.rn.f$bits add.rn.f$bits" "$c *x = ($c *)out;
      *x = cua_port_add_rn_f$bits(cua_port_mul_rn_f$bits(x[1], x[2]), x[3]);"
    kernel "port_mul_sub_rn_f$bits" "mul.rn.f$bits sub.rn.f$bits" "$c *x = ($c *)out;
      *x = cua_port_sub_rn_f$bits(cua_port_mul_rn_f$bits(x[1], x[2]), x[3]);"
  done

  kernel port_fma_rn_f64 fma.rn.f64 'CUA__TYPE_f64 *x = (CUA__TYPE_f64 *)out;
    *x = cua_port_fma_rn_f64(x[1], x[2], x[3]);'
  kernel port_cvt_f64_f32 cvt.f64.f32 '*(CUA__TYPE_f64 *)out = cua_port_cvt_f64_f32(*(CUA__TYPE_f32 *)p);'

  kernel plain_read_write 'ld.global.u32 st.global.u32' \
    'uint32_t *x = (uint32_t *)p; CUA_WRITE(x[1], CUA_READ(x[0]));'
  kernel plain_read_write_u64 'ld.global.u64 st.global.u64' \
    'uint64_t *x = (uint64_t *)p; CUA_WRITE(x[1], CUA_READ(x[0]));'
  # A plain access stays on its side of a lock.
  kernel plain_under_lock 'atom.acquire.gpu.cas.b32 ld.global.u32 st.global.u32 st.release.gpu.b32' \
    'uint32_t *x = (uint32_t *)out;
     (void)cua_port_cas_b32(p, 0, 1, CUA_ACQUIRE, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
     CUA_WRITE(*x, CUA_READ(*x) + 1);
     cua_port_store_b32(p, 0, CUA_RELEASE, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);'
}

atomic_kernels() {
  local t bits c op name ptx mul
  for t in u32 i32 u64 i64 f32 f64; do
    bits=${t#?}
    c=CUA__TYPE_$t
    kernel "atomic_load_$t" "ld.relaxed.gpu.b$bits" "*($c *)out = cua_atomic_load_$t(($c *)p);"
    kernel "atomic_store_$t" "st.relaxed.gpu.b$bits" "cua_atomic_store_$t(($c *)p, ($c)v);"
    kernel "atomic_exchange_$t" "atom.relaxed.gpu.exch.b$bits" \
      "*($c *)out = cua_atomic_exchange_$t(($c *)p, ($c)v);"
    kernel "atomic_compare_exchange_$t" "atom.relaxed.gpu.cas.b$bits" \
      "*($c *)out = cua_atomic_compare_exchange_$t(($c *)p, ($c)v, ($c)w);"
    kernel "atomic_load_explicit_$t" "ld.acquire.sys.b$bits" \
      "*($c *)out = cua_atomic_load_explicit_$t(($c *)p, CUA_ACQUIRE, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);"
    kernel "atomic_store_explicit_$t" "st.release.cta.b$bits" \
      "cua_atomic_store_explicit_$t(($c *)p, ($c)v, CUA_RELEASE, CUA_SCOPE_BLOCK, CUA_SPACE_GENERIC);"
    kernel "atomic_exchange_explicit_$t" "atom.acq_rel.cta.exch.b$bits" \
      "*($c *)out = cua_atomic_exchange_explicit_$t(($c *)p, ($c)v, CUA_ACQ_REL, CUA_SCOPE_BLOCK, CUA_SPACE_GENERIC);"
    kernel "atomic_compare_exchange_explicit_$t" "fence.sc.sys atom.acq_rel.sys.cas.b$bits" \
      "*($c *)out = cua_atomic_compare_exchange_explicit_$t(($c *)p, ($c)v, ($c)w, CUA_SEQ_CST,
        CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);"

    for op in add sub min max and or xor inc dec; do
      case $t$op in
      i??inc | i??dec | u64inc | u64dec | f??inc | f??dec) continue ;;
      fand | for | fxor | f??min | f??max | f??and | f??or | f??xor) continue ;;
      f*) ptx=add.$t ;;
      *inc | *dec) ptx=$op.u32 ;;
      *add | *sub) ptx=add.u$bits ;;
      *min | *max) ptx=$op.${t/i/s} ;;
      *) ptx=$op.b$bits ;;
      esac
      name=${op}_$t
      kernel "atomic_fetch_$name" "atom.relaxed.gpu.$ptx" \
        "*($c *)out = cua_atomic_fetch_$name(($c *)p, ($c)v);"
      kernel "atomic_fetch_${op}_explicit_$t" "atom.release.sys.$ptx" \
        "*($c *)out = cua_atomic_fetch_${op}_explicit_$t(($c *)p, ($c)v, CUA_RELEASE, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);"
      kernel "atomic_$name" "red.relaxed.gpu.$ptx" "cua_atomic_$name(($c *)p, ($c)v);"
      kernel "atomic_${op}_explicit_release_$t" "red.release.cta.$ptx" \
        "cua_atomic_${op}_explicit_$t(($c *)p, ($c)v, CUA_RELEASE, CUA_SCOPE_BLOCK, CUA_SPACE_GENERIC);"
      # RED cannot acquire.
      kernel "atomic_${op}_explicit_acquire_$t" "atom.acquire.gpu.$ptx" \
        "cua_atomic_${op}_explicit_$t(($c *)p, ($c)v, CUA_ACQUIRE, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);"
      kernel "atomic_${op}_explicit_seq_cst_$t" "fence.sc.gpu atom.acq_rel.gpu.$ptx" \
        "cua_atomic_${op}_explicit_$t(($c *)p, ($c)v, CUA_SEQ_CST, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);"
    done

    # Loops: a relaxed load (acquire if nothing else is requested), then compare-and-swap.
    mul=
    [ "${t%??}" != f ] || mul="mul.rn.$t "
    kernel "atomic_fetch_mul_$t" "ld.relaxed.gpu.b$bits ${mul}atom.relaxed.gpu.cas.b$bits loop" \
      "*($c *)out = cua_atomic_fetch_mul_$t(($c *)p, ($c)v);"
    kernel "atomic_fetch_mul_explicit_acquire_$t" \
      "ld.acquire.cta.b$bits ${mul}atom.acquire.cta.cas.b$bits loop" \
      "*($c *)out = cua_atomic_fetch_mul_explicit_$t(($c *)p, ($c)v, CUA_ACQUIRE, CUA_SCOPE_BLOCK, CUA_SPACE_GENERIC);"
    kernel "atomic_fetch_mul_explicit_acq_rel_$t" \
      "ld.relaxed.sys.b$bits ${mul}atom.acq_rel.sys.cas.b$bits loop" \
      "*($c *)out = cua_atomic_fetch_mul_explicit_$t(($c *)p, ($c)v, CUA_ACQ_REL, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);"
    case $t in
    u64)
      for op in inc dec; do
        kernel "atomic_fetch_${op}_$t" "ld.relaxed.gpu.b$bits atom.relaxed.gpu.cas.b$bits loop" \
          "*($c *)out = cua_atomic_fetch_${op}_$t(($c *)p, ($c)v);"
      done
      ;;
    f??)
      kernel "atomic_fetch_div_$t" "ld.relaxed.gpu.b$bits div.rn.$t atom.relaxed.gpu.cas.b$bits loop" \
        "*($c *)out = cua_atomic_fetch_div_$t(($c *)p, ($c)v);"
      ;;
    esac
    [ "${t%??}" = f ] || kernel "atomic_fetch_nand_$t" \
      "ld.relaxed.gpu.b$bits atom.relaxed.gpu.cas.b$bits loop" \
      "*($c *)out = cua_atomic_fetch_nand_$t(($c *)p, ($c)v);"
    [ "${t%??}" = f ] || continue
    kernel "atomic_fetch_add_cas_$t" "ld.relaxed.gpu.b$bits add.rn.$t atom.relaxed.gpu.cas.b$bits loop" \
      "*($c *)out = cua_atomic_fetch_add_cas_$t(($c *)p, ($c)v);"
    for op in min max; do
      kernel "atomic_fetch_${op}_$t" "ld.relaxed.gpu.b$bits atom.relaxed.gpu.cas.b$bits loop" \
        "*($c *)out = cua_atomic_fetch_${op}_$t(($c *)p, ($c)v);"
      kernel "atomic_${op}_explicit_release_$t" "ld.relaxed.gpu.b$bits atom.release.gpu.cas.b$bits loop" \
        "cua_atomic_${op}_explicit_$t(($c *)p, ($c)v, CUA_RELEASE, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);"
    done
  done
  kernel atomic_defined "ld.relaxed.gpu.b32 atom.relaxed.gpu.cas.b32 loop" \
    '*(uint32_t *)out = wrap_inc((uint32_t *)p, (uint32_t)v);'
}

# The operation that the leader of a warp or block does, and the barriers around it.
warp_kernels() {
  local t bits c ptx loop serial explicit cas op ops mask='(uint32_t)w'
  for t in u32 i32 u64 i64 f32 f64; do
    bits=${t#?}
    c=CUA__TYPE_$t
    ptx=add.u$bits
    [ "${t%??}" != f ] || ptx=add.$t
    kernel "warp_add_$t" "red.relaxed.gpu.$ptx" "cua_atomic_add_warp_$t($mask, ($c *)p, ($c)v);"
    kernel "warp_sub_$t" "red.relaxed.gpu.$ptx" "cua_atomic_sub_warp_$t($mask, ($c *)p, ($c)v);"
    kernel "warp_fetch_add_$t" "atom.relaxed.gpu.$ptx" \
      "*($c *)out = cua_atomic_fetch_add_warp_$t($mask, ($c *)p, ($c)v);"
    kernel "warp_add_explicit_$t" "bar.warp.sync red.release.sys.$ptx bar.warp.sync" \
      "cua_atomic_add_warp_explicit_$t($mask, ($c *)p, ($c)v, CUA_RELEASE, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);"
    kernel "warp_fetch_add_explicit_$t" "bar.warp.sync atom.acq_rel.cta.$ptx bar.warp.sync" \
      "*($c *)out = cua_atomic_fetch_add_warp_explicit_$t($mask, ($c *)p, ($c)v, CUA_ACQ_REL, CUA_SCOPE_BLOCK, CUA_SPACE_GENERIC);"
    kernel "patient_block_add_$t" "atom.relaxed.gpu.$ptx atom.relaxed.gpu.$ptx bar.sync bar.sync bar.sync" \
      "BLOCK *($c *)out = cua_atomic_fetch_add_block_$t(($c *)p, ($c)v, &scratch);"
    kernel "patient_block_add_explicit_$t" \
      "atom.acq_rel.sys.$ptx atom.acq_rel.sys.$ptx bar.sync bar.sync bar.sync" \
      "BLOCK *($c *)out = cua_atomic_fetch_add_block_explicit_$t(($c *)p, ($c)v, &scratch, CUA_ACQ_REL, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);"
    # The loop: the old value, a swap, a second swap with the result of the first, a pause, and a
    # new load.
    cas="atom.relaxed.gpu.cas.b$bits"
    loop="again $cas ld.relaxed.gpu.b$bits nanosleep.u32"
    kernel "leader_fetch_mul_$t" "$loop" \
      "*($c *)out = cua_atomic_fetch_mul_warp_$t($mask, ($c *)p, ($c)v);"
    # Lanes in sequence: a load and a swap in each round.
    serial="$cas ld.relaxed.gpu.b$bits nanosleep.u32"
    explicit="atom.acq_rel.sys.cas.b$bits bar.warp.sync bar.warp.sync ld.relaxed.sys.b$bits nanosleep.u32"
    case $t in
    f*) ops=div ;;
    u*) ops='nand inc dec' ;;
    *) ops=nand ;;
    esac
    for op in $ops; do
      kernel "patient_serial_${op}_$t" "$serial" \
        "*($c *)out = cua_atomic_fetch_${op}_warp_$t($mask, ($c *)p, ($c)v);"
      kernel "patient_serial_${op}_explicit_$t" "$explicit" \
        "*($c *)out = cua_atomic_fetch_${op}_warp_explicit_$t($mask, ($c *)p, ($c)v, CUA_ACQ_REL, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);"
    done
    [ "${t%??}" = f ] || {
      kernel "warp_min_$t" "red.relaxed.gpu.min.${t/i/s}" "cua_atomic_min_warp_$t($mask, ($c *)p, ($c)v);"
      kernel "warp_or_$t" "red.relaxed.gpu.or.b$bits" "cua_atomic_or_warp_$t($mask, ($c *)p, ($c)v);"
      continue
    }
    kernel "leader_fetch_add_cas_$t" "$loop" \
      "*($c *)out = cua_atomic_fetch_add_cas_warp_$t($mask, ($c *)p, ($c)v);"
    kernel "leader_block_add_cas_$t" "${loop/ ld/ bar.sync ld}" \
      "BLOCK cua_atomic_add_cas_block_$t(($c *)p, ($c)v, &scratch);"
    kernel "leader_fetch_max_$t" "$loop test" \
      "*($c *)out = cua_atomic_fetch_max_warp_$t($mask, ($c *)p, ($c)v);"
  done
  cas=atom.relaxed.gpu.cas.b32
  kernel leader_defined "again $cas ld.relaxed.gpu.b32 nanosleep.u32 test" \
    "*(uint32_t *)out = highest_warp($mask, (uint32_t *)p, (uint32_t)v);"
  kernel leader_changing_defined "again $cas ld.relaxed.gpu.b32 nanosleep.u32" \
    "*(uint32_t *)out = add_mod_warp($mask, (uint32_t *)p, (uint32_t)v);"
  kernel patient_serial_defined "$cas ld.relaxed.gpu.b32 nanosleep.u32" \
    "*(uint32_t *)out = five_warp($mask, (uint32_t *)p, (uint32_t)v);"
}

# On the containing word: loops over its compare-and-swap.
narrow_kernels() {
  local t c op
  for t in u8 i8; do
    c=CUA__TYPE_$t
    kernel "narrow_load_$t" ld.relaxed.gpu.b32 "*($c *)out = cua_atomic_load_$t(($c *)p);"
    kernel "narrow_load_explicit_$t" ld.acquire.sys.b32 \
      "*($c *)out = cua_atomic_load_explicit_$t(($c *)p, CUA_ACQUIRE, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);"
    kernel "narrow_store_explicit_$t" "ld.relaxed.cta.b32 atom.release.cta.cas.b32 loop" \
      "cua_atomic_store_explicit_$t(($c *)p, ($c)v, CUA_RELEASE, CUA_SCOPE_BLOCK, CUA_SPACE_GENERIC);"
    kernel "narrow_exchange_$t" "ld.relaxed.gpu.b32 atom.relaxed.gpu.cas.b32 loop" \
      "*($c *)out = cua_atomic_exchange_$t(($c *)p, ($c)v);"
    kernel "narrow_compare_exchange_$t" "ld.acquire.gpu.b32 atom.acq_rel.gpu.cas.b32 loop" \
      "*($c *)out = cua_atomic_compare_exchange_explicit_$t(($c *)p, ($c)v, ($c)w, CUA_ACQ_REL, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);"
    for op in add sub min max and or xor nand mul; do
      kernel "narrow_fetch_${op}_$t" "ld.relaxed.gpu.b32 ld.relaxed.gpu.b32 atom.relaxed.gpu.cas.b32" \
        "*($c *)out = cua_atomic_fetch_${op}_$t(($c *)p, ($c)v);"
    done
  done
  # Of 16 bits: no word around them.
  for t in u16 i16; do
    c=CUA__TYPE_$t
    kernel "half_load_explicit_$t" ld.acquire.sys.b16 \
      "*($c *)out = cua_atomic_load_explicit_$t(($c *)p, CUA_ACQUIRE, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);"
    kernel "half_store_explicit_$t" st.release.cta.b16 \
      "cua_atomic_store_explicit_$t(($c *)p, ($c)v, CUA_RELEASE, CUA_SCOPE_BLOCK, CUA_SPACE_GENERIC);"
    kernel "half_exchange_$t" "ld.relaxed.gpu.b16 atom.relaxed.gpu.cas.b16 loop" \
      "*($c *)out = cua_atomic_exchange_$t(($c *)p, ($c)v);"
    kernel "half_compare_exchange_$t" atom.acq_rel.gpu.cas.b16 \
      "*($c *)out = cua_atomic_compare_exchange_explicit_$t(($c *)p, ($c)v, ($c)w, CUA_ACQ_REL, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);"
    for op in add sub min max and or xor nand mul; do
      kernel "half_fetch_${op}_$t" "ld.relaxed.gpu.b16 atom.relaxed.gpu.cas.b16 loop" \
        "*($c *)out = cua_atomic_fetch_${op}_$t(($c *)p, ($c)v);"
    done
  done
}

# In a state space that the caller names.
space_kernels() {
  local space at cas load
  for space in GLOBAL SHARED; do
    at="CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_$space"
    kernel "in_add_f32_$space" "red.relaxed.gpu${space_ptx[$space]}.add.f32" \
      "cua_atomic_add_explicit_f32((float *)p, (float)v, $at);"
    kernel "in_fetch_max_u64_$space" "atom.relaxed.gpu${space_ptx[$space]}.max.u64" \
      "*out = cua_atomic_fetch_max_explicit_u64((uint64_t *)p, v, $at);"
    kernel "in_fetch_mul_u32_$space" \
      "ld.relaxed.gpu${space_ptx[$space]}.b32 atom.relaxed.gpu${space_ptx[$space]}.cas.b32 loop" \
      "*(uint32_t *)out = cua_atomic_fetch_mul_explicit_u32((uint32_t *)p, (uint32_t)v, $at);"
    kernel "in_exchange_u32_$space" "atom.relaxed.gpu${space_ptx[$space]}.exch.b32" \
      "*(uint32_t *)out = cua_atomic_exchange_explicit_u32((uint32_t *)p, (uint32_t)v, $at);"
    kernel "warp_in_add_u32_$space" "red.relaxed.gpu${space_ptx[$space]}.add.u32" \
      "cua_atomic_add_warp_explicit_u32((uint32_t)w, (uint32_t *)p, (uint32_t)v, $at);"
    kernel "warp_in_fetch_sub_i64_$space" "atom.relaxed.gpu${space_ptx[$space]}.add.u64" \
      "*(int64_t *)out = cua_atomic_fetch_sub_warp_explicit_i64((uint32_t)w, (int64_t *)p, (int64_t)v, $at);"
    cas="atom.relaxed.gpu${space_ptx[$space]}.cas.b32"
    kernel "leader_in_fetch_mul_u32_$space" "again $cas ld.relaxed.gpu${space_ptx[$space]}.b32 nanosleep.u32" \
      "*(uint32_t *)out = cua_atomic_fetch_mul_warp_explicit_u32((uint32_t)w, (uint32_t *)p, (uint32_t)v, $at);"
    load="ld.relaxed.gpu${space_ptx[$space]}.b32"
    kernel "patient_in_serial_nand_u32_$space" "$cas $load nanosleep.u32" \
      "*(uint32_t *)out = cua_atomic_fetch_nand_warp_explicit_u32((uint32_t)w, (uint32_t *)p, (uint32_t)v, $at);"
  done
}

# 16-bit floats: native adds, and loops that compute in float.
half_kernels() {
  local t c op of step load=ld.relaxed.gpu.b16 cas=atom.relaxed.gpu.cas.b16
  for t in f16 bf16; do
    c="struct cua_$t"
    [ $t = f16 ] || limit=90-999
    atom "fetch_add_$t" ".add.noftz.$t" \
      "*(uint16_t *)out = cua_port_fetch_add_$t(p, (uint16_t)v, AT);"
    quiet "add_$t" ".add.noftz.$t" "cua_port_add_$t(p, (uint16_t)v, AT);" red
    of="$c x = {(uint16_t)v};"
    for op in add sub; do
      kernel "half_fetch_${op}_$t" "atom.relaxed.gpu.add.noftz.$t" \
        "$of *($c *)out = cua_atomic_fetch_${op}_$t(($c *)p, x);"
      kernel "half_${op}_$t" "red.relaxed.gpu.add.noftz.$t" "$of cua_atomic_${op}_$t(($c *)p, x);"
      kernel "half_${op}_release_$t" "red.release.cta.add.noftz.$t" \
        "$of cua_atomic_${op}_explicit_$t(($c *)p, x, CUA_RELEASE, CUA_SCOPE_BLOCK, CUA_SPACE_GENERIC);"
      # RED cannot acquire.
      kernel "half_${op}_acquire_$t" "atom.acquire.gpu.add.noftz.$t" \
        "$of cua_atomic_${op}_explicit_$t(($c *)p, x, CUA_ACQUIRE, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);"
      kernel "half_${op}_seq_cst_$t" "fence.sc.sys atom.acq_rel.sys.add.noftz.$t" \
        "$of *($c *)out = cua_atomic_fetch_${op}_explicit_$t(($c *)p, x, CUA_SEQ_CST, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);"
    done
    kernel "warp_half_add_$t" "red.relaxed.gpu.add.noftz.$t" \
      "$of cua_atomic_add_warp_$t((uint32_t)w, ($c *)p, x);"
    limit=
    for op in add sub mul div; do
      kernel "half_${op}_of_$t" "$op.rn.f32" "$of *($c *)out = cua__${op}_of_$t(x, *($c *)p);"
    done
    for op in mul div min max; do
      step=
      [[ $op == m[ia][nx] ]] || step=" $op.rn.f32"
      kernel "half_fetch_${op}_$t" "$load$step $cas loop" \
        "$of *($c *)out = cua_atomic_fetch_${op}_$t(($c *)p, x);"
    done
  done
  limit=70-89
  for op in add sub; do
    kernel "half_fetch_${op}_bf16" "$load $op.rn.f32 $cas loop" \
      "$of *($c *)out = cua_atomic_fetch_${op}_bf16(($c *)p, x);"
  done
  limit=
}

# 128 bits, and complex numbers.
wide_kernels() {
  local of='cua__uint128 x = (cua__uint128)v << 64 | w;' result='*(cua__uint128 *)out' op
  local u='struct cua_u128' value='struct cua_u128 x = {v, w};'
  local c='struct cua_complex_f32' d='struct cua_complex_f64'
  local number='struct cua_complex_f32 x = {(float)v, (float)w};'
  local double='struct cua_complex_f64 x = {(double)v, (double)w};'

  limit=$b128_from-999
  load load_b128 .b128 "$result = cua_port_load_b128(p, AT);"
  quiet store_b128 .b128 "$of cua_port_store_b128(p, x, AT);" st
  atom exchange_b128 .exch.b128 "$of $result = cua_port_exchange_b128(p, x, AT);"
  atom cas_b128 .cas.b128 "$of $result = cua_port_cas_b128(p, x, x + 1, AT);"
  kernel wide_load ld.relaxed.gpu.b128 "*($u *)out = cua_atomic_load_u128(($u *)p);"
  kernel wide_store_explicit 'fence.sc.gpu st.release.gpu.b128' \
    "$value cua_atomic_store_explicit_u128(($u *)p, x, CUA_SEQ_CST, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);"
  kernel wide_exchange atom.relaxed.gpu.exch.b128 \
    "$value *($u *)out = cua_atomic_exchange_u128(($u *)p, x);"
  kernel wide_compare_exchange atom.acq_rel.cta.cas.b128 \
    "$value *($u *)out = cua_atomic_compare_exchange_explicit_u128(($u *)p, x, x, CUA_ACQ_REL, CUA_SCOPE_BLOCK, CUA_SPACE_GENERIC);"
  for op in add sub min max and or xor; do
    kernel "wide_fetch_$op" 'ld.relaxed.gpu.b128 atom.relaxed.gpu.cas.b128 loop' \
      "$value *($u *)out = cua_atomic_fetch_${op}_u128(($u *)p, x);"
  done
  kernel wide_fetch_add_acquire 'ld.acquire.sys.b128 atom.acquire.sys.cas.b128 loop' \
    "$value *($u *)out = cua_atomic_fetch_add_explicit_u128(($u *)p, x, CUA_ACQUIRE, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);"
  kernel wide_fetch_add_complex_f64 \
    'ld.relaxed.gpu.b128 add.rn.f64 add.rn.f64 atom.relaxed.gpu.cas.b128 loop' \
    "$double *($d *)out = cua_atomic_fetch_add_complex_f64(($d *)p, x);"
  limit=$add_v2_from-999
  # The pointer given to a kernel is known to be to global memory; of any other it is asked, as
  # in shared memory there is no instruction for both parts.
  kernel wide_add_parts_complex_f32 red.relaxed.gpu.global.add.v2.f32 \
    "$number cua_atomic_add_parts_complex_f32(($c *)p, x);"
  kernel wide_add_parts_release_complex_f32 red.release.sys.global.add.v2.f32 \
    "$number cua_atomic_add_parts_explicit_complex_f32(($c *)p, x, CUA_RELEASE, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);"
  kernel wide_add_parts_of_any_complex_f32 \
    'red.relaxed.gpu.global.add.v2.f32 red.relaxed.gpu.add.f32 red.relaxed.gpu.add.f32' \
    "$number cua_atomic_add_parts_complex_f32(*($c **)p, x);"
  kernel wide_add_parts_in_GLOBAL_complex_f32 red.relaxed.gpu.global.add.v2.f32 \
    "$number cua_atomic_add_parts_explicit_complex_f32(*($c **)p, x, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);"
  kernel wide_add_parts_in_SHARED_complex_f32 'red.relaxed.gpu.shared.add.f32 red.relaxed.gpu.shared.add.f32' \
    "$number cua_atomic_add_parts_explicit_complex_f32(*($c **)p, x, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_SHARED);"
  limit=70-$((add_v2_from - 1))
  kernel wide_add_parts_complex_f32 'red.relaxed.gpu.add.f32 red.relaxed.gpu.add.f32' \
    "$number cua_atomic_add_parts_complex_f32(($c *)p, x);"
  limit=
  kernel wide_add_parts_acquire_complex_f32 'atom.acquire.gpu.add.f32 atom.acquire.gpu.add.f32' \
    "$number cua_atomic_add_parts_explicit_complex_f32(($c *)p, x, CUA_ACQUIRE, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);"
  kernel wide_sub_parts_complex_f64 'red.relaxed.gpu.add.f64 red.relaxed.gpu.add.f64' \
    "$double cua_atomic_sub_parts_complex_f64(($d *)p, x);"
  kernel wide_fetch_add_complex_f32 \
    'ld.relaxed.gpu.b64 add.rn.f32 add.rn.f32 atom.relaxed.gpu.cas.b64 loop' \
    "$number *($c *)out = cua_atomic_fetch_add_complex_f32(($c *)p, x);"
  kernel wide_fetch_mul_complex_f32 \
    'ld.relaxed.gpu.b64 mul.rn.f32 mul.rn.f32 sub.rn.f32 mul.rn.f32 mul.rn.f32 add.rn.f32 atom.relaxed.gpu.cas.b64 loop' \
    "$number *($c *)out = cua_atomic_fetch_mul_complex_f32(($c *)p, x);"
  kernel wide_exchange_complex_f32 atom.release.gpu.exch.b64 \
    "$number *($c *)out = cua_atomic_exchange_explicit_complex_f32(($c *)p, x, CUA_RELEASE, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);"
}

spinlock_kernels() {
  local scope ptx lock='(struct cua_spinlock *)p'
  for scope in BLOCK DEVICE SYSTEM; do
    ptx=${scope_ptx[$scope]}
    kernel "spinlock_trylock_$scope" "ld.relaxed.$ptx.b32 atom.acquire.$ptx.cas.b32" \
      "*out = cua_spinlock_trylock_scope($lock, CUA_SCOPE_$scope);"
    kernel "spinlock_unlock_$scope" "st.release.$ptx.b32" \
      "cua_spinlock_unlock_scope($lock, CUA_SCOPE_$scope);"
    kernel "spinlock_locked_$scope" "ld.relaxed.$ptx.b32" \
      "*out = cua_spinlock_locked_scope($lock, CUA_SCOPE_$scope);"
  done
  kernel spinlock_trylock 'ld.relaxed.gpu.b32 atom.acquire.gpu.cas.b32' \
    "*out = cua_spinlock_trylock($lock);"
  kernel spinlock_unlock st.release.gpu.b32 "cua_spinlock_unlock($lock);"
  kernel spinlock_locked ld.relaxed.gpu.b32 "*out = cua_spinlock_locked($lock);"
}

# The uncontended path of each lock.
lock_kernels() {
  local scope ptx at
  local ticket='(struct cua_ticketlock *)p' mcs='(struct cua_mcslock *)p' rw='(struct cua_rwlock *)p'
  local seq='(struct cua_seqlock *)p' semaphore='(struct cua_semaphore *)p'
  local node='(struct cua_mcslock_node *)out'
  for scope in BLOCK DEVICE SYSTEM; do
    ptx=${scope_ptx[$scope]}
    at=CUA_SCOPE_$scope
    kernel "ticketlock_trylock_$scope" \
      "ld.acquire.$ptx.b32 ld.relaxed.$ptx.b32 atom.relaxed.$ptx.cas.b32" \
      "*out = cua_ticketlock_trylock_scope($ticket, $at);"
    kernel "ticketlock_unlock_$scope" "red.release.$ptx.add.u32" \
      "cua_ticketlock_unlock_scope($ticket, $at);"
    kernel "ticketlock_locked_$scope" "ld.relaxed.$ptx.b32 ld.relaxed.$ptx.b32" \
      "*out = cua_ticketlock_locked_scope($ticket, $at);"
    kernel "mcslock_trylock_$scope" "ld.relaxed.$ptx.b64 st.relaxed.$ptx.b64 atom.acq_rel.$ptx.cas.b64" \
      "*out = cua_mcslock_trylock_scope($mcs, $node, $at);"
    kernel "mcslock_join_$scope" \
      "st.relaxed.$ptx.b64 atom.acq_rel.$ptx.exch.b64 st.relaxed.$ptx.b32 st.release.$ptx.b64" \
      "(void)cua__mcslock_join($mcs, $node, $at);"
    kernel "mcslock_handed_$scope" "ld.relaxed.$ptx.b32 acquire_again.$ptx" \
      "*(int *)p = cua__mcslock_handed($node, $at);"
    kernel "mcslock_locked_$scope" "ld.relaxed.$ptx.b64" "*out = cua_mcslock_locked_scope($mcs, $at);"
    kernel "rwlock_read_join_$scope" "atom.acquire.$ptx.add.u32" \
      "*out = cua__rwlock_read_join($rw, $at);"
    kernel "rwlock_read_free_$scope" "ld.relaxed.$ptx.b32 acquire_again.$ptx" \
      "*out = cua__rwlock_read_free($rw, (uint32_t)v, $at);"
    kernel "rwlock_read_trylock_$scope" "ld.relaxed.$ptx.b32 atom.acquire.$ptx.cas.b32 loop" \
      "*out = cua_rwlock_read_trylock_scope($rw, $at);"
    kernel "rwlock_read_unlock_$scope" "red.release.$ptx.add.u32" \
      "cua_rwlock_read_unlock_scope($rw, $at);"
    kernel "rwlock_write_mark_$scope" "atom.relaxed.$ptx.xor.b32" \
      "*out = cua__rwlock_write_mark($rw, $at);"
    kernel "rwlock_write_trylock_$scope" \
      "ld.acquire.$ptx.b32 ld.relaxed.$ptx.b32 ld.relaxed.$ptx.b32 ld.relaxed.$ptx.b32 atom.relaxed.$ptx.cas.b32 ld.acquire.$ptx.b32 atom.relaxed.$ptx.cas.b32 red.relaxed.$ptx.add.u32" \
      "*out = cua_rwlock_write_trylock_scope($rw, $at);"
    kernel "rwlock_write_unlock_$scope" "red.release.$ptx.and.b32 red.release.$ptx.add.u32" \
      "cua_rwlock_write_unlock_scope($rw, $at);"
    kernel "rwlock_locked_$scope" "ld.relaxed.$ptx.b32 ld.relaxed.$ptx.b32" \
      "*out = cua_rwlock_locked_scope($rw, $at);"
    kernel "seqlock_trylock_$scope" \
      "ld.relaxed.$ptx.b64 atom.acquire.$ptx.cas.b64 fence.acq_rel.$ptx" \
      "*out = cua_seqlock_trylock_scope($seq, $at);"
    kernel "seqlock_unlock_$scope" "ld.relaxed.$ptx.b64 st.release.$ptx.b64" \
      "cua_seqlock_unlock_scope($seq, $at);"
    kernel "seqlock_read_retry_$scope" "fence.acq_rel.$ptx ld.relaxed.$ptx.b64" \
      "*out = cua_seqlock_read_retry_scope($seq, v, $at);"
    kernel "seqlock_load_$scope" "ld.relaxed.$ptx.b32 ld.relaxed.$ptx.b64" \
      "*out = cua_seqlock_load_b32_scope(p, $at) + cua_seqlock_load_b64_scope(p, $at);"
    kernel "seqlock_store_$scope" "st.relaxed.$ptx.b32 st.relaxed.$ptx.b64" \
      "cua_seqlock_store_b32_scope(p, 1, $at); cua_seqlock_store_b64_scope(p, v, $at);"
    kernel "semaphore_trylock_$scope" "ld.relaxed.$ptx.b32 atom.acquire.$ptx.cas.b32 loop" \
      "*out = cua_semaphore_trylock_scope($semaphore, $at);"
    kernel "semaphore_unlock_$scope" "red.release.$ptx.add.u32" \
      "cua_semaphore_unlock_scope($semaphore, $at);"
    kernel "semaphore_value_$scope" "ld.relaxed.$ptx.b32" \
      "*out = cua_semaphore_value_scope($semaphore, $at);"
  done
}

# The barriers around the lane that acquires a lock for its warp or its block.
group_kernels() {
  local scope ptx at mask='(uint32_t)w' stripes
  local spin='(struct cua_spinlock *)p' seq='(struct cua_seqlock *)p'
  local ticket='(struct cua_ticketlock *)p'
  for scope in BLOCK DEVICE SYSTEM; do
    ptx=${scope_ptx[$scope]}
    at=CUA_SCOPE_$scope
    kernel "warp_spinlock_trylock_$scope" \
      "bar.warp.sync ld.relaxed.$ptx.b32 atom.acquire.$ptx.cas.b32 bar.warp.sync" \
      "*out = cua_spinlock_trylock_warp_scope($spin, $mask, $at);"
    kernel "warp_spinlock_unlock_$scope" "bar.warp.sync st.release.$ptx.b32" \
      "cua_spinlock_unlock_warp_scope($spin, $mask, $at);"
    kernel "warp_seqlock_trylock_$scope" \
      "bar.warp.sync ld.relaxed.$ptx.b64 atom.acquire.$ptx.cas.b64 fence.acq_rel.$ptx bar.warp.sync fence.acq_rel.$ptx" \
      "*out = cua_seqlock_trylock_warp_scope($seq, $mask, $at);"
    kernel "block_spinlock_trylock_$scope" \
      "bar.sync ld.relaxed.$ptx.b32 atom.acquire.$ptx.cas.b32 bar.red.or.pred" \
      "*out = cua_spinlock_trylock_block_scope($spin, $at);"
    kernel "block_spinlock_unlock_$scope" "bar.sync st.release.$ptx.b32" \
      "cua_spinlock_unlock_block_scope($spin, $at);"
    kernel "block_ticketlock_unlock_$scope" "bar.sync red.release.$ptx.add.u32" \
      "cua_ticketlock_unlock_block_scope($ticket, $at);"
    stripes="struct cua_stripes s; (void)cua_stripes_init((struct cua_stripe *)p, w, &s);"
    kernel "stripes_trylock_$scope" "ld.relaxed.$ptx.b32 atom.acquire.$ptx.cas.b32" \
      "$stripes *out = cua_stripes_trylock_scope(&s, out + v, $at);"
    kernel "stripes_unlock_$scope" "st.release.$ptx.b32" \
      "$stripes cua_stripes_unlock_scope(&s, out + v, $at);"
  done
  kernel warp_spinlock_unlock 'bar.warp.sync st.release.gpu.b32' \
    "cua_spinlock_unlock_warp($spin, $mask);"
  kernel block_spinlock_unlock 'bar.sync st.release.gpu.b32' "cua_spinlock_unlock_block($spin);"
}

# path OP SUFFIX CALL: a kernel with the operation, and with its CUA_ATOMIC_PATH in a comment.
path() {
  local name=$1_$2
  [ -z "$limit" ] || printf '#if __CUDA_ARCH__ >= %s0\n' "$limit" >&4
  printf 'KERNEL(path_%s) { SAY(CUA_ATOMIC_PATH(%s, %s)); %s }\n' "$name" "${4:-$1}" "$2" "$3" >&4
  # Where there is no such code the constant must say so.
  [ -z "$limit" ] ||
    printf '#else\nKERNEL(path_%s) { SAY(CUA_ATOMIC_PATH(%s, %s)); }\n#endif\n' "$name" "${4:-$1}" "$2" >&4
}

# Every operation on every type, with a result and without; only the paths of these are checked.
path_kernels() {
  local s c op ops quiet
  for s in u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64 u128 complex_f32 complex_f64; do
    c=CUA__TYPE_$s
    limit=
    quiet='add sub min max'
    case $s in
    u128 | complex_f64) limit=$b128_from ;;
    esac
    case $s in
    complex*) quiet='add sub' ops=mul ;;
    u*) quiet="$quiet and or xor inc dec" ops='mul nand' ;;
    i*) quiet="$quiet and or xor" ops='mul nand' ;;
    *) ops='mul div' ;;
    esac
    path load "$s" "*($c *)out = cua_atomic_load_$s(($c *)p);"
    path store "$s" "cua_atomic_store_$s(($c *)p, made<$c>(v, w));"
    path exchange "$s" "*($c *)out = cua_atomic_exchange_$s(($c *)p, made<$c>(v, w));"
    path compare_exchange "$s" \
      "*($c *)out = cua_atomic_compare_exchange_$s(($c *)p, made<$c>(v, w), made<$c>(w, v));"
    for op in $quiet $ops; do
      path "fetch_$op" "$s" "*($c *)out = cua_atomic_fetch_${op}_$s(($c *)p, made<$c>(v, w));"
    done
    for op in $quiet; do
      path "$op" "$s" "cua_atomic_${op}_$s(($c *)p, made<$c>(v, w));" "fetch_$op"
    done
  done
  limit=
}

cat >"$tmp/kernels.cu" <<'END'
#include <cuatomic/atomic_b128.h>
#include <cuatomic/atomic_complex.h>
#include <cuatomic/atomic_half.h>
#include <cuatomic/atomic_narrow.h>
#include <cuatomic/atomic_warp.h>
#include <cuatomic/lock.h>
#include <cuatomic/stripe.h>
#define KERNEL(name) extern "C" __global__ void name(void *p, uint64_t v, uint64_t w, uint64_t *out)
#define SAY(path) asm volatile("// CUA_PATH %0" ::"n"((int)(path)))
template <typename T> static __device__ T made(uint64_t v, uint64_t w)
{
	uint64_t words[2] = {v, w};
	T x;

	memcpy(&x, words, sizeof(x));
	return x;
}
CUA_DEFINE_ATOMIC(wrap_inc, u32, old >= operand ? 0 : old + 1)
CUA_DEFINE_ATOMIC_WARP(highest, u32, operand > old ? operand : old)
CUA_DEFINE_ATOMIC_CHANGING_WARP(add_mod, u32, (old + operand) % 1009)
CUA_DEFINE_ATOMIC_SERIAL_WARP(five, u32, old * 5 + operand)
#define BLOCK __shared__ struct cua_block_scratch scratch;
END
{
  port_kernels
  atomic_kernels
  warp_kernels
  narrow_kernels
  half_kernels
  wide_kernels
  space_kernels
  spinlock_kernels
  lock_kernels
  group_kernels
  path_kernels
} 3>"$tmp/expected.unsorted" 4>>"$tmp/kernels.cu"
sed 's/ *$//' "$tmp/expected.unsorted" >"$tmp/expected"

# ---- reading PTX ----

# instructions FILE: a line for each kernel, with its name and the relevant instructions.
instructions() {
  awk '
    function sorted(list, once, word, n, i, j, x) {
      n = split(list, word, " ")
      for (i = 2; i <= n; i++) {
        x = word[i]
        for (j = i - 1; j > 0 && word[j] > x; j--) word[j + 1] = word[j]
        word[j + 1] = x
      }
      list = ""
      for (i = 1; i <= n; i++)
        if (!once || i == 1 || word[i] != word[i - 1]) list = list " " word[i]
      return list
    }
    /^[ \t]*\.visible[ \t]+\.entry/ {
      name = $0
      sub(/.*\.entry[ \t]*/, "", name)
      sub(/[^A-Za-z0-9_].*/, "", name)
      list = after = ""
      tested = 0
      split("", seen)
      next
    }
    name == "" || name ~ /^path_/ { next }
    /^}/ { print name (name ~ /^(patient|leader)_/ ? sorted(list, name ~ /^leader_/) : list); name = ""; next }
    {
      sub(/\/\/.*/, "")
      sub(/^[ \t{]+/, "")
      conditional = sub(/^@!?%p[0-9]+[ \t]+/, "")
    }
    /^\$[A-Za-z0-9_]+:/ { label = $0; sub(/:.*/, "", label); seen[label] = 1; next }
    {
      op = $1
      sub(/;$/, "", op)
      n = split(op, part, ".")
      base = part[1]
    }
    name ~ /^narrow_fetch_/ && base == "bra" { next }
    # the compiler may turn their loop, and does the arithmetic in two places then
    name ~ /^narrow_fetch_.*f16$/ && base ~ /^(add|sub|mul|div)$/ { next }
    name ~ /^leader_/ {
      if (base == "bra" && conditional) tested = 1
      if (base == "ld" && op ~ /\.relaxed/) { after = "ld"; tested = 0 }
      if (base == "atom") {
        if (after == "ld" && (tested || conditional)) list = list " test"
        if (after == "atom") list = list " again"
        after = "atom"
      }
    }
    name ~ /^(warp|patient|leader)_/ && base ~ /^(bra|mov|vote|match|shfl|activemask|fma|mad|mul|div|add|sub|min|max)$/ { next }
    base == "bra" { label = $2; sub(/;.*/, "", label); if (label in seen) list = list " loop"; next }
    base == "mov" {
      if (match($0, /%(laneid|gridid|globaltimer|clock64|clock)/))
        list = list " " substr($0, RSTART, RLENGTH)
      next
    }
    base == "ld" || base == "st" {
      if (op ~ /\.(relaxed|acquire|release|volatile|mmio)/ ||
          (name ~ /^plain_/ && op !~ /\.param/))
        list = list " " op
      next
    }
    op ~ /^cvt(\.ftz)?\.f64\.f32$/ { list = list " " op; next }
    base ~ /^(fma|mad|mul|div|add|sub|min|max)$/ && part[n] !~ /^f(32|64)$/ { next }
    base ~ /^(atom|red|fence|membar|nanosleep|vote|match|shfl|bar|barrier|activemask|fma|mad|mul|div|add|sub|min|max)$/ {
      list = list " " op
    }
  ' "$1" | sed -E 's/barrier\.(sync|red\.or\.pred)(\.aligned)?/bar.\1/g; s/(ld|st)\.global\.b(32|64)/\1.global.u\2/g' | sort
}

# differing PTX: the number of kernels that are not as expected. Leaves both
# sides of each in $tmp/diff. acquire_again is the port's acquire_b32.
differing() {
  awk -v fence_from="$acquire_fence_from" \
    -v arch="$(sed -n 's/^\.target sm_\([0-9]*\).*/\1/p' "$1")" '
    /^@/ {
      split(substr($1, 2), range, "-")
      if (arch + 0 < range[1] + 0 || arch + 0 > range[2] + 0) next
      sub(/^[^ ]* /, "")
    }
    {
      while (match($0, /acquire_again\.[a-z]+/)) {
        scope = substr($0, RSTART + 14, RLENGTH - 14)
        again = arch < fence_from ? "ld.acquire." scope ".b32" : "fence.acquire." scope
        $0 = substr($0, 1, RSTART - 1) again substr($0, RSTART + RLENGTH)
      }
      print
    }
  ' "$tmp/expected" | sort >"$tmp/wanted"
  instructions "$1" >"$tmp/found"
  diff "$tmp/wanted" "$tmp/found" | grep '^[<>]' >"$tmp/diff"
  sed 's/^. //' "$tmp/diff" | cut -d ' ' -f 1 | sort -u | wc -l
}

# paths PTX: prints the number of path_* kernels. Writes a line to $tmp/lies for each kernel whose
# code differs from its path.
paths() {
  awk -v lies="$tmp/lies" '
    BEGIN {
      printf "" >lies
      split("8 16 32 64 128", cas)
    }
    function lie(why) { print name ": path " path ", " why ":" list >lies }
    # Every read and every compare-and-swap of so many bits, and at least the latter, again and again.
    function loop_of(bits) { return all ~ "^(l" bits " )*(c" bits " )+$" && back && !masked }
    /^[ \t]*\.visible[ \t]+\.entry/ {
      name = $0
      sub(/.*\.entry[ \t]*/, "", name)
      sub(/[^A-Za-z0-9_].*/, "", name)
      path = list = all = ""
      back = masked = n = 0
      split("", seen)
      next
    }
    name !~ /^path_/ { next }
    /\/\/ CUA_PATH [0-9]+/ { path = $NF; next }
    /^}/ {
      total++
      if (path == "") lie("which is not said")
      else if (path == 1) {
        if (n != 1 || back || masked || (all ~ /c/ && name !~ /compare_exchange/))
          lie("but not one instruction")
      } else if (path >= 2 && path <= 6) {
        if (!loop_of(cas[path - 1])) lie("but no loop over such a compare-and-swap")
      } else if (path == 7) {
        if (!masked || (name ~ /^path_load/ ? all != "l32 " : all !~ /^(l32 )+(c32 )+$/ || !back))
          lie("but not the word around it")
      } else if (path == 8) {
        if (n) lie("but without a lock")
      } else lie("which is none")
      name = ""
      next
    }
    {
      sub(/\/\/.*/, "")
      sub(/^[ \t{]+/, "")
      sub(/^@!?%p[0-9]+[ \t]+/, "")
    }
    /^\$[A-Za-z0-9_]+:/ { label = $0; sub(/:.*/, "", label); seen[label] = 1; next }
    $1 ~ /^bra/ { label = $2; sub(/;.*/, "", label); if (label in seen) back = 1; next }
    $1 == "and.b64" && / -4;/ { masked = 1; next }
    $1 ~ /^(atom|red|fence|membar)\./ || $1 ~ /^(ld|st)\.(relaxed|acquire|release|volatile)/ {
      n++
      list = list " " $1
      bits = $1
      sub(/.*\.[a-z]+/, "", bits)
      all = all ($1 ~ /\.cas\./ ? "c" : $1 ~ /^ld/ ? "l" : "o") bits " "
    }
    END { print total + 0 }
  ' "$1"
}

# ---- compiling ----

offered=$("${nvcc[@]}" --list-gpu-arch | sed -n 's/^compute_\([0-9]*\)$/\1/p' | sort -n | awk '$1 >= 70')
if [ -z "$offered" ]; then
  echo "nvcc offers no architecture that the headers are for"
  exit 1
fi
lowest=$(sed -n 1p <<<"$offered")
highest=$(sed -n '$p' <<<"$offered")
archs=$(awk -v low="$lowest" -v high="$highest" \
  '$1 == low || $1 == 75 || $1 == 80 || $1 == 90 || $1 == 100 || $1 == 120 || $1 == high' <<<"$offered")
for arch in 75 80 90 100 120; do
  grep -qx "$arch" <<<"$archs" || echo "skipped: this nvcc has no compute_$arch"
done

# compile ARCH NAME FLAGS...
compile() {
  local arch=$1 name=$2
  shift 2
  "${nvcc[@]}" -ptx -O3 -arch="compute_$arch" -Wno-deprecated-gpu-targets -Werror=all-warnings "$@" \
    -I"$top_srcdir/include" -I"$top_builddir/include" \
    "$tmp/kernels.cu" -o "$tmp/$name.ptx" >"$tmp/$name.log" 2>&1
}

failed=0
checked=0
said=0
operations=$(grep -o '^KERNEL(path_[a-z0-9_]*' "$tmp/kernels.cu" | sort -u | wc -l)
runs=()
for arch in $archs; do
  runs+=("$arch:compute_$arch")
done
# The guarantees must not depend on the flags of the user's kernels.
runs+=("$lowest:compute_$lowest with fast math:-use_fast_math")

# Two at a time.
for run in "${runs[@]}"; do
  IFS=: read -r arch what flags <<<"$run"
  # shellcheck disable=SC2086
  compile "$arch" "$arch$flags" $flags &
  while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n; done
done
wait

for run in "${runs[@]}"; do
  IFS=: read -r arch what flags <<<"$run"
  if [ ! -s "$tmp/$arch$flags.ptx" ] || [ -s "$tmp/$arch$flags.log" ]; then
    echo "FAILED: $what does not compile without a word"
    head -n 40 "$tmp/$arch$flags.log"
    failed=$((failed + 1))
    continue
  fi
  n=$(differing "$tmp/$arch$flags.ptx")
  checked=$((checked + $(wc -l <"$tmp/wanted")))
  if [ "$n" != 0 ]; then
    echo "FAILED: $what: $n kernels differ (< expected, > found)"
    head -n 40 "$tmp/diff"
    failed=$((failed + n))
  fi
  n=$(paths "$tmp/$arch$flags.ptx")
  said=$((said + n))
  if [ "$n" != "$operations" ] || [ -s "$tmp/lies" ]; then
    echo "FAILED: $what: the paths of $n operations of $operations"
    head -n 40 "$tmp/lies"
    failed=$((failed + 1))
  fi
done

# ---- where there are no 128 bits ----

# Code that uses them must not get through, and must say why.
cat >"$tmp/refused.cu" <<'END'
#include <cuatomic/atomic_b128.h>
struct cua_u128 on_the_host(struct cua_u128 *p) { return cua_atomic_load_u128(p); }
#ifdef USE
__global__ void kernel(struct cua_u128 *p) { cua_atomic_add_u128(p, *p); }
#endif
END
for arch in $archs; do
  for use in '' -DUSE; do
    "${nvcc[@]}" -c -arch="sm_$arch" -Wno-deprecated-gpu-targets $use -I"$top_srcdir/include" \
      -I"$top_builddir/include" "$tmp/refused.cu" -o "$tmp/refused.o" >"$tmp/log" 2>&1
    compiled=$?
    wanted=0
    [ -z "$use" ] || [ "$arch" -ge "$b128_from" ] || wanted=1
    if [ $((compiled != 0)) != $wanted ] ||
      { [ $wanted = 1 ] && ! grep -q no_128_bit_atomics_on_this_machine "$tmp/log"; }; then
      echo "FAILED: 128 bits${use:+ in a kernel} for sm_$arch: nvcc returned $compiled"
      cat "$tmp/log"
      failed=$((failed + 1))
    fi
  done
done

# ---- the check itself must be able to fail ----

# planted NAME KERNEL SED: a single change in a kernel must be found, in that kernel.
planted() {
  sed "/\.entry $2(/,/^}/{$3}" "$tmp/$lowest.ptx" >"$tmp/planted.ptx"
  if [ "$(differing "$tmp/planted.ptx")" != 1 ] || ! grep -q "^< $2 " "$tmp/diff"; then
    echo "FAILED: a planted error was not found: $1"
    failed=$((failed + 1))
  fi
  plants=$((plants + 1))
}
# planted_path NAME KERNEL SED: the same for a kernel and its path.
planted_path() {
  sed "/\.entry $2(/,/^}/{$3}" "$tmp/$lowest.ptx" >"$tmp/planted.ptx"
  paths "$tmp/planted.ptx" >"$tmp/log"
  if [ "$(wc -l <"$tmp/lies")" != 1 ] || ! grep -q "^$2: " "$tmp/lies"; then
    echo "FAILED: a planted lie was not found: $1"
    failed=$((failed + 1))
  fi
  plants=$((plants + 1))
}
plants=0
if [ "$failed" = 0 ]; then
  planted_path 'an instruction that is said to be a loop' path_fetch_add_u32 's/CUA_PATH 1/CUA_PATH 4/'
  planted_path 'a loop that is said to be an instruction' path_min_f32 's/CUA_PATH 4/CUA_PATH 1/'
  planted_path 'a swap of another width' path_fetch_mul_u64 's/cas\.b64/cas.b32/'
  planted_path 'a loop that is none' path_exchange_u16 '/bra/d'
  planted_path 'a word that is not the one around' path_store_u8 's/, -4;/, -8;/'
  planted 'a lost acquire' spinlock_trylock 's/atom\.acquire\.gpu/atom.relaxed.gpu/'
  planted 'a scope too narrow' spinlock_unlock 's/\.gpu/.cta/'
  planted 'a plain store in place of a release' spinlock_unlock 's/st\.release\.gpu/st/'
  planted 'the wrong space' port_cas_b32_ACQUIRE_DEVICE_GLOBAL 's/\.global\.cas/.cas/'
  planted 'atom in place of red' atomic_add_u32 's/red\./atom./'
  planted 'a lost fence' port_load_b32_SEQ_CST_DEVICE_GENERIC '/fence\.sc/d'
  planted 'a fence too many' port_load_b32_RELAXED_DEVICE_GENERIC 's/ld\.relaxed/membar.gl; &/;s/; ld/;\n&/'
  planted 'a contracted product' port_mul_add_rn_f32 's/mul\.rn/fma.rn/'
  planted 'no loop' atomic_fetch_min_f32 '/bra/d'
  planted 'a lost release of a ticket' ticketlock_unlock_DEVICE 's/red\.release/red.relaxed/'
  planted 'a lost acquire after the wait' mcslock_handed_DEVICE 's/ld\.acquire/ld.relaxed/'
  planted 'a lost fence of a seqlock' seqlock_read_retry_DEVICE '/fence\.acq_rel/d'
  planted 'a lost barrier of the warp' warp_add_explicit_u32 '/warp\.sync/d'
  planted 'a lost barrier of lanes in turn' patient_serial_div_explicit_f32 '/warp\.sync/d'
  planted 'a test before a swap' leader_fetch_mul_f32 's/^\(.*\)atom\.relaxed/\t@%p1 bra L__planted;\n&/'
  planted 'no test before a swap' leader_defined '/bra/d'
  planted 'no barriers around the scratch' patient_block_add_u32 's/bar\.sync/bar.arrive/'
  planted 'a lost barrier before an unlock' warp_spinlock_unlock_DEVICE '/warp\.sync/d'
  planted 'a barrier of a block without its answer' block_spinlock_trylock_DEVICE 's/\.red\.or\.pred/.sync/'
  planted 'a contracted product of halves' half_mul_of_f16 's/mul\.rn/fma.rn/'
  planted 'the parts of a number one by one' wide_fetch_add_complex_f32 's/cas\.b64/cas.b32/'
  planted 'a kernel that is missing' atomic_load_u32 's/\.visible .entry/.func/'
fi

echo "$checked kernels and $said paths checked for ${archs//$'\n'/, } and for fast math," \
  "$plants planted errors, $failed failed"
[ "$failed" = 0 ]
