/* SPDX-License-Identifier: MIT */
/*
 * Peers of `cuatomic bench hashmap`: hash maps of other libraries. The compiler's include path
 * selects the peers:
 *
 *   cuCollections   cuco::static_map, by bulk calls on iterators: linear probing and double
 *                   hashing, groups of 1, 2 and 4 lanes a key, windows of 1 and 2 slots
 *   BGHT            bght::bcht with buckets of 8 and 16 slots, for keys of 4 bytes
 *
 * Each peer reserves a key and a value: the key 0, absent in bench_keys.h, and PEER_ABSENT.
 */
#ifndef CUATOMIC_BENCH_MAP_PEERS_H
#define CUATOMIC_BENCH_MAP_PEERS_H

#if __has_include(<cuco/static_map.cuh>)
#define PEER_CUCO 1
#endif
#if __has_include(<bght/bcht.hpp>)
#define PEER_BGHT 1
#endif

#if defined(PEER_CUCO) || defined(PEER_BGHT)
#define MAP_PEERS 1

#include <cuda/std/functional>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#define PEER_ABSENT(T) ((T) ~(T)0)

/* The pair with index i. */
template <typename T, typename Pair> struct pair_at {
	const T *keys, *values;

	__host__ __device__ Pair operator()(size_t i) const
	{
		return Pair{keys[i], values[i]};
	}
};

template <typename T, typename Pair> static auto pairs_of(const T *keys, const T *values)
{
	return thrust::make_transform_iterator(thrust::counting_iterator<size_t>(0),
					       pair_at<T, Pair>{keys, values});
}
#endif

#ifdef PEER_CUCO
/* Older cuCollections needs this name of older Thrust. */
namespace thrust
{
template <typename T = void> struct identity : ::cuda::std::identity {
};
} // namespace thrust

#include <cuco/static_map.cuh>

template <typename T, typename Probing, int Window> struct cuco_peer {
	typedef T type;
	cuco::static_map<T, T, cuco::extent<size_t>, cuda::thread_scope_device,
			 cuda::std::equal_to<T>, Probing, cuco::cuda_allocator<cuco::pair<T, T>>,
			 cuco::storage<Window>>
		map;

	explicit cuco_peer(size_t capacity)
	    : map{cuco::extent<size_t>{capacity}, cuco::empty_key<T>{0},
		  cuco::empty_value<T>{PEER_ABSENT(T)}}
	{
	}
	void clear()
	{
		map.clear_async();
	}
	void insert(size_t n, const T *keys, const T *values)
	{
		auto pairs = pairs_of<T, cuco::pair<T, T>>(keys, values);

		map.insert_async(pairs, pairs + n);
	}
	void find(size_t n, const T *keys, T *out)
	{
		map.find_async(keys, keys + n, out);
	}
};

template <typename T, int Lanes>
using cuco_linear = cuco::linear_probing<Lanes, cuco::default_hash_function<T>>;
template <typename T, int Lanes>
using cuco_double = cuco::double_hashing<Lanes, cuco::default_hash_function<T>>;
#endif /* PEER_CUCO */

#ifdef PEER_BGHT
#include <thrust/execution_policy.h>
#include <thrust/fill.h>

#include <bght/bcht.hpp>

template <typename Map> struct bght_peer {
	typedef typename Map::key_type type;
	Map map;

	explicit bght_peer(size_t capacity) : map(capacity, 0, PEER_ABSENT(type))
	{
	}
	void clear()
	{
		map.clear();
	}
	/* The check of the row finds the missing keys of a failed insert. */
	void insert(size_t n, const type *keys, const type *values)
	{
		auto pairs = pairs_of<type, bght::pair<type, type>>(keys, values);

		map.insert(pairs, pairs + n);
	}
	void find(size_t n, const type *keys, type *out)
	{
		map.find(keys, keys + n, out);
	}
};
#endif /* PEER_BGHT */

/* Calls op(way, peer) for each peer with keys and values of type T at this capacity. */
#ifdef MAP_PEERS
template <typename Peer, typename Op> static void with_peer(const char *way, size_t capacity, Op op)
{
	Peer peer(capacity);

	op(way, peer);
}

#ifdef PEER_CUCO
template <typename T, int Lanes, typename Op>
static void each_cuco_peer(const char *const ways[4], size_t capacity, Op op)
{
	with_peer<cuco_peer<T, cuco_linear<T, Lanes>, 1>>(ways[0], capacity, op);
	with_peer<cuco_peer<T, cuco_linear<T, Lanes>, 2>>(ways[1], capacity, op);
	with_peer<cuco_peer<T, cuco_double<T, Lanes>, 1>>(ways[2], capacity, op);
	with_peer<cuco_peer<T, cuco_double<T, Lanes>, 2>>(ways[3], capacity, op);
}
#endif

template <typename T, typename Op> static void each_map_peer(size_t capacity, Op op)
{
#ifdef PEER_CUCO
#define CUCO_WAYS(lanes)                                                                           \
	(const char *const[]){"cuCollections, linear, " lanes ", window 1",                        \
			      "cuCollections, linear, " lanes ", window 2",                        \
			      "cuCollections, double, " lanes ", window 1",                        \
			      "cuCollections, double, " lanes ", window 2"}
	each_cuco_peer<T, 1>(CUCO_WAYS("1 lane"), capacity, op);
	each_cuco_peer<T, 2>(CUCO_WAYS("2 lanes"), capacity, op);
	each_cuco_peer<T, 4>(CUCO_WAYS("4 lanes"), capacity, op);
#undef CUCO_WAYS
#endif
#ifdef PEER_BGHT
	if constexpr (sizeof(T) == 4) {
		with_peer<bght_peer<bght::bcht8<T, T>>>("BGHT, buckets of 8", capacity, op);
		with_peer<bght_peer<bght::bcht16<T, T>>>("BGHT, buckets of 16", capacity, op);
	}
#endif
}
#endif /* MAP_PEERS */

#endif /* CUATOMIC_BENCH_MAP_PEERS_H */
