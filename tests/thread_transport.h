/* SPDX-License-Identifier: MIT */
/*
 * A transport between threads of a process (cuatomic/group.h): each thread is a rank. A message is a
 * copy from the sender's memory to the receiver's, between two barriers.
 */
#ifndef CUATOMIC_TESTS_THREAD_TRANSPORT_H
#define CUATOMIC_TESTS_THREAD_TRANSPORT_H

#include <cuatomic/group.h>

#ifdef __cplusplus
extern "C" {
#endif

struct thread_hub;

/* A failure fails the test. */
struct thread_hub *thread_hub_create(uint32_t size);
void thread_hub_destroy(struct thread_hub *hub);

/* The transport of a rank. It lasts as long as the hub. */
struct cua_transport thread_transport(struct thread_hub *hub, uint32_t rank);

/*
 * The exchange, sum or agreement number `call` of this rank, from 0, returns CUA_ERROR_SYSTEM without
 * waiting for other ranks.
 */
void thread_transport_fail(struct thread_hub *hub, uint32_t rank, unsigned call);
/* The numbers of calls of a rank so far, and of its calls of abort. */
unsigned thread_transport_calls(const struct thread_hub *hub, uint32_t rank);
unsigned thread_transport_aborts(const struct thread_hub *hub, uint32_t rank);

/* Runs fn(arg, rank) in a thread for each rank, and waits for all. */
void thread_ranks(uint32_t size, void (*fn)(void *arg, uint32_t rank), void *arg);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_TESTS_THREAD_TRANSPORT_H */
