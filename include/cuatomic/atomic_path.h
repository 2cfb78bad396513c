/* SPDX-License-Identifier: MIT */
/*
 * The host call that returns an atomic operation's path for a context: how the headers implement
 * it, for example by a native instruction or by a compare-and-swap loop.
 *
 * Source: ours. The macro that defines an operation (CUA_ATOMIC_PATH in atomic.h), or the port's
 * macro below it, also sets its path. So a path cannot differ from the code.
 */
#ifndef CUATOMIC_ATOMIC_PATH_H
#define CUATOMIC_ATOMIC_PATH_H

#include <cuatomic/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Sets *path to the path of an operation on a type, in this library's code for the context's
 * device. In a kernel of the caller, use CUA_ATOMIC_PATH, which describes the architecture that the
 * kernel is compiled for. An operation's form without a result has the same path, or is a single
 * instruction. CUA_PATH_NONE, if the type has no such operation, is a result, not an error. Waits
 * for the stream of a CUDA context.
 * Errors: NULL (ctx or path is NULL), TYPE (no such type), VALUE (no such operation), CAPTURE (the
 * context's stream is being captured), and errors of the device.
 */
CUA_API enum cua_status cua_atomic_path_query(struct cua_context *ctx, enum cua_type type,
					      enum cua_atomic_op op, enum cua_atomic_path *path);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_ATOMIC_PATH_H */
