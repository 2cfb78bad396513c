/* SPDX-License-Identifier: MIT */
/*
 * Lock stripes: an array of locks for objects that contain no lock. A hash of the object's address
 * selects its lock (its stripe). From stripes, this header also makes atomic operations on objects
 * wider than the machine's compare-and-swap.
 *
 * Source: lock striping as in java.util.concurrent's ConcurrentHashMap, Lea, 2004. Atomics by a
 * table of locks: the C11 libraries, for objects that are not lock-free. Here the caller owns the
 * table, so no lock is shared between unrelated programs or streams.
 *
 * Synchronization of two operations on objects with the same stripe. X: the caller must order the
 * operations. -: the operations may run concurrently, and the critical sections and striped atomics
 * of the stripe run one after another. "init" is cua_stripe_init; cua_stripes_init accesses no
 * stripe. A plain access is an access to the object by a thread that does not hold its stripe.
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
 * Scope: the device. The _scope and _explicit forms take CUA_SCOPE_BLOCK (stripes in shared
 *   memory), _DEVICE or _SYSTEM. All users of an array must name a scope that includes all of them.
 * Memory order: locking a stripe acquires the accesses that its last unlock released. A striped
 *   atomic of any order acquires and releases, at its scope. With CUA_SEQ_CST, a fence of that
 *   order also precedes and follows it.
 * Progress: blocking, not fair, as spinlock.h. Two objects may have the same stripe. So a lane that
 *   holds a stripe must not wait for another object's stripe, but lock both with lock_two. Nor may
 *   it use a striped atomic on the same array.
 * Argument: an address has the same stripe in all copies of a view. So two users of an object use
 *   the same lock, and the argument of spinlock.h applies. lock_two locks the lower stripe first.
 *   So a lane that waits for its second stripe holds a lower stripe only, and a cycle of waiters is
 *   impossible. If both objects have the same stripe, it is locked once.
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

/*
 * A lock for each 32-byte sector, so that waiters for a lock do not slow the holder of another
 * lock.
 */
struct __attribute__((aligned(32))) cua_stripe {
	struct cua_spinlock lock;
	uint32_t reserved[7];
};
CUA_STATIC_ASSERT(sizeof(struct cua_stripe) == 32, "the stripe is ABI");

/* The value of a free stripe. Zeroed memory is an array of free stripes. */
#define CUA_STRIPE_INIT                                                                            \
	{                                                                                          \
		CUA_SPINLOCK_INIT,                                                                 \
		{                                                                                  \
			0, 0, 0, 0, 0, 0, 0                                                        \
		}                                                                                  \
	}

/*
 * The view, passed to kernels by value. All users of an object must use the same array with the
 * same n. They must pass the same address, that of the object's first byte. So the object must not
 * be in memory that different users map at different addresses.
 */
struct cua_stripes {
	struct cua_stripe *locks;
	uint64_t n;
	uint32_t layout;
	uint32_t reserved; /* 0 */
};
CUA_STATIC_ASSERT(sizeof(struct cua_stripes) == sizeof(void *) + 16, "the view is ABI");

/* Makes a stripe free, regardless of its old contents. No thread may be using it. */
CUA_FN void cua_stripe_init(struct cua_stripe *stripe)
{
	cua_spinlock_init(&stripe->lock);
	memset((void *)stripe, 0, sizeof(*stripe));
}

/*
 * Makes a view of n stripes in the caller's memory, on the host or in a kernel. The call does not
 * access the stripes: they must be free already, as zeroed memory is, and may be memory that the
 * caller cannot access. n is 1 or more and need not be a power of two. A few times the number of
 * running lanes is enough.
 * Errors: NULL, VALUE (n = 0), SIZE (n stripes are more than an address can count), ALIGNMENT (32
 *   bytes).
 */
CUA_FN enum cua_status cua_stripes_init(struct cua_stripe *locks, uint64_t n,
					struct cua_stripes *stripes)
{
	if (!locks || !stripes)
		return CUA_ERROR_NULL;
	if (!n)
		return CUA_ERROR_VALUE;
	if (n > (size_t)-1 / 2 / sizeof(*locks))
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

/* The object's lock, for calls of spinlock.h. */
CUA_FORCE struct cua_spinlock *cua_stripes_at(const struct cua_stripes *s, const void *p)
{
	return &s->locks[cua_stripes_index(s, p)].lock;
}

/*
 * Locks the object's stripe if it is free, without waiting. Returns 1 if it locked the stripe, else
 * 0.
 */
CUA_FORCE int cua_stripes_trylock_scope(const struct cua_stripes *s, const void *p,
					enum cua_scope scope)
{
	return cua_spinlock_trylock_scope(cua_stripes_at(s, p), scope);
}

/* Locks the object's stripe. Waits as long as another thread holds it. */
CUA_FORCE void cua_stripes_lock_scope(const struct cua_stripes *s, const void *p,
				      enum cua_scope scope)
{
	cua_spinlock_lock_scope(cua_stripes_at(s, p), scope);
}

/* Tries for about ns nanoseconds, at least once. Returns 1 if it locked the stripe, else 0. */
CUA_FORCE int cua_stripes_lock_for_scope(const struct cua_stripes *s, const void *p, uint64_t ns,
					 enum cua_scope scope)
{
	return cua_spinlock_lock_for_scope(cua_stripes_at(s, p), ns, scope);
}

/* Unlocks the object's stripe. Only its holder may call this. */
CUA_FORCE void cua_stripes_unlock_scope(const struct cua_stripes *s, const void *p,
					enum cua_scope scope)
{
	cua_spinlock_unlock_scope(cua_stripes_at(s, p), scope);
}

/*
 * Whether any thread holds the object's stripe at this moment. This is a hint and orders nothing.
 */
CUA_FORCE int cua_stripes_locked_scope(const struct cua_stripes *s, const void *p,
				       enum cua_scope scope)
{
	return cua_spinlock_locked_scope(cua_stripes_at(s, p), scope);
}

/*
 * Locks the stripes of two objects, in array order, the same for all callers. A shared stripe is
 * locked once.
 */
CUA_FORCE void cua_stripes_lock_two_scope(const struct cua_stripes *s, const void *p, const void *q,
					  enum cua_scope scope)
{
	uint64_t i = cua_stripes_index(s, p), j = cua_stripes_index(s, q);

	cua_spinlock_lock_scope(&s->locks[i < j ? i : j].lock, scope);
	if (i != j)
		cua_spinlock_lock_scope(&s->locks[i < j ? j : i].lock, scope);
}

/* Unlocks the stripes that lock_two locked for the same objects, given in either order. */
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
 * Runs the block once for every lane, under the object's stripe, even if the warp has diverged.
 * Every jump out of the block unlocks, as in CUA_WITH_LOCK of spinlock.h. The stripes and p are
 * evaluated once. CUA_WITH_STRIPE_SCOPE(&stripes, p, scope) is the same at another scope.
 */
#define CUA_WITH_STRIPE_SCOPE(stripes, p, scope)                                                   \
	CUA_WITH_LOCK_SCOPE (cua_stripes_at((stripes), (p)), scope)
#define CUA_WITH_STRIPE(stripes, p) CUA_WITH_STRIPE_SCOPE (stripes, p, CUA_SCOPE_DEVICE)

/* ---- atomic operations on objects of any size ---- */

/* For CUA_SEQ_CST: the fence before and after the critical section. */
CUA_FORCE void cua__striped_fence(enum cua_order order, enum cua_scope scope)
{
	if (order == CUA_SEQ_CST)
		cua_port_fence(CUA_SEQ_CST, scope);
}

/* Whether two objects have the same bytes. */
CUA_FORCE int cua__striped_equal(const void *a, const void *b, size_t bytes)
{
	/*
	 * a constant for each type, so that no compiler warns that the second loop reads beyond the
	 * object
	 */
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
 *                      enum cua_scope scope, enum cua_space space)
 *
 * for a type of any size that can be copied. Both set *p to the value of the expression in a single
 * indivisible step and return the old value. The second form, _explicit, takes order, scope and
 * space at the end, as in atomic.h. The space has no effect: a critical section accesses the object
 * by plain loads and stores. The expression uses `old`, the value of *p, and `operand`. It is
 * evaluated once, under the lock, and must use no stripe of the same array. These functions are for
 * types that CUA_DEFINE_ATOMIC of atomic.h does not support. While other threads use an object,
 * access it only through these functions, the functions below, or sections on the same stripes,
 * never through cua_atomic_*.
 *
 * CUA_DEFINE_ATOMIC_STRIPED_TYPE(prefix, type)
 *
 * Defines in the same way, each with an _explicit form,
 *
 *   type prefix_load(struct cua_stripes stripes, const type *p)
 *   void prefix_store(struct cua_stripes stripes, type *p, type v)
 *   type prefix_exchange(struct cua_stripes stripes, type *p, type v)
 *     Returns the old value.
 *   type prefix_compare_exchange(struct cua_stripes stripes, type *p, type expected, type desired)
 *     Sets *p to desired if *p has the bytes of expected. Returns the old value.
 *
 * compare_exchange compares bytes: floats as bits, and padding too. C does not guarantee that
 * copies preserve padding. So a type for compare_exchange must have no padding; fill gaps with
 * members that are always set.
 */
#define CUA_DEFINE_ATOMIC_STRIPED(name, type, expression)                                          \
	CUA_FORCE type cua__striped_next_##name(type old, type operand)                            \
	{                                                                                          \
		(void)old;                                                                         \
		(void)operand;                                                                     \
		return (expression);                                                               \
	}                                                                                          \
	CUA_FN type name##_explicit(struct cua_stripes stripes, type *p, type operand,             \
				    enum cua_order order, enum cua_scope scope,                    \
				    enum cua_space space)                                          \
	{                                                                                          \
		struct cua_spinlock *l = cua_stripes_at(&stripes, p);                              \
		type old, next;                                                                    \
                                                                                                   \
		(void)space;                                                                       \
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
		return name##_explicit(stripes, p, operand, CUA_RELAXED, CUA_SCOPE_DEVICE,         \
				       CUA_SPACE_GENERIC);                                         \
	}

#define CUA__DEFINE_STRIPED_COMPARE_EXCHANGE(name, type)                                           \
	CUA_FN type name##_explicit(struct cua_stripes stripes, type *p, type expected,            \
				    type desired, enum cua_order order, enum cua_scope scope,      \
				    enum cua_space space)                                          \
	{                                                                                          \
		struct cua_spinlock *l = cua_stripes_at(&stripes, p);                              \
		type old;                                                                          \
                                                                                                   \
		(void)space;                                                                       \
		cua__striped_fence(order, scope);                                                  \
		cua_spinlock_lock_scope(l, scope);                                                 \
		old = CUA_READ(*p);                                                                \
		if (cua__striped_equal(&old, &expected, sizeof(old)))                              \
			CUA_WRITE(*p, desired);                                                    \
		cua_spinlock_unlock_scope(l, scope);                                               \
		cua__striped_fence(order, scope);                                                  \
		return old;                                                                        \
	}                                                                                          \
	CUA_FN type name(struct cua_stripes stripes, type *p, type expected, type desired)         \
	{                                                                                          \
		return name##_explicit(stripes, p, expected, desired, CUA_RELAXED,                 \
				       CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);                       \
	}

#define CUA_DEFINE_ATOMIC_STRIPED_TYPE(prefix, type)                                               \
	CUA_FN type prefix##_load_explicit(struct cua_stripes stripes, const type *p,              \
					   enum cua_order order, enum cua_scope scope,             \
					   enum cua_space space)                                   \
	{                                                                                          \
		struct cua_spinlock *l = cua_stripes_at(&stripes, p);                              \
		type v;                                                                            \
                                                                                                   \
		(void)space;                                                                       \
		cua__striped_fence(order, scope);                                                  \
		cua_spinlock_lock_scope(l, scope);                                                 \
		v = CUA_READ(*p);                                                                  \
		cua_spinlock_unlock_scope(l, scope);                                               \
		cua__striped_fence(order, scope);                                                  \
		return v;                                                                          \
	}                                                                                          \
	CUA_FN type prefix##_load(struct cua_stripes stripes, const type *p)                       \
	{                                                                                          \
		return prefix##_load_explicit(stripes, p, CUA_RELAXED, CUA_SCOPE_DEVICE,           \
					      CUA_SPACE_GENERIC);                                  \
	}                                                                                          \
	CUA_DEFINE_ATOMIC_STRIPED(prefix##_exchange, type, operand)                                \
	CUA_FN void prefix##_store_explicit(struct cua_stripes stripes, type *p, type v,           \
					    enum cua_order order, enum cua_scope scope,            \
					    enum cua_space space)                                  \
	{                                                                                          \
		(void)prefix##_exchange_explicit(stripes, p, v, order, scope, space);              \
	}                                                                                          \
	CUA_FN void prefix##_store(struct cua_stripes stripes, type *p, type v)                    \
	{                                                                                          \
		prefix##_store_explicit(stripes, p, v, CUA_RELAXED, CUA_SCOPE_DEVICE,              \
					CUA_SPACE_GENERIC);                                        \
	}                                                                                          \
	CUA__DEFINE_STRIPED_COMPARE_EXCHANGE(prefix##_compare_exchange, type)

/* ---- host calls ---- */

/*
 * create allocates n free stripes in the memory of the context's backend. destroy frees them and
 * clears the view; it accepts NULL, and a view with NULL locks. For stripes that host and device
 * share, use cua_alloc_system and cua_stripes_init instead of create.
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
