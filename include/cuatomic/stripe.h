/* SPDX-License-Identifier: MIT */
/*
 * Lock stripes: an array of locks for objects that have none of their own, chosen by the object's address;
 * and atomic operations on objects wider than the machine's compare-and-swap, made of them.
 *
 * Source: lock striping as in java.util.concurrent's ConcurrentHashMap, Lea, 2004; atomics by a table of
 * locks as in the C11 libraries for objects that are not lock-free. Here the table is the caller's, so
 * nothing is shared between programs or streams that should not be.
 *
 * Synchronization: X means that the caller must order the two, - that the stripe does it. Calls on
 * objects of one stripe wait for each other; a plain access is one to the object outside of its lock.
 *
 *                     init  trylock  lock  lock_for  unlock  locked  striped atomics  plain access
 *     init             X       X       X      X        X       X            X              -
 *     trylock          X       -       -      -        -       -            -              -
 *     lock             X       -       -      -        -       -            -              -
 *     lock_for         X       -       -      -        -       -            -              -
 *     unlock           X       -       -      -        X       -            -              -
 *     locked           X       -       -      -        -       -            -              -
 *     striped atomics  X       -       -      -        -       -            -              X
 *
 * Scope: the device; the _scope and _explicit forms take CUA_SCOPE_BLOCK (stripes in shared memory), _DEVICE
 *   or _SYSTEM, and all users of one array must name a scope that includes all of them.
 * Memory order: taking a stripe acquires what its last unlock released. A striped atomic of any order
 *   acquires and releases, at its scope; one of order CUA_SEQ_CST is besides between two fences of that order.
 * Progress: blocking, not fair, as spinlock.h. Two objects may have one stripe: a lane that holds a
 *   stripe must not wait for another object's, but take both by lock_two, and must not use a striped
 *   atomic on the same array.
 * Argument: an address has one stripe in all copies of a view, so two users of one object meet at one lock,
 *   and spinlock.h's argument holds for it. lock_two takes the lower stripe first, so nobody who waits for the
 *   second holds one that comes after it, and a cycle of waiters is impossible; of one stripe there is one
 *   lock, taken once.
 */
#ifndef CUATOMIC_STRIPE_H
#define CUATOMIC_STRIPE_H

#include <cuatomic/hash.h>
#include <cuatomic/memory.h>
#include <cuatomic/port.h>
#include <cuatomic/spinlock.h>
#include <cuatomic/status.h>

/* The layout version of struct cua_stripes. */
#define CUA_STRIPES_LAYOUT 1u

/* One lock a 32-byte sector, so that waiters for one do not disturb the holder of another. */
struct cua_stripe {
	struct cua_spinlock lock;
	uint32_t reserved[7];
} __attribute__((aligned(32)));
CUA_STATIC_ASSERT(sizeof(struct cua_stripe) == 32, "the stripe is ABI");

/* The value of a free stripe; memory of zeros is an array of free stripes. */
#define CUA_STRIPE_INIT                                                                            \
	{                                                                                          \
		CUA_SPINLOCK_INIT,                                                                 \
		{                                                                                  \
			0, 0, 0, 0, 0, 0, 0                                                        \
		}                                                                                  \
	}

/*
 * The view, passed to kernels by value. All users of an object must use the same array with the same n, and
 * name the object by the same address, that of its first byte; memory that has another address for
 * another user is none for stripes.
 */
struct cua_stripes {
	struct cua_stripe *locks;
	uint64_t n;
	uint32_t layout;
	uint32_t reserved; /* 0 */
};
CUA_STATIC_ASSERT(sizeof(struct cua_stripes) == sizeof(void *) + 16, "the view is ABI");

/* Makes a stripe free, whatever it was; nobody may be using it. */
CUA_FN void cua_stripe_init(struct cua_stripe *stripe)
{
	cua_spinlock_init(&stripe->lock);
	memset((void *)stripe, 0, sizeof(*stripe));
}

/*
 * The view of n stripes in the caller's memory, on the host or in a kernel. Only the view is made: the stripes
 * are free already, as memory of zeros is, and may be memory that the caller cannot reach. n is 1 or
 * more, and needs to be no power of two; a few times as many as there are lanes at work is enough.
 * Errors: NULL, VALUE (n = 0), SIZE (n stripes are more than an address can count), ALIGNMENT (32 bytes).
 */
CUA_FN enum cua_status cua_stripes_init(struct cua_stripe *locks, uint64_t n,
					struct cua_stripes *stripes)
{
	if (!locks || !stripes)
		return CUA_ERROR_NULL;
	if (!n)
		return CUA_ERROR_VALUE;
	if (n > SIZE_MAX / 2 / sizeof(*locks))
		return CUA_ERROR_SIZE;
	if ((uintptr_t)locks % sizeof(*locks))
		return CUA_ERROR_ALIGNMENT;
	stripes->locks = locks;
	stripes->n = n;
	stripes->layout = CUA_STRIPES_LAYOUT;
	stripes->reserved = 0;
	return CUA_OK;
}

/* The number of the object's stripe, 0 to n - 1. */
CUA_FORCE uint64_t cua_stripes_index(const struct cua_stripes *s, const void *p)
{
	return cua_hash_to_index(cua_hash_u64((uint64_t)(uintptr_t)p, 0), s->n);
}

/* The object's lock, for the other calls of spinlock.h. */
CUA_FORCE struct cua_spinlock *cua_stripes_at(const struct cua_stripes *s, const void *p)
{
	return &s->locks[cua_stripes_index(s, p)].lock;
}

/* Takes the object's stripe if it is free, without waiting. Returns 1 if it was taken, else 0. */
CUA_FORCE int cua_stripes_trylock_scope(const struct cua_stripes *s, const void *p,
					enum cua_scope scope)
{
	return cua_spinlock_trylock_scope(cua_stripes_at(s, p), scope);
}

/* Takes the object's stripe, waiting as long as it is held. */
CUA_FORCE void cua_stripes_lock_scope(const struct cua_stripes *s, const void *p,
				      enum cua_scope scope)
{
	cua_spinlock_lock_scope(cua_stripes_at(s, p), scope);
}

/* Tries for about ns nanoseconds, once at least. Returns 1 if the stripe was taken, else 0. */
CUA_FORCE int cua_stripes_lock_for_scope(const struct cua_stripes *s, const void *p, uint64_t ns,
					 enum cua_scope scope)
{
	return cua_spinlock_lock_for_scope(cua_stripes_at(s, p), ns, scope);
}

/* Gives the object's stripe back. Only its holder may call this. */
CUA_FORCE void cua_stripes_unlock_scope(const struct cua_stripes *s, const void *p,
					enum cua_scope scope)
{
	cua_spinlock_unlock_scope(cua_stripes_at(s, p), scope);
}

/* Whether someone holds the object's stripe at this moment; a hint, which orders nothing. */
CUA_FORCE int cua_stripes_locked_scope(const struct cua_stripes *s, const void *p,
				       enum cua_scope scope)
{
	return cua_spinlock_locked_scope(cua_stripes_at(s, p), scope);
}

/* Takes the stripes of two objects, in one order everywhere; one stripe is taken once. */
CUA_FORCE void cua_stripes_lock_two_scope(const struct cua_stripes *s, const void *p, const void *q,
					  enum cua_scope scope)
{
	uint64_t i = cua_stripes_index(s, p), j = cua_stripes_index(s, q);

	cua_spinlock_lock_scope(&s->locks[i < j ? i : j].lock, scope);
	if (i != j)
		cua_spinlock_lock_scope(&s->locks[i < j ? j : i].lock, scope);
}

/* Gives back what lock_two took for the same objects, in either order. */
CUA_FORCE void cua_stripes_unlock_two_scope(const struct cua_stripes *s, const void *p,
					    const void *q, enum cua_scope scope)
{
	uint64_t i = cua_stripes_index(s, p), j = cua_stripes_index(s, q);

	cua_spinlock_unlock_scope(&s->locks[i].lock, scope);
	if (i != j)
		cua_spinlock_unlock_scope(&s->locks[j].lock, scope);
}

CUA_FN int cua_stripes_trylock(const struct cua_stripes *s, const void *p)
{
	return cua_stripes_trylock_scope(s, p, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_stripes_lock(const struct cua_stripes *s, const void *p)
{
	cua_stripes_lock_scope(s, p, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_stripes_lock_for(const struct cua_stripes *s, const void *p, uint64_t ns)
{
	return cua_stripes_lock_for_scope(s, p, ns, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_stripes_unlock(const struct cua_stripes *s, const void *p)
{
	cua_stripes_unlock_scope(s, p, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_stripes_locked(const struct cua_stripes *s, const void *p)
{
	return cua_stripes_locked_scope(s, p, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_stripes_lock_two(const struct cua_stripes *s, const void *p, const void *q)
{
	cua_stripes_lock_two_scope(s, p, q, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_stripes_unlock_two(const struct cua_stripes *s, const void *p, const void *q)
{
	cua_stripes_unlock_two_scope(s, p, q, CUA_SCOPE_DEVICE);
}

/*
 * CUA_WITH_STRIPE(&stripes, p) { critical section on the object at p }
 *
 * Runs the block once under the object's stripe, for every lane that comes here, however the warp has diverged.
 * `break` and `continue` leave the block and unlock; return and goto must not leave it. The stripes and p
 * are evaluated once.
 * CUA_WITH_STRIPE_SCOPE(&stripes, p, scope) is the same at another scope.
 */
#define CUA__WITH_STRIPE_NAMED(l, stripes, p, scope)                                               \
	for (struct cua_spinlock *l = cua_stripes_at((stripes), (p)); l; l = NULL)                 \
		CUA_WITH_LOCK_SCOPE (l, scope)
#define CUA__WITH_STRIPE_AT(line, stripes, p, scope)                                               \
	CUA__WITH_STRIPE_NAMED(cua__stripe_##line, stripes, p, scope)
#define CUA__WITH_STRIPE(line, stripes, p, scope) CUA__WITH_STRIPE_AT(line, stripes, p, scope)

#define CUA_WITH_STRIPE_SCOPE(stripes, p, scope) CUA__WITH_STRIPE(__LINE__, stripes, p, scope)
#define CUA_WITH_STRIPE(stripes, p) CUA_WITH_STRIPE_SCOPE (stripes, p, CUA_SCOPE_DEVICE)

/* ---- atomic operations on objects of any size ---- */

/* What CUA_SEQ_CST asks for beyond the lock, before and after it. */
CUA_FORCE void cua__striped_fence(enum cua_order order, enum cua_scope scope)
{
	if (order == CUA_SEQ_CST)
		cua_port_fence(CUA_SEQ_CST, scope);
}

/* Whether two objects have the same bytes. */
CUA_FORCE int cua__striped_equal(const void *a, const void *b, size_t bytes)
{
	/* a constant for a type, so that no compiler takes the second loop to read beyond the object */
	const size_t words = bytes / sizeof(uint64_t) * sizeof(uint64_t);
	uint64_t different = 0, x, y;
	size_t i;

	for (i = 0; i < words; i += sizeof(x)) {
		memcpy(&x, (const char *)a + i, sizeof(x));
		memcpy(&y, (const char *)b + i, sizeof(y));
		different |= x ^ y;
	}
	for (i = words; i < bytes; i++)
		different |=
			(uint64_t)(((const unsigned char *)a)[i] ^ ((const unsigned char *)b)[i]);
	return different == 0;
}

/*
 * CUA_DEFINE_ATOMIC_STRIPED(name, type, expression)
 *
 * Defines, at file scope and with no semicolon after it,
 *
 *   type name(struct cua_stripes stripes, type *p, type operand)              relaxed, device scope
 *   type name_explicit(struct cua_stripes stripes, type *p, type operand, enum cua_order order,
 *                      enum cua_scope scope)
 *
 * for a type of any size that can be copied. Both set *p to the value of the expression in one indivisible step
 * and return what *p was. The expression is written in `old`, what *p holds, and `operand`; it is computed
 * once, under the lock, and must use no stripe of the same array. It is for types that CUA_DEFINE_ATOMIC of
 * atomic.h cannot do; all access to an object while others use it goes through these functions,
 * those below, or sections on the same stripes, never through cua_atomic_*.
 *
 * CUA_DEFINE_ATOMIC_STRIPED_TYPE(prefix, type)
 *
 * Defines in the same way, each with an _explicit form that takes order and scope at the end,
 *
 *   type prefix_load(struct cua_stripes stripes, const type *p)
 *   void prefix_store(struct cua_stripes stripes, type *p, type v)
 *   type prefix_exchange(struct cua_stripes stripes, type *p, type v)                      returns what *p was
 *   type prefix_compare_exchange(struct cua_stripes stripes, type *p, type expected, type desired)
 *                             desired if *p has the bytes of expected, else no change; returns what *p was
 *
 * Bytes are compared, so floats as bits, and padding too. Copies need not keep padding: a type for
 * compare_exchange has none, with members of its own, always set, in its place.
 */
#define CUA_DEFINE_ATOMIC_STRIPED(name, type, expression)                                          \
	CUA_FORCE type cua__striped_next_##name(type old, type operand)                            \
	{                                                                                          \
		(void)old;                                                                         \
		(void)operand;                                                                     \
		return (expression);                                                               \
	}                                                                                          \
	CUA_FN type name##_explicit(struct cua_stripes stripes, type *p, type operand,             \
				    enum cua_order order, enum cua_scope scope)                    \
	{                                                                                          \
		struct cua_spinlock *l = cua_stripes_at(&stripes, p);                              \
		type old, next;                                                                    \
                                                                                                   \
		cua__striped_fence(order, scope);                                                  \
		cua_spinlock_lock_scope(l, scope);                                                 \
		old = CUA_READ(*p);                                                                \
		next = cua__striped_next_##name(old, operand);                                     \
		CUA_WRITE(*p, next);                                                               \
		cua_spinlock_unlock_scope(l, scope);                                               \
		cua__striped_fence(order, scope);                                                  \
		return old;                                                                        \
	}                                                                                          \
	CUA_FN type name(struct cua_stripes stripes, type *p, type operand)                        \
	{                                                                                          \
		return name##_explicit(stripes, p, operand, CUA_RELAXED, CUA_SCOPE_DEVICE);        \
	}

#define CUA_DEFINE_ATOMIC_STRIPED_TYPE(prefix, type)                                               \
	CUA_FN type prefix##_load_explicit(struct cua_stripes stripes, const type *p,              \
					   enum cua_order order, enum cua_scope scope)             \
	{                                                                                          \
		struct cua_spinlock *l = cua_stripes_at(&stripes, p);                              \
		type v;                                                                            \
                                                                                                   \
		cua__striped_fence(order, scope);                                                  \
		cua_spinlock_lock_scope(l, scope);                                                 \
		v = CUA_READ(*p);                                                                  \
		cua_spinlock_unlock_scope(l, scope);                                               \
		cua__striped_fence(order, scope);                                                  \
		return v;                                                                          \
	}                                                                                          \
	CUA_FN type prefix##_load(struct cua_stripes stripes, const type *p)                       \
	{                                                                                          \
		return prefix##_load_explicit(stripes, p, CUA_RELAXED, CUA_SCOPE_DEVICE);          \
	}                                                                                          \
	CUA_DEFINE_ATOMIC_STRIPED(prefix##_exchange, type, operand)                                \
	CUA_FN void prefix##_store_explicit(struct cua_stripes stripes, type *p, type v,           \
					    enum cua_order order, enum cua_scope scope)            \
	{                                                                                          \
		(void)prefix##_exchange_explicit(stripes, p, v, order, scope);                     \
	}                                                                                          \
	CUA_FN void prefix##_store(struct cua_stripes stripes, type *p, type v)                    \
	{                                                                                          \
		prefix##_store_explicit(stripes, p, v, CUA_RELAXED, CUA_SCOPE_DEVICE);             \
	}                                                                                          \
	CUA_FN type prefix##_compare_exchange_explicit(struct cua_stripes stripes, type *p,        \
						       type expected, type desired,                \
						       enum cua_order order, enum cua_scope scope) \
	{                                                                                          \
		struct cua_spinlock *l = cua_stripes_at(&stripes, p);                              \
		type old;                                                                          \
                                                                                                   \
		cua__striped_fence(order, scope);                                                  \
		cua_spinlock_lock_scope(l, scope);                                                 \
		old = CUA_READ(*p);                                                                \
		if (cua__striped_equal(&old, &expected, sizeof(old)))                              \
			CUA_WRITE(*p, desired);                                                    \
		cua_spinlock_unlock_scope(l, scope);                                               \
		cua__striped_fence(order, scope);                                                  \
		return old;                                                                        \
	}                                                                                          \
	CUA_FN type prefix##_compare_exchange(struct cua_stripes stripes, type *p, type expected,  \
					      type desired)                                        \
	{                                                                                          \
		return prefix##_compare_exchange_explicit(stripes, p, expected, desired,           \
							  CUA_RELAXED, CUA_SCOPE_DEVICE);          \
	}

/* ---- host calls ---- */

/*
 * n free stripes in the memory of the context's backend, and their release, which clears the view. NULL, and a
 * view whose locks are NULL, are allowed in destroy. For stripes that host and device share, take
 * cua_alloc_system and cua_stripes_init in place of create.
 * Errors: NULL, VALUE (n = 0), SIZE, NO_MEMORY, CAPTURE; destroy: LAYOUT, and those of cua_free.
 */
CUA__HOST_FN enum cua_status cua_stripes_create(struct cua_context *ctx, size_t n,
						struct cua_stripes *stripes)
{
	enum cua_status status;
	void *p = NULL;

	if (!ctx || !stripes)
		return CUA_ERROR_NULL;
	if (!n)
		return CUA_ERROR_VALUE;
	status = cua_alloc_zero(ctx, n, sizeof(struct cua_stripe), &p);
	if (!status)
		status = cua_stripes_init((struct cua_stripe *)p, n, stripes);
	return status;
}

CUA__HOST_FN enum cua_status cua_stripes_destroy(struct cua_context *ctx,
						 struct cua_stripes *stripes)
{
	enum cua_status status;

	if (!ctx)
		return CUA_ERROR_NULL;
	if (!stripes || !stripes->locks)
		return CUA_OK;
	if (stripes->layout != CUA_STRIPES_LAYOUT)
		return CUA_ERROR_LAYOUT;
	status = cua_free(ctx, stripes->locks);
	if (!status)
		memset((void *)stripes, 0, sizeof(*stripes));
	return status;
}

#endif /* CUATOMIC_STRIPE_H */
