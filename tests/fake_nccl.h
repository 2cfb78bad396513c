/* SPDX-License-Identifier: MIT */
/*
 * A double of NCCL for tests without a GPU: the ranks of a communicator are threads, and memory of a GPU is
 * host memory. It has the functions of NCCL that the library calls, ncclCommInitAll and
 * ncclCommDestroy. Ranks that disagree about a message or a reduction abort the program.
 */
#ifndef CUATOMIC_TESTS_FAKE_NCCL_H
#define CUATOMIC_TESTS_FAKE_NCCL_H

struct fake_nccl {
	int version;      /* FAKE_NCCL_VERSION at first */
	int asynchronous; /* ncclGroupEnd returns ncclInProgress before the messages have arrived */
	int abort_hangs;  /* ncclCommAbort never returns, and ends no waiting */
	int device;       /* of all communicators */
};
extern struct fake_nccl fake_nccl;

/* The call of ncclGroupEnd number `call` of this rank, from 0, returns an error. */
void fake_nccl_fail(void *comm, unsigned call);
/* The calls so far. */
unsigned fake_nccl_calls(const void *comm);
/* The communicators that are neither aborted nor destroyed. */
unsigned fake_nccl_alive(void);

#endif /* CUATOMIC_TESTS_FAKE_NCCL_H */
