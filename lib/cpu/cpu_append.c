/* SPDX-License-Identifier: MIT */
/* Append buffers on the CPU. */
#include "config.h"

#include "backend/append_backend.h"

static enum cua_status cpu_size(struct cua_context *ctx, const struct cua_append_view *view,
				uint64_t *size)
{
	uint64_t demand = cua_port_load_b64(&view->cursor->demand, CUA_RELAXED, CUA_SCOPE_DEVICE,
					    CUA_SPACE_GLOBAL);

	(void)ctx;
	*size = demand < view->capacity ? demand : view->capacity;
	return CUA_OK;
}

const struct cua__append_ops cua__cpu_append = {
	.size = cpu_size,
};
