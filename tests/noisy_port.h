/* SPDX-License-Identifier: MIT */
/*
 * The host's port layer with threads that stop between two accesses: so few processors produce many
 * interleavings. Compile with -DCUA_PORT_HEADER='"noisy_port.h"'; the program defines noise().
 */
#ifndef CUATOMIC_TESTS_NOISY_PORT_H
#define CUATOMIC_TESTS_NOISY_PORT_H

#include <cuatomic/port/port_host.h>

/* Called before every atomic access. */
void noise(void);

#define cua_port_load_b32(...) (noise(), cua_port_load_b32(__VA_ARGS__))
#define cua_port_load_b64(...) (noise(), cua_port_load_b64(__VA_ARGS__))
#define cua_port_store_b32(...) (noise(), cua_port_store_b32(__VA_ARGS__))
#define cua_port_store_b64(...) (noise(), cua_port_store_b64(__VA_ARGS__))
#define cua_port_exchange_b32(...) (noise(), cua_port_exchange_b32(__VA_ARGS__))
#define cua_port_exchange_b64(...) (noise(), cua_port_exchange_b64(__VA_ARGS__))
#define cua_port_cas_b32(...) (noise(), cua_port_cas_b32(__VA_ARGS__))
#define cua_port_cas_b64(...) (noise(), cua_port_cas_b64(__VA_ARGS__))
#if defined(CUA_PORT_HAS_B128)
#define cua_port_load_b128(...) (noise(), cua_port_load_b128(__VA_ARGS__))
#define cua_port_store_b128(...) (noise(), cua_port_store_b128(__VA_ARGS__))
#define cua_port_exchange_b128(...) (noise(), cua_port_exchange_b128(__VA_ARGS__))
#define cua_port_cas_b128(...) (noise(), cua_port_cas_b128(__VA_ARGS__))
#endif

#endif /* CUATOMIC_TESTS_NOISY_PORT_H */
