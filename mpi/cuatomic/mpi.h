/* SPDX-License-Identifier: MIT */
/*
 * Groups of MPI processes, in a library of its own: link with -lcuatomic-mpi -lcuatomic, and with MPI
 * (pkg-config cuatomic-mpi, and mpicc).
 *
 * Source: the Message Passing Interface standard (MPI 3.1, 2015).
 */
#ifndef CUATOMIC_MPI_H
#define CUATOMIC_MPI_H

#include <mpi.h>

#include <cuatomic/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Creates a group whose ranks are the processes of a communicator, in the same order
 * (cuatomic/group.h). Each process has a context of its own, of any backend. Collective: all processes
 * of `comm` call, and return the same status. The group uses a duplicate of `comm`, so that messages of
 * the group and of the program do not meet. The context must outlive the group.
 *
 * If Open MPI reports at run time that it takes memory of a GPU (MPIX_Query_cuda_support), messages of a
 * GPU are sent from there. Otherwise MPI reads and writes host memory only, and the library copies values of
 * a GPU to pinned memory. Messages above 1 GiB are sent in pieces. The group makes its MPI calls in the thread that calls
 * the group, so MPI_THREAD_FUNNELED suffices for the main thread, and MPI_THREAD_SERIALIZED for another
 * thread at a time.
 *
 * Waiting and errors: a call waits by MPI_Testall, so MPI's errors and the time limit of
 * cua_group_set_timeout end it. MPI's errors become CUA_ERROR_SYSTEM. A rank that fails sends each
 * other rank a message that ends their waiting. MPI itself may end all processes of a job if one of
 * them dies; see the documentation of mpirun.
 *
 * cua_group_destroy is collective for these groups, and comes before MPI_Finalize. After a call that
 * failed with an error of the transport it is local. The duplicate of `comm` then remains.
 *
 * Errors: NULL, VALUE (MPI_COMM_NULL, or an intercommunicator), UNSUPPORTED (MPI is not initialized, or
 *   is finalized), SIZE (more than CUA_GROUP_RANKS_MAX processes), NO_MEMORY, CUDA, SYSTEM.
 */
CUA_API enum cua_status cua_group_create_mpi(struct cua_context *ctx, MPI_Comm comm,
					     struct cua_group **group);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_MPI_H */
