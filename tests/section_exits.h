/* SPDX-License-Identifier: MIT */
/*
 * Every CUA_WITH_ section, left in every way that C has. Used by threads, kernels, C++ code and the
 * checker.
 */
#ifndef CUATOMIC_TESTS_SECTION_EXITS_H
#define CUATOMIC_TESTS_SECTION_EXITS_H

#include <cuatomic/combine.h>
#include <cuatomic/stripe.h>

#include "lock_form_calls.h"

enum section_kind {
	SECTION_SPIN,
	SECTION_TICKET,
	SECTION_MCS,
	SECTION_READ, /* excludes writers only */
	SECTION_WRITE,
	SECTION_SEQ,
	SECTION_SEMAPHORE,
	SECTION_STRIPE,
	SECTION_TURNS, /* CUA_WITH_LOCK_WARP */
	SECTION_KINDS
};
enum section_exit {
	EXIT_END,
	EXIT_BREAK,
	EXIT_CONTINUE,
	EXIT_RETURN,
	EXIT_GOTO,
	EXIT_RETURN_NESTED, /* returns from a section of another lock inside */
	SECTION_EXITS
};

struct section_locks {
	struct cua_stripe stripe;
	struct cua_spinlock inner;
	struct group_locks group;
	uint64_t count[2]; /* equal whenever no writer holds the lock */
	uint64_t torn;     /* the times that they differed */
};

CUA_FN void section_init(struct section_locks *l)
{
	memset((void *)l, 0, sizeof(*l));
	group_init(&l->group);
}

/* Only after all users have finished. */
CUA_FN int section_locked(const struct section_locks *l)
{
	return l->stripe.lock.word || l->inner.word || group_locked(&l->group);
}

CUA_FN void section_work(struct section_locks *l, enum section_kind kind)
{
	uint64_t count = CUA_READ(l->count[0]);

	if (CUA_READ(l->count[1]) != count)
		cua_port_add_u64(&l->torn, 1, CUA_RELAXED, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);
	if (kind == SECTION_READ)
		return;
	CUA_WRITE(l->count[0], count + 1);
	CUA_WRITE(l->count[1], count + 1);
}

#define SECTION__LEAVE(SECTION)                                                                    \
	SECTION                                                                                    \
	{                                                                                          \
		section_work(l, kind);                                                             \
		if (how == EXIT_BREAK)                                                             \
			break;                                                                     \
		if (how == EXIT_CONTINUE)                                                          \
			continue;                                                                  \
		if (how == EXIT_RETURN)                                                            \
			return EXIT_RETURN;                                                        \
		if (how == EXIT_GOTO)                                                              \
			goto out;                                                                  \
		if (how == EXIT_RETURN_NESTED)                                                     \
			CUA_WITH_LOCK (&l->inner)                                                  \
				return EXIT_RETURN_NESTED;                                         \
	}                                                                                          \
	return EXIT_END

/*
 * Runs a section and leaves it by `how`. Returns EXIT_END after the end of the section, else how.
 * mask: the lanes that call together.
 */
CUA_FN enum section_exit section_leave(struct section_locks *l, enum section_kind kind,
				       struct cua_mcslock_node *node, uint32_t mask,
				       enum section_exit how)
{
	struct cua_stripes stripes;

	if (cua_stripes_init(&l->stripe, 1, &stripes))
		return SECTION_EXITS;
	switch (kind) {
	case SECTION_SPIN: SECTION__LEAVE(CUA_WITH_LOCK (&l->group.spin));
	case SECTION_TICKET: SECTION__LEAVE(CUA_WITH_TICKETLOCK (&l->group.ticket));
	case SECTION_MCS: SECTION__LEAVE(CUA_WITH_MCSLOCK (&l->group.mcs, node));
	case SECTION_READ: SECTION__LEAVE(CUA_WITH_READ_LOCK (&l->group.rw));
	case SECTION_WRITE: SECTION__LEAVE(CUA_WITH_WRITE_LOCK (&l->group.rw));
	case SECTION_SEQ: SECTION__LEAVE(CUA_WITH_SEQLOCK (&l->group.seq));
	case SECTION_SEMAPHORE: SECTION__LEAVE(CUA_WITH_SEMAPHORE (&l->group.semaphore));
	case SECTION_STRIPE: SECTION__LEAVE(CUA_WITH_STRIPE (&stripes, l));
	default: SECTION__LEAVE(CUA_WITH_LOCK_WARP (&l->group.spin, mask));
	}
out:
	return EXIT_GOTO;
}

/* Whether the section was left as asked. */
CUA_FN int section_left(enum section_exit how, enum section_exit left)
{
	return left == (how == EXIT_BREAK || how == EXIT_CONTINUE ? EXIT_END : how);
}

#endif /* CUATOMIC_TESTS_SECTION_EXITS_H */
