/* SPDX-License-Identifier: MIT */
/*
 * Bins of blocks of elements, on the CPU. This file has no include guard: it is included once for
 * each instruction set, with FIND(name) and FIND_TARGET defined. The loops over whole blocks
 * without gaps have a constant length. A compiler vectorizes them if they contain no branch.
 */

/* Sets bins[i] for all i by statements that use v, which is x[i * step]. */
#define FIND_LOOPS(...)                                                                            \
	if (step == 1 && n == BLOCK) {                                                             \
		for (size_t i = 0; i < BLOCK; i++) {                                               \
			const T v = x[i];                                                          \
                                                                                                   \
			__VA_ARGS__                                                                \
		}                                                                                  \
	} else {                                                                                   \
		for (size_t i = 0; i < n; i++) {                                                   \
			const T v = x[i * step];                                                   \
                                                                                                   \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

#define FIND_FUNCTION(name)                                                                        \
	FIND_TARGET static void FIND(name)(const struct cua__histogram *h, const void *values,     \
					   size_t n, size_t step, uint32_t *restrict bins)

#define DEFINE_FIND(name, TYPE, BIN)                                                               \
	FIND_FUNCTION(name)                                                                        \
	{                                                                                          \
		typedef TYPE T;                                                                    \
		const T *restrict x = values;                                                      \
		const struct cua_histogram_range range = h->range;                                 \
		const uint32_t none = h->bins;                                                     \
                                                                                                   \
		(void)range;                                                                       \
		(void)none;                                                                        \
		FIND_LOOPS(bins[i] = (BIN);)                                                       \
	}

DEFINE_FIND(byte, uint8_t, v)
DEFINE_FIND(letter, uint8_t,
	    (uint8_t)(v - 'a') < 26 ? (uint32_t)(uint8_t)(v - 'a') / 4
				    : none + (v < 'a' ? CUA_HISTOGRAM_BELOW : CUA_HISTOGRAM_ABOVE))

/* ---- even bins of integers ---- */

/*
 * Uses products of 32 bits if the distance from the lower limit fits 32 bits; see
 * cua__histogram_narrow_bin. W is the type of the limits.
 */
#define DEFINE_EVEN_INTEGER(t, TYPE, w, W)                                                         \
	FIND_FUNCTION(even_##t)                                                                    \
	{                                                                                          \
		typedef TYPE T;                                                                    \
		const T *restrict x = values;                                                      \
		const struct cua_histogram_range range = h->range;                                 \
		const uint32_t none = h->bins, most = none - 1, whole = range.whole;               \
		const uint32_t low = (uint32_t)range.part, high = (uint32_t)(range.part >> 32);    \
		const uint64_t last = range.last, lower = range.lower;                             \
                                                                                                   \
		if (last > UINT32_MAX) {                                                           \
			for (size_t i = 0; i < n; i++) {                                           \
				const W v = x[i * step];                                           \
				const uint32_t bin = cua_histogram_even_bin_##w(&range, v);        \
                                                                                                   \
				bins[i] = bin != CUA_HISTOGRAM_NO_BIN                              \
						  ? bin                                            \
						  : none + cua_histogram_side_##w(&range, v);      \
			}                                                                          \
			return;                                                                    \
		}                                                                                  \
		FIND_LOOPS(const uint64_t d = (uint64_t)(W)v - lower;                              \
			   const uint32_t e = (uint32_t)d;                                         \
			   const uint64_t part = (uint64_t)e * high + ((uint64_t)e * low >> 32);   \
			   const uint32_t bin = e * whole + (uint32_t)(part >> 32);                \
			   const uint32_t side = none + ((W)v < (W)lower ? CUA_HISTOGRAM_BELOW     \
									 : CUA_HISTOGRAM_ABOVE);   \
			   bins[i] = d <= last ? (bin < most ? bin : most) : side;)                \
	}
DEFINE_EVEN_INTEGER(i8, int8_t, i64, int64_t)
DEFINE_EVEN_INTEGER(u8, uint8_t, i64, int64_t)
DEFINE_EVEN_INTEGER(i16, int16_t, i64, int64_t)
DEFINE_EVEN_INTEGER(u16, uint16_t, i64, int64_t)
DEFINE_EVEN_INTEGER(i32, int32_t, i64, int64_t)
DEFINE_EVEN_INTEGER(u32, uint32_t, i64, int64_t)
DEFINE_EVEN_INTEGER(i64, int64_t, i64, int64_t)
DEFINE_EVEN_INTEGER(u64, uint64_t, u64, uint64_t)

/* ---- even bins of floats ---- */

#define FLOAT_SIDE(nan, key, first)                                                                \
	((nan) ? CUA_HISTOGRAM_NAN : (key) < (first) ? CUA_HISTOGRAM_BELOW : CUA_HISTOGRAM_ABOVE)

#define DEFINE_EVEN_HALF(t, OF)                                                                    \
	FIND_FUNCTION(even_##t)                                                                    \
	{                                                                                          \
		const cua__raw16 *x = values;                                                      \
		const struct cua_histogram_range range = h->range;                                 \
                                                                                                   \
		for (size_t i = 0; i < n; i++) {                                                   \
			const float v = OF(x[i * step]);                                           \
			const uint32_t bin = cua_histogram_even_bin_f32(&range, v);                \
                                                                                                   \
			bins[i] = bin != CUA_HISTOGRAM_NO_BIN                                      \
					  ? bin                                                    \
					  : h->bins + FLOAT_SIDE(cua__is_nan_f32(v),               \
								 cua__histogram_key_f32(v),        \
								 range.first_f32);                 \
		}                                                                                  \
	}
DEFINE_EVEN_HALF(f16, of_f16)
DEFINE_EVEN_HALF(bf16, of_bf16)

/*
 * The bin is converted through int32_t: every instruction set supports it, and it suffices for 2^30
 * bins. An element outside the range is replaced by the first value in it, if any. A mask makes the
 * final choice: a branch around the arithmetic would prevent vectorization.
 */
#define DEFINE_EVEN_FLOAT(t, TYPE, K, DOUBLE)                                                      \
	FIND_FUNCTION(even_##t)                                                                    \
	{                                                                                          \
		typedef TYPE T;                                                                    \
		const T *restrict x = values;                                                      \
		const struct cua_histogram_range range = h->range;                                 \
		const uint32_t none = h->bins;                                                     \
		const int32_t most = (int32_t)(none - 1);                                          \
		const K first = range.first_##t, span = range.span_##t;                            \
		const T inside = cua__from_bits_##t(cua__bits_of_ordered_##t(first));              \
		const double factor = range.factor, origin = range.origin, scale = range.scale;    \
                                                                                                   \
		if (none > (uint32_t)1 << 30 || !span) {                                           \
			for (size_t i = 0; i < n; i++) {                                           \
				const T v = x[i * step];                                           \
				const uint32_t bin = cua_histogram_even_bin_##t(&range, v);        \
                                                                                                   \
				bins[i] = bin != CUA_HISTOGRAM_NO_BIN                              \
						  ? bin                                            \
						  : none + FLOAT_SIDE(cua__is_nan_##t(v),          \
								      cua__histogram_key_##t(v),   \
								      first);                      \
			}                                                                          \
			return;                                                                    \
		}                                                                                  \
		FIND_LOOPS(                                                                        \
			const K key = cua__histogram_key_##t(v);                                   \
			const int in = key - first < span; const T s = in ? v : inside;            \
			const double d = cua_port_sub_rn_f64(                                      \
				cua_port_mul_rn_f64(DOUBLE(s), factor), origin);                   \
			const int32_t bin = (int32_t)cua_port_mul_rn_f64(d, scale);                \
			const uint32_t side = none + FLOAT_SIDE(cua__is_nan_##t(v), key, first);   \
			const uint32_t mask = 0u - (uint32_t)in;                                   \
			bins[i] = (mask & (uint32_t)(bin < most ? bin : most)) | (~mask & side);)  \
	}
#define SAME(v) (v)
DEFINE_EVEN_FLOAT(f32, float, uint32_t, cua_port_cvt_f64_f32)
DEFINE_EVEN_FLOAT(f64, double, uint64_t, SAME)

/* ---- edges ---- */

/* Keys searched together, because each step waits for memory. */
#define KEYS_AT_A_TIME 16

/*
 * keys has room for n, rounded up to KEYS_AT_A_TIME. Keys below `least` or above `most` are NaNs.
 */
#define DEFINE_SEARCH(bits, K)                                                                     \
	FIND_TARGET static void FIND(search_b##bits)(const struct cua__histogram *h,               \
						     K *restrict key, size_t n, K least, K most,   \
						     uint32_t *restrict bins)                      \
	{                                                                                          \
		const K *restrict edges = h->edges;                                                \
		const uint32_t none = h->bins;                                                     \
		const int closed = h->closed;                                                      \
                                                                                                   \
		for (size_t i = n; i % KEYS_AT_A_TIME; i++)                                        \
			key[i] = 0;                                                                \
		for (size_t i = 0; i < n; i += KEYS_AT_A_TIME) {                                   \
			uint32_t at[KEYS_AT_A_TIME] = {0};                                         \
                                                                                                   \
			/* the search of cua_histogram_edge_bin, for several keys */               \
			for (uint32_t left = none + 1; left > 1;) {                                \
				const uint32_t half = left / 2;                                    \
                                                                                                   \
				for (int j = 0; j < KEYS_AT_A_TIME; j++)                           \
					at[j] +=                                                   \
						half & (0u - (edges[at[j] + half] <= key[i + j])); \
				left -= half;                                                      \
			}                                                                          \
			for (size_t j = 0; j < KEYS_AT_A_TIME && i + j < n; j++) {                 \
				const K k = key[i + j];                                            \
				uint32_t bin = at[j];                                              \
                                                                                                   \
				if (k < edges[0] || bin == none)                                   \
					bin = closed && k == edges[none]                           \
						      ? none - 1                                   \
						      : none + FLOAT_SIDE(k < least || k > most,   \
									  k, edges[0]);            \
				bins[i + j] = bin;                                                 \
			}                                                                          \
		}                                                                                  \
	}
DEFINE_SEARCH(32, uint32_t)
DEFINE_SEARCH(64, uint64_t)

#define DEFINE_EDGES(t, TYPE, w, bits, OF, LEAST, MOST)                                            \
	FIND_FUNCTION(edges_##t)                                                                   \
	{                                                                                          \
		const TYPE *x = values;                                                            \
		uint##bits##_t key[BLOCK];                                                         \
                                                                                                   \
		for (size_t i = 0; i < n; i++)                                                     \
			key[i] = cua__histogram_edge_key_##w(OF(x[i * step]));                     \
		FIND(search_b##bits)(h, key, n, LEAST, MOST, bins);                                \
	}
#define LEAST_F32 0x007fffffu
#define MOST_F32 0xff800000u
#define LEAST_F64 0x000fffffffffffffu
#define MOST_F64 0xfff0000000000000u
DEFINE_EDGES(i8, int8_t, i32, 32, SAME, 0, UINT32_MAX)
DEFINE_EDGES(u8, uint8_t, u32, 32, SAME, 0, UINT32_MAX)
DEFINE_EDGES(i16, int16_t, i32, 32, SAME, 0, UINT32_MAX)
DEFINE_EDGES(u16, uint16_t, u32, 32, SAME, 0, UINT32_MAX)
DEFINE_EDGES(i32, int32_t, i32, 32, SAME, 0, UINT32_MAX)
DEFINE_EDGES(u32, uint32_t, u32, 32, SAME, 0, UINT32_MAX)
DEFINE_EDGES(i64, int64_t, i64, 64, SAME, 0, UINT64_MAX)
DEFINE_EDGES(u64, uint64_t, u64, 64, SAME, 0, UINT64_MAX)
DEFINE_EDGES(f16, cua__raw16, f32, 32, of_f16, LEAST_F32, MOST_F32)
DEFINE_EDGES(bf16, cua__raw16, f32, 32, of_bf16, LEAST_F32, MOST_F32)
DEFINE_EDGES(f32, float, f32, 32, SAME, LEAST_F32, MOST_F32)
DEFINE_EDGES(f64, double, f64, 64, SAME, LEAST_F64, MOST_F64)

static const struct finders FIND(finders) = {
	.byte = FIND(byte),
	.letter = FIND(letter),
	.even = {[CUA_I8] = FIND(even_i8),
		 [CUA_U8] = FIND(even_u8),
		 [CUA_I16] = FIND(even_i16),
		 [CUA_U16] = FIND(even_u16),
		 [CUA_I32] = FIND(even_i32),
		 [CUA_U32] = FIND(even_u32),
		 [CUA_I64] = FIND(even_i64),
		 [CUA_U64] = FIND(even_u64),
		 [CUA_F16] = FIND(even_f16),
		 [CUA_BF16] = FIND(even_bf16),
		 [CUA_F32] = FIND(even_f32),
		 [CUA_F64] = FIND(even_f64)},
	.edges = {[CUA_I8] = FIND(edges_i8),
		  [CUA_U8] = FIND(edges_u8),
		  [CUA_I16] = FIND(edges_i16),
		  [CUA_U16] = FIND(edges_u16),
		  [CUA_I32] = FIND(edges_i32),
		  [CUA_U32] = FIND(edges_u32),
		  [CUA_I64] = FIND(edges_i64),
		  [CUA_U64] = FIND(edges_u64),
		  [CUA_F16] = FIND(edges_f16),
		  [CUA_BF16] = FIND(edges_bf16),
		  [CUA_F32] = FIND(edges_f32),
		  [CUA_F64] = FIND(edges_f64)},
};

#undef FIND_LOOPS
#undef FIND_FUNCTION
#undef DEFINE_FIND
#undef DEFINE_EVEN_INTEGER
#undef FLOAT_SIDE
#undef DEFINE_EVEN_HALF
#undef DEFINE_EVEN_FLOAT
#undef SAME
#undef KEYS_AT_A_TIME
#undef DEFINE_SEARCH
#undef DEFINE_EDGES
#undef LEAST_F32
#undef MOST_F32
#undef LEAST_F64
#undef MOST_F64
#undef FIND
#undef FIND_TARGET
