/* SPDX-License-Identifier: MIT */
/* The port layer of the model of GPUs; see cuda_model.h. Its atomics are the host's. */
#ifndef CUATOMIC_TESTS_PORT_MODEL_H
#define CUATOMIC_TESTS_PORT_MODEL_H

#define cua_port_pause host_port_pause
#define cua_port_pause_lane host_port_pause_lane
#define cua_port_lane host_port_lane
#define cua_port_active_mask host_port_active_mask
#define cua_port_ballot host_port_ballot
#define cua_port_match_any_u32 host_port_match_any_u32
#define cua_port_match_any_u64 host_port_match_any_u64
#define cua_port_shuffle_u32 host_port_shuffle_u32
#define cua_port_shuffle_u64 host_port_shuffle_u64
#define cua_port_sync_warp host_port_sync_warp
#define cua_port_thread host_port_thread
#define cua_port_block_size host_port_block_size
#define cua_port_block host_port_block
#define cua_port_grid_size host_port_grid_size
#define cua_port_grid_id host_port_grid_id
#define cua_port_sync_block host_port_sync_block
#define cua_port_sync_block_or host_port_sync_block_or
#define cua_port_is_global host_port_is_global
#include <cuatomic/port/port_host.h>
#undef cua_port_pause
#undef cua_port_pause_lane
#undef cua_port_lane
#undef cua_port_active_mask
#undef cua_port_ballot
#undef cua_port_match_any_u32
#undef cua_port_match_any_u64
#undef cua_port_shuffle_u32
#undef cua_port_shuffle_u64
#undef cua_port_sync_warp
#undef cua_port_thread
#undef cua_port_block_size
#undef cua_port_block
#undef cua_port_grid_size
#undef cua_port_grid_id
#undef cua_port_sync_block
#undef cua_port_sync_block_or
#undef cua_port_is_global
#undef CUA_WARP_LANES
#define CUA_WARP_LANES 32

CUA_FORCE void cua_port_pause(uint32_t ns)
{
	if (cuda_model_self)
		cuda_model_pause();
	else
		host_port_pause(ns);
}

CUA_FORCE void cua_port_pause_lane(uint32_t ns)
{
	cua_port_pause(ns);
}

CUA_FORCE uint32_t cua_port_thread(void)
{
	return cuda_model_self ? cuda_model_self->thread.x : 0;
}

CUA_FORCE uint32_t cua_port_block_size(void)
{
	return cuda_model_self ? cuda_model_self->block_size.x : 1;
}

CUA_FORCE uint64_t cua_port_block(void)
{
	return cuda_model_self ? cuda_model_self->block.x : 0;
}

CUA_FORCE uint64_t cua_port_grid_size(void)
{
	return cuda_model_self ? cuda_model_self->grid_size.x : 1;
}

CUA_FORCE uint64_t cua_port_grid_id(void)
{
	return cuda_model_self ? cuda_model_self->grid_id : host_port_grid_id();
}

CUA_FORCE uint32_t cua_port_lane(void)
{
	return cua_port_thread() % 32;
}

CUA_FORCE uint32_t cua_port_active_mask(void)
{
	return cuda_model_self ? cuda_model_active_mask() : 1;
}

CUA_FORCE uint64_t cua__model_warp(enum cuda_model_warp_op op, uint32_t mask, uint64_t value,
				   uint32_t lane, uint64_t alone)
{
	return cuda_model_self ? cuda_model_warp(op, mask, value, lane) : alone;
}

CUA_FORCE uint32_t cua_port_ballot(uint32_t mask, int predicate)
{
	return (uint32_t)cua__model_warp(CUDA_MODEL_BALLOT, mask, predicate != 0, 0,
					 predicate != 0);
}

CUA_FORCE uint32_t cua_port_match_any_u64(uint32_t mask, uint64_t v)
{
	return (uint32_t)cua__model_warp(CUDA_MODEL_MATCH, mask, v, 0, 1);
}

CUA_FORCE uint32_t cua_port_match_any_u32(uint32_t mask, uint32_t v)
{
	return cua_port_match_any_u64(mask, v);
}

CUA_FORCE uint64_t cua_port_shuffle_u64(uint32_t mask, uint64_t v, uint32_t lane)
{
	return cua__model_warp(CUDA_MODEL_SHUFFLE, mask, v, lane % 32, v);
}

CUA_FORCE uint32_t cua_port_shuffle_u32(uint32_t mask, uint32_t v, uint32_t lane)
{
	return (uint32_t)cua_port_shuffle_u64(mask, v, lane);
}

CUA_FORCE void cua_port_sync_warp(uint32_t mask)
{
	(void)cua__model_warp(CUDA_MODEL_SYNC, mask, 0, 0, 0);
}

CUA_FORCE int cua_port_sync_block_or(int predicate)
{
	return cuda_model_self ? cuda_model_sync_block(predicate) : predicate != 0;
}

CUA_FORCE void cua_port_sync_block(void)
{
	(void)cua_port_sync_block_or(0);
}

CUA_FORCE int cua_port_is_global(const void *p)
{
	(void)p;
	return cuda_model_self != NULL;
}

#endif /* CUATOMIC_TESTS_PORT_MODEL_H */
