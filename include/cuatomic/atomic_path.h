/* SPDX-License-Identifier: MIT */
/*
 * What the atomic operations are made of: the paths as the headers define them, and the host call that
 * tells them for a context.
 *
 * Source: ours. Each path is set by the very macro that defines the operation (CUA_ATOMIC_PATH in atomic.h), or by
 * the port's, so a path cannot say what the code does not do.
 */
#ifndef CUATOMIC_ATOMIC_PATH_H
#define CUATOMIC_ATOMIC_PATH_H

#include <cuatomic/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The path of an operation on a type on the context's device, in the code of this library for that device: for a
 * kernel of the caller's, CUA_ATOMIC_PATH says it for the architecture that it is compiled for. An operation's
 * form without a result has the same path, or is one instruction too. CUA_PATH_NONE is a result, not an error.
 * CUA_ERROR_NULL: ctx or path is. CUA_ERROR_TYPE, CUA_ERROR_VALUE: no such type, no such operation.
 * CUA_ERROR_CAPTURE: the context's stream is being captured. Waits for the stream of a CUDA context.
 */
CUA_API enum cua_status cua_atomic_path(struct cua_context *ctx, enum cua_type type,
					enum cua_atomic_op op, enum cua_atomic_path *path);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_ATOMIC_PATH_H */
