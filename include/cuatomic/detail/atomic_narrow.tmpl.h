/* SPDX-License-Identifier: MIT */
/*
 * Template: the functions of the port for a width that the port lacks, by atomics on the 32-bit
 * word that contains the object. atomic_narrow.h has the argument.
 *
 * Parameter: CUA__BITS, 8 or 16. The template undefines it.
 *
 * Defines, with the width after each name, cua_port_load_b cua_port_cas_b cua_port_exchange_b
 * cua_port_store_b.
 */
#define CUA__B(name) CUA__JOIN(name, CUA__BITS)
#define CUA__WORD CUA__B(cua__uint)

CUA_FORCE CUA__WORD CUA__B(cua_port_load_b)(const void *p, enum cua_order order,
					    enum cua_scope scope, enum cua_space space)
{
	return (CUA__WORD)(cua_port_load_b32(cua__word_of(p), order, scope, space) >>
			   cua__shift_of(p));
}

CUA_FORCE CUA__WORD CUA__B(cua_port_cas_b)(void *p, CUA__WORD expected, CUA__WORD desired,
					   enum cua_order order, enum cua_scope scope,
					   enum cua_space space)
{
	uint32_t *word = cua__word_of(p), shift = cua__shift_of(p), before;
	uint32_t change = (uint32_t)(CUA__WORD)(expected ^ desired) << shift;
	/* the order of a failed compare_exchange */
	enum cua_order first = order == CUA_SEQ_CST   ? CUA_SEQ_CST
			       : order == CUA_RELEASE ? CUA_RELAXED
			       : order == CUA_ACQ_REL ? CUA_ACQUIRE
						      : order;
	uint32_t seen = cua_port_load_b32(word, first, scope, space);

	do {
		before = seen;
		if ((CUA__WORD)(before >> shift) != expected)
			break;
		seen = cua_port_cas_b32(word, before, before ^ change, order, scope, space);
	} while (seen != before);
	return (CUA__WORD)(before >> shift);
}

CUA_FORCE CUA__WORD CUA__JOIN(cua_port_exchange_b,
			      CUA__BITS)(void *p, CUA__WORD v, enum cua_order order,
					 enum cua_scope scope, enum cua_space space)
{
	uint32_t *word = cua__word_of(p), shift = cua__shift_of(p), before;
	uint32_t keep = ~((uint32_t)(CUA__WORD)-1 << shift);
	uint32_t seen = cua_port_load_b32(word, CUA_RELAXED, scope, space);

	do {
		before = seen;
		seen = cua_port_cas_b32(word, before, (before & keep) | (uint32_t)v << shift, order,
					scope, space);
	} while (seen != before);
	return (CUA__WORD)(before >> shift);
}

CUA_FORCE void CUA__B(cua_port_store_b)(void *p, CUA__WORD v, enum cua_order order,
					enum cua_scope scope, enum cua_space space)
{
	(void)CUA__B(cua_port_exchange_b)(p, v, order, scope, space);
}

#undef CUA__B
#undef CUA__WORD
#undef CUA__BITS
