/* SPDX-License-Identifier: MIT */
/*
 * Counts the port calls of compare-and-swap loops. Include it after <cuatomic/port.h> and before
 * the headers of the loops.
 */
#ifndef CUATOMIC_TESTS_COUNTED_PORT_H
#define CUATOMIC_TESTS_COUNTED_PORT_H

/* The number of port calls, and their last orders. */
static _Thread_local struct {
	unsigned loads, cas;
	enum cua_order load_order, cas_order;
} asked;

#define COUNTED(bits)                                                                              \
	static inline cua__uint##bits counted_load_b##bits(                                        \
		const void *p, enum cua_order order, enum cua_scope scope, enum cua_space space)   \
	{                                                                                          \
		asked.loads++;                                                                     \
		asked.load_order = order;                                                          \
		return cua_port_load_b##bits(p, order, scope, space);                              \
	}                                                                                          \
	static inline cua__uint##bits counted_cas_b##bits(                                         \
		void *p, cua__uint##bits expected, cua__uint##bits desired, enum cua_order order,  \
		enum cua_scope scope, enum cua_space space)                                        \
	{                                                                                          \
		asked.cas++;                                                                       \
		asked.cas_order = order;                                                           \
		return cua_port_cas_b##bits(p, expected, desired, order, scope, space);            \
	}

#endif /* CUATOMIC_TESTS_COUNTED_PORT_H */
