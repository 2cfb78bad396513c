/* SPDX-License-Identifier: MIT */
/* Shared by the test programs of the atomics on host threads; included first. */
#ifndef CUATOMIC_TESTS_CHECK_ATOMIC_H
#define CUATOMIC_TESTS_CHECK_ATOMIC_H

#include <pthread.h>

#include <cuatomic/port.h>

#include "counted_port.h"

COUNTED(8)
COUNTED(16)
COUNTED(32)
COUNTED(64)
#define cua_port_load_b8 counted_load_b8
#define cua_port_load_b16 counted_load_b16
#define cua_port_load_b32 counted_load_b32
#define cua_port_load_b64 counted_load_b64
#define cua_port_cas_b8 counted_cas_b8
#define cua_port_cas_b16 counted_cas_b16
#define cua_port_cas_b32 counted_cas_b32
#define cua_port_cas_b64 counted_cas_b64

#include <cuatomic/atomic_narrow.h>
#include <cuatomic/atomic_warp.h>

#include "common.h"

#include "atomic_model.h"

static const enum cua_order orders[] = {CUA_RELAXED, CUA_ACQUIRE, CUA_RELEASE, CUA_ACQ_REL,
					CUA_SEQ_CST};
static const enum cua_scope scopes[] = {CUA_SCOPE_BLOCK, CUA_SCOPE_DEVICE, CUA_SCOPE_SYSTEM};

#define THREADS 4

#endif /* CUATOMIC_TESTS_CHECK_ATOMIC_H */
