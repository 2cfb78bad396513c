/* SPDX-License-Identifier: MIT */
/*
 * Template: the accesses of a leader that updates an object by compare-and-swap. atomic.h has the
 * argument.
 *
 * Parameter: CUA__BITS, 8, 16, 32, 64 or 128. The template undefines it.
 *
 * Defines, with the width after each name, cua__update_load_b cua__update_swap_b.
 */
#define CUA__B(name) CUA__JOIN(name, CUA__BITS)
#define CUA__WORD CUA__B(cua__uint)

/* The order of the load suffices for an update that ends without a swap. */
CUA_FORCE CUA__WORD CUA__B(cua__update_load_b)(const void *p, enum cua_order order,
					       enum cua_scope scope, enum cua_space space)
{
	return CUA__B(cua_port_load_b)(p, order == CUA_ACQUIRE ? CUA_ACQUIRE : CUA_RELAXED, scope,
				       space);
}

/*
 * Returns the value that was read. If it equals `before`, the update is done. With tests_unchanged,
 * an update that changes and releases nothing is done without a swap.
 */
CUA_FORCE CUA__WORD CUA__B(cua__update_swap_b)(void *p, CUA__WORD before, CUA__WORD desired,
					       int tests_unchanged, enum cua_order order,
					       enum cua_scope scope, enum cua_space space)
{
	if (!tests_unchanged || desired != before || (order != CUA_RELAXED && order != CUA_ACQUIRE))
		return CUA__B(cua_port_cas_b)(p, before, desired, order, scope, space);
	return before;
}

#undef CUA__B
#undef CUA__WORD
#undef CUA__BITS
