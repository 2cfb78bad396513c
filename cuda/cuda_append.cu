/* SPDX-License-Identifier: MIT */
/* Append buffers on a GPU. */
#include "config.h"

#include "backend/append_backend.h"
#include "launch.h"

static __global__ void size_kernel(struct cua_append_view view, uint64_t *size)
{
	uint64_t demand = cua_port_load_b64(&view.cursor->demand, CUA_RELAXED, CUA_SCOPE_DEVICE,
					    CUA_SPACE_GLOBAL);

	*size = demand < view.capacity ? demand : view.capacity;
}

static enum cua_status cuda_size(struct cua_context *ctx, const struct cua_append_view *view,
				 uint64_t *size)
{
	return cua__launch(ctx, size_kernel, 1, 1, 0, *view, size);
}

const struct cua__append_ops cua__cuda_append = {cuda_size};
