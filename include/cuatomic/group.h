/* SPDX-License-Identifier: MIT */
/*
 * Groups of contexts: reductions of an array that is divided among several GPUs, processes or
 * machines, and sums of arrays that each of them has.
 *
 * Source: the ranks and collective calls of the Message Passing Interface standard (MPI 4.1, 2023).
 *
 * A group has ranks 0 to size - 1. Each rank has a context and a part of each array. The part of
 * rank 0 comes first. A process has `local` ranks with consecutive numbers: all ranks in a group of
 * cua_group_create_devices, a single rank in any other group. The calls below are
 * collective: every process calls, with the same arguments except for the parts, and in the same
 * order. An array argument has an entry for each local rank.
 *
 *     struct cua_context *contexts[2];              of GPU 0 and of GPU 1
 *     const size_t n[2] = {n0, n1};
 *     const void *const x[2] = {x0, x1};            x0 is memory of GPU 0, x1 of GPU 1
 *     float sum[2];                                 both become the sum of all elements
 *     void *const sums[2] = {&sum[0], &sum[1]};
 *
 *     cua_group_create_devices(2, contexts, &group);
 *     cua_group_reduce(group, NULL, CUA_REDUCE_SUM, CUA_F32, n, x, NULL, sums);
 *
 * Statuses: all processes return the same status, the least of all ranks. So a rank with a bad
 *   argument or without memory keeps no other rank waiting, and each knows that the call failed. An
 *   error about the arguments means that nothing was changed, on any rank. There are two exceptions.
 *   A process that passes NULL as the group makes no call. If the transport fails, the statuses of
 *   that call may differ.
 *
 * Synchronization of two calls of a group. X: the caller must order the calls.
 *
 *               collective call
 *     any call        X
 *
 *   A group uses its contexts, so only one thread may use the group and its contexts at a time. After
 *   cua_context_set_stream of such a context, the caller orders the new stream after the old one.
 *
 * Scope: all ranks. If all ranks are in this process, a call whose results are memory that the
 *   devices can write is ordered in the streams of the contexts and does not wait. With a
 *   transport, a call waits for the values of this rank; results in such memory are written later,
 *   in the order of the stream.
 * Memory order: a collective call is ordered after earlier work in the streams of all local ranks,
 *   and before later work in each of them. A graph is ordered only with the stream that it is
 *   launched in: the caller orders its launches with the streams of all ranks.
 * Progress: a collective call waits for the other processes in the functions of the transport, and
 *   for nothing else.
 *
 * Argument for equal results: the partial results of all ranks go to each rank, and each rank combines
 *   them in the order of the ranks by the same operations. Exact sums are integers until the last
 *   rounding. So they do not depend on the number of ranks or on the parts.
 */
#ifndef CUATOMIC_GROUP_H
#define CUATOMIC_GROUP_H

#include <cuatomic/context.h>
#include <cuatomic/detail/standard.h>
#include <cuatomic/reduce.h>
#include <cuatomic/status.h>
#include <cuatomic/types.h>

/* The most ranks of a group. */
#define CUA_GROUP_RANKS_MAX 65536u

struct cua_group;

/*
 * The connection of a process to the other processes of a group, for cua_group_create. The library
 * calls the functions in the thread that made the collective call, and in the same order in every
 * process. All pointers are host memory, except those of exchange_device and sum_device. A function
 * returns after its effect.
 *
 * A function that fails returns an error; a positive number counts as CUA_ERROR_SYSTEM. The library
 * then calls abort, and the group is broken: all later calls return the error. The library never frees
 * the memory of messages of a broken group, so operations on it may remain pending. Such
 * operations use a caller's own array only in sum_device, in sums by exchange, and in sum_u64 for a context of
 * the CPU and types of 64 bits: after an error of cua_group_sum the array must stay.
 *
 * sum_u64 may be NULL on all ranks; the library then adds up by two calls of exchange. It may not be
 * NULL on some ranks only.
 *
 * exchange_device and sum_device are for transports that access memory of a GPU. The library calls them
 * on ranks whose context is on a GPU. If they are NULL there, it copies arrays through pinned memory.
 */
struct cua_transport {
	size_t struct_size; /* sizeof(struct cua_transport), set by the caller */
	void *self;         /* the first argument of each function */
	uint32_t rank, size;
	/*
	 * Sends send_bytes[r] bytes at send[r] to each rank r, and receives receive_bytes[r] bytes
	 * from it at receive[r]. The arrays have an entry for each rank, this rank included. A
	 * message has the same size on both sides, which may be 0; its pointer may then be NULL.
	 */
	enum cua_status (*exchange)(void *self, const void *const *send, const size_t *send_bytes,
				    void *const *receive, const size_t *receive_bytes);
	/* Sets each x[i], i < n, to the sum of the x[i] of all ranks, modulo 2^64. */
	enum cua_status (*sum_u64)(void *self, uint64_t *x, size_t n);
	/* Sets *all to the least of the statuses that the ranks pass. */
	enum cua_status (*agree)(void *self, enum cua_status mine, enum cua_status *all);
	/*
	 * Makes the waiting and all later functions of all ranks fail. May be NULL; then the other
	 * ranks may wait for ever.
	 */
	void (*abort)(void *self);
	/*
	 * From now on a function that has waited for other ranks for that many seconds returns
	 * CUA_ERROR_TIMEOUT; 0: it waits for ever. May be NULL, if the transport has no time limit.
	 */
	void (*set_timeout)(void *self, double seconds);
	/* The last call, by cua_group_destroy. May be NULL. */
	void (*close)(void *self);
	/*
	 * As exchange, of memory of the context, after the earlier work of the context's stream. May be
	 * NULL. A message that a rank sends by exchange_device may be received by exchange, and the
	 * reverse, if the group has ranks with and without exchange_device or GPUs.
	 */
	enum cua_status (*exchange_device)(void *self, const void *const *send,
					   const size_t *send_bytes, void *const *receive,
					   const size_t *receive_bytes);
	/*
	 * Adds up n elements of the ranks at x, memory of the context, after the earlier work of the
	 * context's stream, as cua_group_sum. May be NULL, but not on some of the ranks with a GPU only,
	 * nor in a group that has ranks without a GPU; cua_group_sum then returns VALUE.
	 */
	enum cua_status (*sum_device)(void *self, enum cua_type type, void *x, size_t n);
};
#define CUA_TRANSPORT_INIT CUA__SIZED_INIT(struct cua_transport)

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Creates a group whose ranks are all in this process: rank r has contexts[r]. All contexts have the
 * same backend: contexts of the CPU, of different GPUs, or several of the same GPU. The contexts must
 * outlive the group. On the CUDA backend the call makes the memory of the GPUs accessible to each
 * other, where the hardware can, and this stays so in the process. A context has at most
 * 2 times 48 000 bytes of memory for the group, or 2 times 1104 bytes for each rank if that is more.
 * Errors: NULL, VALUE (n is 0 or above CUA_GROUP_RANKS_MAX, or a context occurs twice), CONTEXT
 *   (different backends), NO_MEMORY, CUDA.
 */
CUA_API enum cua_status cua_group_create_devices(uint32_t n, struct cua_context *const *contexts,
						 struct cua_group **group);

/*
 * Creates a group by a transport; this process has a single rank. The struct is copied; self and the
 * context must outlive the group. Ranks may have different backends. The group has 4 MiB of host memory
 * and 8 bytes a rank for values on their way. The call is local: processes agree by themselves whether
 * all have created the group.
 * A transport by MPI comes with the library libcuatomic-mpi: cua_group_create_mpi in cuatomic/mpi.h.
 * Errors: NULL, VALUE (struct_size, size, or rank >= size), NO_MEMORY, CUDA. After an error `close` is
 * not called.
 */
CUA_API enum cua_status cua_group_create(struct cua_context *ctx,
					 const struct cua_transport *transport,
					 struct cua_group **group);

/*
 * Creates a group whose ranks are those of an NCCL communicator: `comm` is an ncclComm_t. This process,
 * or this thread, has a single rank. The context must be on the GPU of `comm`, and must outlive the
 * group; so must `comm`. The group has 4 MiB of memory on the GPU, 4 MiB of pinned memory and a thread, in
 * addition to those of cua_group_create. The call is local: processes agree by themselves whether all
 * have created the group. The first collective calls take longer, because NCCL then connects the ranks.
 *
 * The library is not linked to NCCL. It calls the copy of NCCL that the process has, a loaded
 * libnccl.so.2 or functions that the program exports; otherwise it loads libnccl.so.2.
 *
 * Arrays travel between the GPUs without copies to the host. NCCL's calls are made in the stream of the
 * context. `comm` may have other uses between the calls of the group, in the same order on all ranks and
 * by a thread at a time; no call may be inside a ncclGroupStart of the caller. Ranks that are threads of
 * one process should reserve their workspaces and have no maps that grow, because an allocation may wait
 * for a kernel of another rank.
 *
 * Waiting and errors: NCCL does not tell the other ranks of a failed rank. So set a time limit on all
 * ranks (cua_group_set_timeout). It starts after the earlier work of the rank's own stream. A helper
 * thread then makes the calls of NCCL, so that the limit includes the time to connect; not so if the
 * stream is cudaStreamPerThread. Errors of NCCL become CUA_ERROR_SYSTEM, or CUDA.
 * After an error of the transport, cua_group_status returns the error, and the library has called
 * ncclCommAbort: the caller must neither use nor destroy `comm`. If ncclCommAbort does not return in
 * 10 s, a thread remains in it, work in the stream may never end, and memory of the group stays
 * allocated; cua_group_destroy returns, but other calls of CUDA may wait for ever.
 * In all other cases `comm` is the caller's to destroy, after the group. If a rank has failed, use
 * ncclCommAbort, because ncclCommDestroy may wait for it.
 *
 * Errors: NULL, UNSUPPORTED (the context is of the CPU, or there is no usable NCCL:
 *   cua_group_nccl_problem), CONTEXT (`comm` is of another GPU), VALUE (`comm` is not yet connected),
 *   SIZE (more than CUA_GROUP_RANKS_MAX ranks), NO_MEMORY, CUDA, SYSTEM.
 */
CUA_API enum cua_status cua_group_create_nccl(struct cua_context *ctx, void *comm,
					      struct cua_group **group);
/*
 * The reason why cua_group_create_nccl cannot use NCCL, as text without a full stop ("libnccl.so.2 is
 * older than NCCL 2.14"); "" if it can. A static string, never NULL. Loads NCCL, which then stays
 * loaded. Needs no context and no GPU.
 */
CUA_API const char *cua_group_nccl_problem(void);

/*
 * Waits for the streams of the local ranks, calls `close` of the transport and frees the group; NULL is
 * allowed. After an error of the transport it does not wait. Local, apart from the transport. Graphs
 * captured from its calls must not be launched afterwards, because they use its memory.
 */
CUA_API void cua_group_destroy(struct cua_group *group);

/*
 * Local: limits how long a call waits for the other processes at a time, in seconds; 0 (the default)
 * is without a limit. A call that reaches the limit returns CUA_ERROR_TIMEOUT, and so do all later
 * calls of the group. A group whose ranks are all in this process does not wait for other processes.
 * Errors: NULL, VALUE (negative or not finite), UNSUPPORTED (the transport has no time limit).
 */
CUA_API enum cua_status cua_group_set_timeout(struct cua_group *group, double seconds);

/*
 * Local: CUA_OK, or the error of the transport that all later calls of the group return. Errors: NULL,
 * those of the transport.
 */
CUA_API enum cua_status cua_group_status(const struct cua_group *group);
/* The number of ranks; 0 for NULL. */
CUA_API uint32_t cua_group_size(const struct cua_group *group);
/* The number of ranks in this process; 0 for NULL. */
CUA_API uint32_t cua_group_local(const struct cua_group *group);
/* The first rank of this process; 0 for NULL. */
CUA_API uint32_t cua_group_rank(const struct cua_group *group);

/*
 * Collective: reduces the array that consists of the parts of all ranks, n[i] elements at x[i] of
 * local rank i. *results[i] receives the same value on every rank. op, type, modes and the types of
 * results are those of cua_reduce (cuatomic/reduce.h); indexes of ARGMIN and ARGMAX count from the
 * first element of rank 0. y is NULL if the operation has a single array.
 *
 * Modes:
 *   FAST (the default)  each rank reduces its part. The bits of a sum of floats depend on the parts.
 *   FIXED               the bits of cua_reduce in mode FIXED on the whole array, in one context. Each
 *                       part but the last ends where the tree allows: cua_fixed_cut. Else VALUE.
 *   EXACT               the bits of cua_reduce in mode EXACT on the whole array, for any parts.
 *
 * The call may be captured if all ranks are in this process and no stream is a legacy default stream.
 * The capture must have begun in the stream of rank 0. The streams of the other ranks then belong to
 * it until it ends, and the call orders its own work in them with the stream of rank 0.
 *
 * Errors: those of cua_reduce; VALUE (also options->finish that is neither AUTO nor LAST_BLOCK,
 *   options->count, cuts in mode FIXED, or ranks that differ in op, type, mode or type of result);
 *   SIZE (the whole array has 2^63 bytes or more); CAPTURE; errors of the transport.
 */
CUA_API enum cua_status cua_group_reduce(struct cua_group *group,
					 const struct cua_reduce_options *options,
					 enum cua_reduce_op op, enum cua_type type, const size_t *n,
					 const void *const *x, const void *const *y,
					 void *const *results);

/*
 * The workspace of cua_group_reduce in each context, if no part has more than n elements: for
 * cua_context_reserve. Local. Errors: NULL, VALUE, TYPE, SIZE, UNSUPPORTED.
 */
CUA_API enum cua_status cua_group_reduce_workspace(struct cua_group *group,
						   const struct cua_reduce_options *options,
						   enum cua_reduce_op op, enum cua_type type,
						   size_t n, size_t *bytes);

/*
 * Collective: adds up an array that every rank has, in place. x[i] has n elements, in memory that the
 * context of local rank i can access; n is the same on all ranks. Afterwards element k of each array
 * is the sum of the elements k of all ranks, modulo 2^32 or 2^64. Types: I32 U32 I64 U64. So the counts
 * of cua_histogram become those of the whole data. The arrays must not overlap.
 *
 * If all ranks are in this process, the call is ordered in the streams of the contexts, does not wait,
 * and may be captured as cua_group_reduce. With a transport, the call waits.
 *
 * Errors: NULL, TYPE, ALIGNMENT, SIZE, MEMORY_KIND, WORKSPACE, NO_MEMORY, CAPTURE, CUDA; VALUE (ranks
 *   that differ in type or n; a transport with sum_u64 on some ranks only); OVERLAP (arrays of local
 *   ranks); errors of the transport, after which the elements are undefined.
 */
CUA_API enum cua_status cua_group_sum(struct cua_group *group, enum cua_type type, size_t n,
				      void *const *x);

/*
 * The workspace of cua_group_sum in each context for at most n elements: for cua_context_reserve.
 * Local. Errors: NULL, TYPE, SIZE.
 */
CUA_API enum cua_status cua_group_sum_workspace(struct cua_group *group, enum cua_type type,
						size_t n, size_t *bytes);

/*
 * Where mode FIXED allows parts to be cut: sets *first to the index of the first element of part
 * number `part`, if an array of n elements in total is divided as evenly as possible among `parts`
 * ranks; to n for part == parts. Part i has cut(i + 1) - cut(i) elements. Cuts depend on n and on the
 * size of an element. They are multiples of a chunk of at least 32 KiB, so the first parts of a short
 * array are empty. Needs no context.
 * Errors: NULL, TYPE, VALUE (parts is 0, or part > parts), SIZE.
 */
CUA_API enum cua_status cua_fixed_cut(enum cua_type type, uint64_t n, uint32_t parts, uint32_t part,
				      uint64_t *first);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_GROUP_H */
