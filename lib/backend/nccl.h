/* SPDX-License-Identifier: MIT */
/*
 * The functions of NCCL that the library calls, without linking to it and without its header.
 *
 * Source: the interface of NCCL 2 (nccl.h of NCCL 2.32, 2026).
 */
#ifndef CUATOMIC_BACKEND_NCCL_H
#define CUATOMIC_BACKEND_NCCL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* 2.14 added communicators with calls that return before the connection is made. */
#define CUA__NCCL_OLDEST 21400
#define CUA__NCCL_NEWEST 29999

enum cua__nccl_result { CUA__NCCL_OK = 0, CUA__NCCL_CUDA_ERROR = 1, CUA__NCCL_IN_PROGRESS = 7 };

enum cua__nccl_type {
	CUA__NCCL_I8 = 0,
	CUA__NCCL_I32 = 2,
	CUA__NCCL_U32 = 3,
	CUA__NCCL_I64 = 4,
	CUA__NCCL_U64 = 5
};

enum cua__nccl_op { CUA__NCCL_SUM = 0, CUA__NCCL_MIN = 3 };

/* comm is an ncclComm_t; type, op and the results are enumerators as above. */
struct cua__nccl {
	int (*version)(int *version);
	int (*count)(const void *comm, int *ranks);
	int (*device)(const void *comm, int *device);
	int (*rank)(const void *comm, int *rank);
	int (*async_error)(void *comm, int *error);
	int (*abort)(void *comm);
	int (*send)(const void *from, size_t n, int type, int peer, void *comm,
		    struct CUstream_st *stream);
	int (*receive)(void *to, size_t n, int type, int peer, void *comm,
		       struct CUstream_st *stream);
	int (*all_reduce)(const void *from, void *to, size_t n, int type, int op, void *comm,
			  struct CUstream_st *stream);
	int (*group_start)(void);
	int (*group_end)(void);
};

/*
 * The functions of the process's copy of NCCL, or else of libnccl.so.2. The library then stays loaded. If
 * no copy can be used, returns NULL and sets *problem to the reason, a static string. A later call tries
 * again.
 */
const struct cua__nccl *cua__nccl_load(const char **problem);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_NCCL_H */
