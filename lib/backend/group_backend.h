/* SPDX-License-Identifier: MIT */
/*
 * A group of contexts, and the functions of a backend that order and copy between the contexts of a
 * process.
 */
#ifndef CUATOMIC_BACKEND_GROUP_BACKEND_H
#define CUATOMIC_BACKEND_GROUP_BACKEND_H

#include "backend/reduce_backend.h"
#include "kernels/exact_windows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A local rank during a collective call. */
struct cua__group_part {
	struct cua__call call;
	struct cua__reduce reduce;
	struct cua__exact exact;
	char *slots; /* memory of the backend, CUA__GROUP_SLOTS times the values of all ranks */
	/* of a call that gathers values, in a slot */
	char *mine; /* the values of this rank; if all ranks are local, their place in all */
	char *all;  /* the values of all ranks, in their order */
	/* of a sum of arrays */
	void *array;
	char *window; /* scratch memory, sum_scratch bytes */
};

/*
 * Ranks of a process read each other's values in slots. Calls that use slots alternate between two, and
 * each has a barrier before these reads. So a rank writes a slot again only after the barrier of the call
 * between, and that barrier follows all reads of the slot. In a graph the streams of all ranks join
 * and leave at each call, and the caller orders the graph with other work of the ranks.
 */
#define CUA__GROUP_SLOTS 2u

/* Each rank shows its record to all ranks, before a collective call begins its work. */
struct cua__group_record {
	int32_t status;
	int32_t call; /* enum cua__group_call */
	int32_t arguments[4];
	uint64_t n;
};

enum cua__group_call {
	CUA__GROUP_REDUCE = 1,
	CUA__GROUP_SUM = 2,
	CUA__GROUP_CREATE_MAP = 3,
	CUA__GROUP_SHARDED = 4,
	CUA__GROUP_LOAD_MAP = 5
};

/* The most numbers that a transport adds up in one call. */
#define CUA__GROUP_WORDS ((size_t)256 << 10)

/* A node of a list of memory that is never freed. */
struct cua__kept {
	struct cua__kept *next;
};

struct cua_group {
	uint32_t size, first, local;
	struct cua_context **contexts; /* of the local ranks */
	int has_transport;             /* 0: all ranks are local */
	struct cua_transport transport;
	enum cua_status broken; /* the status of all later calls, if not OK */
	uint32_t maps;          /* sharded maps that were created */
	struct cua__kept kept;  /* of a broken group that was destroyed */
	unsigned slot;          /* of the next call */
	size_t slot_bytes;
	void **events; /* of a backend with streams: an event for each local rank */
	int all_peers; /* each device can access the memory of each other device */
	int forked;    /* the streams of the other ranks have joined a capture */
	/* host memory that a transport reads and writes in place of a GPU's, or NULL */
	char *staging;
	/*
	 * host memory of a group with a transport, for sums: CUA__GROUP_WORDS numbers, and as many
	 * and one for each rank that are received
	 */
	uint64_t *words;
	struct cua__group_part *parts;            /* of the local ranks */
	struct cua__group_record *mine, *records; /* of the local ranks, and of all ranks */
	size_t *bytes;                            /* that each rank passes to all ranks */
	/* arguments of exchange */
	const void **send;
	void **receive;
	size_t *send_bytes, *receive_bytes;
};

/*
 * An exchange of arrays in the memory of the contexts: local rank i sends send_bytes[k] bytes at send[k]
 * to rank r, and receives receive_bytes[k] bytes from it at receive[k], where k is i * size + r. A
 * message has the same size on both sides.
 */
struct cua__group_traffic {
	const char **send;
	char **receive;
	size_t *send_bytes, *receive_bytes;
	int of_context; /* with a transport: the arrays are memory of a GPU, else of the host */
	/*
	 * if the transport does not access that memory: host memory for all that is sent, and then for
	 * all that is received
	 */
	char *staging;
};

struct cua__group_ops {
	enum cua_status (*open)(struct cua_group *g);
	void (*close)(struct cua_group *g);
	/*
	 * Enclose a call. If all ranks are local, begin lets the streams of all ranks join a capture
	 * of the stream of rank 0, and end lets the work of the other streams join that of rank 0
	 * again. After an error of begin there is no end. Errors: CAPTURE.
	 */
	enum cua_status (*begin)(struct cua_group *g);
	enum cua_status (*end)(struct cua_group *g);
	/*
	 * Where all ranks are local: after the earlier work of all ranks, copies parts[i].mine of
	 * each rank i, bytes[i] bytes, to its place in parts[j].all of each other rank j.
	 */
	enum cua_status (*gather)(struct cua_group *g, const size_t *bytes);
	/*
	 * Where all ranks are local: after the earlier work of all ranks, and before the later work of
	 * any rank.
	 */
	enum cua_status (*exchange)(struct cua_group *g, const struct cua__group_traffic *t);
	/*
	 * Where all ranks are local: after the earlier work of all ranks, adds up parts[i].array of
	 * all ranks i in place, n elements of `size` bytes, 4 or 8. Each rank has scratch memory of
	 * sum_scratch(g, n * size) bytes in parts[i].window.
	 */
	enum cua_status (*sum)(struct cua_group *g, size_t n, size_t size);
	size_t (*sum_scratch)(const struct cua_group *g, size_t bytes);
	/*
	 * Where all ranks are local: later work of each rank of `after` follows the earlier work of all
	 * ranks of `before`. The groups have as many ranks, and may be the same.
	 */
	enum cua_status (*order)(struct cua_group *before, struct cua_group *after);
	/* As `order`, but later work of a rank follows only the earlier work of the same rank. */
	enum cua_status (*follow)(struct cua_group *before, struct cua_group *after);
	/*
	 * Gives a context a stream of its own, whose work goes before that of other streams, and takes it
	 * away again.
	 */
	enum cua_status (*open_side)(struct cua_context *ctx);
	void (*close_side)(struct cua_context *ctx);
};

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_GROUP_BACKEND_H */
