/* SPDX-License-Identifier: MIT */
/*
 * An append buffer: an array of a fixed capacity that many threads fill concurrently through a
 * shared cursor.
 *
 * Source: the consume/append buffers of graphics pipelines, and the textbooks' stream compaction by
 * an atomic counter. A single atomic for all lanes of a warp is the warp-aggregated increment. In
 * addition, a full buffer is not the writer's error here. Nothing is ever stored past the capacity,
 * and the cursor keeps counting. So the demand is the capacity that a retry needs.
 *
 * Synchronization of two operations on the same buffer. X: the caller must order the operations.
 * -: the operations may run concurrently.
 *
 *               reserve  push  store to at()  load of items  reset
 *     reserve      -      -          -              -          X
 *     push         -      -          -              X          X
 *     store        -      -          X (1)          X          X
 *     load         -      X          X              -          X
 *     reset        X      X          X              X          X
 *
 *     (1) only if both store to the same offset; each offset is reserved for a single caller.
 *     To order a load after a push: the end of the kernel, or a release by the writer and an
 *     acquire by the reader. The stream of the buffer's context orders the host calls below. A
 *     kernel that uses the view is ordered with these calls if it is launched in that stream,
 *     cua_context_stream.
 *
 * Scope: the device. On the host, all threads.
 * Memory order: relaxed. The cursor assigns offsets and publishes no items.
 * Progress: reserve and push are wait-free if the machine has a fetch-and-add. Any lane of a
 *   diverged warp may call them. All lanes of a mask call push_warp together.
 * Argument: between two resets the cursor only grows, by fetch-and-add. So all assigned ranges are
 *   disjoint, and an offset below the capacity has exactly one owner. Only the owner stores there.
 *   The demand never rolls back, so it is the sum of all requests, stored or not. It has 64 bits:
 *   the requests between two resets must add up to less than 2^64.
 */
#ifndef CUATOMIC_APPEND_H
#define CUATOMIC_APPEND_H

#include <cuatomic/atomic_warp.h>
#include <cuatomic/context.h>
#include <cuatomic/port.h>
#include <cuatomic/status.h>
#include <cuatomic/types.h>

/* The host's handle; opaque. */
struct cua_append;

/* The cursor, in the backend's memory. On a GPU it must be in global memory, not shared memory. */
struct cua_append_cursor {
	uint64_t demand; /* items requested since the last reset, stored or not */
};
CUA_STATIC_ASSERT(sizeof(struct cua_append_cursor) == 8, "the cursor is ABI");

#define CUA_APPEND_LAYOUT 1u

/* The buffer as the backend addresses it; passed by value to kernels and host threads. */
struct cua_append_view {
	void *items; /* 256-byte aligned */
	struct cua_append_cursor *cursor;
	uint64_t capacity;  /* items */
	uint64_t item_size; /* bytes */
	uint32_t layout;    /* CUA_APPEND_LAYOUT */
	uint32_t reserved;  /* 0 */
};
CUA_STATIC_ASSERT(sizeof(struct cua_append_view) == 24 + 2 * sizeof(void *), "the view is ABI");

/* The cursor of an empty buffer; zeroed memory is equivalent. */
#define CUA_APPEND_CURSOR_INIT                                                                     \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Reserves n offsets and returns the first. Offsets at or above the capacity have no room in the
 * buffer.
 */
CUA_FORCE uint64_t cua_append_reserve(const struct cua_append_view *view, uint64_t n)
{
	return cua_port_fetch_add_u64(&view->cursor->demand, n, CUA_RELAXED, CUA_SCOPE_DEVICE,
				      CUA_SPACE_GLOBAL);
}

/* The address of the item at this offset, or NULL if index is not below the capacity. */
CUA_FORCE void *cua_append_at(const struct cua_append_view *view, uint64_t index)
{
	if (index >= view->capacity)
		return NULL;
	return (char *)view->items + index * view->item_size;
}

/*
 * One reservation for the lanes of mask whose predicate is not 0. All lanes of mask, and no other
 * lanes, call it together with the same mask. Returns this lane's offset; it is meaningless if the
 * lane's predicate is 0.
 */
CUA_FORCE uint64_t cua_append_reserve_warp(const struct cua_append_view *view, uint32_t mask,
					   int predicate)
{
	uint32_t votes = cua_port_ballot(mask, predicate != 0);
	uint32_t lane = cua_port_lane(), leader;
	uint64_t first = 0;

	if (votes == 0)
		return 0;
	leader = cua_port_ffs_u32(votes) - 1;
	if (lane == leader)
		first = cua_append_reserve(view, cua_port_popc_u32(votes));
	first = cua_port_shuffle_u64(mask, first, leader);
	return first + cua_port_popc_u32(votes & (((uint32_t)1 << lane) - 1));
}

/*
 * One reservation of n offsets for each thread of a block; n may differ between threads. All
 * threads of the block call it together. Returns the caller's first offset. The threads' ranges are
 * consecutive, in ascending order of thread numbers. scratch is shared memory of the block, without
 * initialization; it may be used again as soon as the call returns.
 */
CUA_FORCE uint64_t cua_append_reserve_block(const struct cua_append_view *view, uint64_t n,
					    struct cua_block_scratch *scratch)
{
	return cua_atomic_fetch_add_block_explicit_u64(&view->cursor->demand, n, scratch,
						       CUA_RELAXED, CUA_SCOPE_DEVICE,
						       CUA_SPACE_GENERIC);
}

/*
 * Appends an item of the buffer's item size. Returns 1 if it was stored, 0 if the buffer is full.
 */
CUA_FN int cua_append_push(const struct cua_append_view *view, const void *item)
{
	void *at = cua_append_at(view, cua_append_reserve(view, 1));

	if (!at)
		return 0;
	memcpy(at, item, (size_t)view->item_size);
	return 1;
}

/*
 * CUA_DEFINE_APPEND(name, T) defines two functions for items of type T. The size of T is the
 * buffer's item size. For a buffer with another item size or an unknown layout, they reserve and
 * store nothing.
 *
 *     int cua_append_push_name(const struct cua_append_view *view, T v)
 *         appends v. Returns 1 if it was stored, 0 if the buffer is full or does not fit T.
 *     int cua_append_push_warp_name(const struct cua_append_view *view, uint32_t mask,
 *                                   int predicate, T v)
 *         called by all lanes of mask together: appends the v of each lane with a nonzero predicate,
 *         with a single atomic for all of them. Returns 1 if this lane's v was stored, else 0.
 */
#define CUA__APPEND_FITS(view, T)                                                                  \
	((view)->item_size == sizeof(T) && (view)->layout == CUA_APPEND_LAYOUT)
#define CUA_DEFINE_APPEND(name, T)                                                                 \
	CUA_FN int cua_append_push_##name(const struct cua_append_view *view, T v)                 \
	{                                                                                          \
		uint64_t index;                                                                    \
                                                                                                   \
		if (!CUA__APPEND_FITS(view, T))                                                    \
			return 0;                                                                  \
		index = cua_append_reserve(view, 1);                                               \
		if (index >= view->capacity)                                                       \
			return 0;                                                                  \
		CUA_WRITE(((T *)view->items)[index], v);                                           \
		return 1;                                                                          \
	}                                                                                          \
	CUA_FN int cua_append_push_warp_##name(const struct cua_append_view *view, uint32_t mask,  \
					       int predicate, T v)                                 \
	{                                                                                          \
		uint64_t index;                                                                    \
                                                                                                   \
		if (!CUA__APPEND_FITS(view, T))                                                    \
			return 0;                                                                  \
		index = cua_append_reserve_warp(view, mask, predicate);                            \
		if (!predicate || index >= view->capacity)                                         \
			return 0;                                                                  \
		CUA_WRITE(((T *)view->items)[index], v);                                           \
		return 1;                                                                          \
	}

CUA_DEFINE_APPEND(u32, uint32_t)
CUA_DEFINE_APPEND(i32, int32_t)
CUA_DEFINE_APPEND(u64, uint64_t)
CUA_DEFINE_APPEND(i64, int64_t)
CUA_DEFINE_APPEND(f32, float)
CUA_DEFINE_APPEND(f64, double)

/*
 * Reserves offsets for the *used items of a stage. The whole block calls. Returns the first offset,
 * and limits *used to the offsets that have room in the buffer.
 */
CUA_FORCE uint64_t cua__append_stage_reserve(const struct cua_append_view *view,
					     uint64_t *stage_first, uint32_t *used)
{
	uint64_t first;

	if (cua_port_thread() == 0)
		CUA_WRITE(*stage_first, *used ? cua_append_reserve(view, *used) : 0);
	cua_port_sync_block();
	first = CUA_READ(*stage_first);
	if (first > view->capacity)
		first = view->capacity;
	if (*used > view->capacity - first)
		*used = (uint32_t)(view->capacity - first);
	return first;
}

#define CUA__DEFINE_APPEND_STAGE_PUSH(name, T, room)                                               \
	struct cua_append_stage_##name {                                                           \
		uint64_t first;                                                                    \
		uint32_t used; /* counts also items that did not fit */                            \
		T items[room];                                                                     \
	};                                                                                         \
	CUA_FN void cua_append_stage_init_##name(struct cua_append_stage_##name *stage)            \
	{                                                                                          \
		if (cua_port_thread() == 0)                                                        \
			CUA_WRITE(stage->used, 0);                                                 \
		cua_port_sync_block();                                                             \
	}                                                                                          \
	CUA_FORCE void cua_append_stage_push_##name(const struct cua_append_view *view,            \
						    struct cua_append_stage_##name *stage, T v)    \
	{                                                                                          \
		uint32_t at = cua_port_fetch_add_u32(&stage->used, 1, CUA_RELAXED,                 \
						     CUA_SCOPE_BLOCK, CUA_SPACE_SHARED);           \
		uint64_t index;                                                                    \
                                                                                                   \
		if (at < (room)) {                                                                 \
			CUA_WRITE(stage->items[at], v);                                            \
			return;                                                                    \
		}                                                                                  \
		if (!CUA__APPEND_FITS(view, T))                                                    \
			return;                                                                    \
		index = cua_append_reserve(view, 1);                                               \
		if (index < view->capacity)                                                        \
			CUA_WRITE(((T *)view->items)[index], v);                                   \
	}

#define CUA__DEFINE_APPEND_STAGE_MAKE_ROOM(name, T, room)                                          \
	CUA_FN void cua_append_stage_make_room_##name(const struct cua_append_view *view,          \
						      struct cua_append_stage_##name *stage,       \
						      uint32_t n)                                  \
	{                                                                                          \
		uint32_t used, skip, i, threads = cua_port_block_size();                           \
		uint64_t first;                                                                    \
                                                                                                   \
		cua_port_sync_block();                                                             \
		used = CUA_READ(stage->used);                                                      \
		if (used > (room)-n && used) {                                                     \
			if (used > (room))                                                         \
				used = (room);                                                     \
			if (!CUA__APPEND_FITS(view, T))                                            \
				used = 0;                                                          \
			first = cua__append_stage_reserve(view, &stage->first, &used);             \
			/* a warp begins at the start of a line, if lines hold whole items */      \
			skip = (uint32_t)(first % (sizeof(T) < 128 ? 128 / sizeof(T) : 1));        \
			for (i = cua_port_thread(); i < used + skip; i += threads)                 \
				if (i >= skip)                                                     \
					CUA_WRITE(((T *)view->items)[first + (i - skip)],          \
						  CUA_READ(stage->items[i - skip]));               \
			if (cua_port_thread() == 0)                                                \
				CUA_WRITE(stage->used, 0);                                         \
		}                                                                                  \
		/* no thread pushes before all threads have read the number of items */            \
		cua_port_sync_block();                                                             \
	}

/*
 * CUA_DEFINE_APPEND_STAGE(name, T, room) defines `struct cua_append_stage_name`, a stage in the
 * shared memory of a block. It collects up to `room` items of type T. A flush moves them to the
 * buffer with a single atomic operation on its cursor, and with stores of whole lines:
 *
 *     __shared__ struct cua_append_stage_numbers stage;
 *
 *     cua_append_stage_init_numbers(&stage);
 *     for (...) {
 *             cua_append_stage_make_room_numbers(&view, &stage, n);  n: most items until next call
 *             if (...)
 *                     cua_append_stage_push_numbers(&view, &stage, v);
 *     }
 *     cua_append_stage_flush_numbers(&view, &stage);
 *
 * All threads of the block call init, make_room and flush together; these contain barriers.
 * make_room flushes the stage if it has no room for n more items, n <= room. With room for 2n items
 * it flushes half as often as with room for n.
 *
 * Any lane of any warp may call push, diverged or not. An item that does not fit the stage goes
 * directly to the buffer, so a wrong n costs only speed. Staged items count in the buffer's demand
 * when they are flushed. Only threads of one block use a stage. The memory order is relaxed, as for
 * the buffer. If the buffer's item size is not that of T, all items are dropped and not counted.
 */
#define CUA_DEFINE_APPEND_STAGE(name, T, room)                                                     \
	CUA__DEFINE_APPEND_STAGE_PUSH(name, T, room)                                               \
	CUA__DEFINE_APPEND_STAGE_MAKE_ROOM(name, T, room)                                          \
	CUA_FN void cua_append_stage_flush_##name(const struct cua_append_view *view,              \
						  struct cua_append_stage_##name *stage)           \
	{                                                                                          \
		cua_append_stage_make_room_##name(view, stage, (room));                            \
	}

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Host calls. Errors are listed without CUA_ERROR_. On the CUDA backend, CUA_ERROR_CUDA is possible
 * too, except from get_view and items. context.h has the rules for all host calls.
 */

/*
 * Creates an empty buffer for `capacity` items of item_size bytes each, in the memory of the
 * context's backend. With capacity 0 the buffer only counts.
 * Errors: NULL, VALUE (item_size = 0), SIZE (the product overflows), NO_MEMORY, CAPTURE.
 */
CUA_API enum cua_status cua_append_create(struct cua_context *ctx, size_t item_size,
					  uint64_t capacity, struct cua_append **buffer);
/* Frees the buffer once the device has finished with it; NULL is allowed. Errors: CAPTURE. */
CUA_API enum cua_status cua_append_destroy(struct cua_append *buffer);

/* The view for kernels; valid until the buffer is destroyed. Errors: NULL. */
CUA_API enum cua_status cua_append_get_view(const struct cua_append *buffer,
					    struct cua_append_view *view);
/* The items, in backend memory: the first cua_append_size of them are stored. Errors: NULL. */
CUA_API enum cua_status cua_append_items(const struct cua_append *buffer, void **items);

/* Empties the buffer, in stream order. Errors: NULL. */
CUA_API enum cua_status cua_append_reset(struct cua_append *buffer);

/*
 * demand: the number of items requested since the last reset. size: the number of items stored,
 * min(demand, capacity). Each result may be in backend memory: see context.h.
 * Errors: NULL, ALIGNMENT, CAPTURE, MEMORY_KIND, OVERLAP (the result overlaps the buffer).
 */
CUA_API enum cua_status cua_append_demand(struct cua_append *buffer, uint64_t *demand);
CUA_API enum cua_status cua_append_size(struct cua_append *buffer, uint64_t *size);

/*
 * CUA_ERROR_FULL if the demand exceeds the capacity, until the next reset; else CUA_OK. Waits for
 * the stream. Other errors: NULL, CAPTURE.
 */
CUA_API enum cua_status cua_append_status(struct cua_append *buffer);

/*
 * Copies the first stored items, at most max_items, to dst (host or backend memory). *n receives
 * the number of items copied. Waits for the stream. dst may be NULL if max_items is 0.
 * Errors: NULL, ALIGNMENT (n), CAPTURE, MEMORY_KIND, OVERLAP (dst or n with the buffer or each
 * other).
 */
CUA_API enum cua_status cua_append_read(struct cua_append *buffer, void *dst, size_t max_items,
					uint64_t *n);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_APPEND_H */
