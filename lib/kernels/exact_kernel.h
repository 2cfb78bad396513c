/* SPDX-License-Identifier: MIT */
/*
 * The kernel of exact sums. It is written over the port layer, so the SIMT checker runs the same
 * code as a GPU.
 *
 * A lane adds its elements to windows in registers (exact_windows.h), a tile at a time: first to
 * 64-bit sums of the tile, and if all elements of the tile fit, to the windows. All lanes of a warp
 * have the same windows. If a tile of any lane does not fit, the warp retries element by element.
 * It first chooses windows for these tiles, unless at least half of the elements fit the old
 * windows. Elements that still do not fit are added to the block's digits, in shared memory. A
 * window has 128 bits per lane, so it cannot overflow.
 *
 * Sums of 16-bit floats have narrow windows, because conversions to double would bound the speed:
 * - A window has 41 bits, from 2^k on. A lane splits an element v by additions in float: with
 *   M = 1.5 * 2^(k + 42), (v + M) - M is a multiple of 2^(k + 19) if |v| < 2^(k + 41). The rest is
 *   at most 2^(k + 18).
 * - The bits of v + M are added in 32 bits, and the rests in float. A tile has at most 64 elements
 *   per lane, so the first sum is below 2^29. If the elements are multiples of 2^k, the partial
 *   sums of the rests are multiples of 2^k up to 2^(k + 24), hence exact.
 * - An element of f16 always fits, except infinities and NaNs: these make the sum of rests NaN. For
 *   bf16 the tile has the least and the greatest magnitude of its nonzero elements. Both are found
 *   with operations on pairs of 16-bit integers.
 *
 * At the end, and before it changes its windows, a warp flushes them: it adds them up over its
 * lanes and then to the block's digits. At the end, the block adds its digits to the digits of the
 * launch. The block that arrives last rounds them, or adds them to a partial.
 *
 * Argument:
 * - All additions to digits are atomic, relaxed and of integers, so their order does not matter.
 * - A barrier of the block precedes each read of the block's digits.
 * - A block's additions to the digits of the launch precede its barrier, and so the arrival of its
 *   thread 0, with acquire and release. Thread 0 of the last block acquires all of these additions
 *   and passes them to its block by a barrier. The last block resets the state to zero for the next
 *   launch.
 * - A digit has room for 2^31 additions of 32 bits. A tile makes fewer than 2^18 additions to any
 *   digit of its block, even element by element. So every CUA__EXACT_TILES tiles the block carries
 *   the bits above 32 to the next digit.
 * - A block adds less than 2^33 to a digit of the launch, and a launch has at most 2^20 blocks.
 */
#ifndef CUATOMIC_KERNELS_EXACT_KERNEL_H
#define CUATOMIC_KERNELS_EXACT_KERNEL_H

#include "kernels/cached.h"
#include "kernels/exact_windows.h"

/* Tiles after which a block carries its digits; a power of two. */
#ifndef CUA__EXACT_TILES
#define CUA__EXACT_TILES 8192
#endif

/* 16-byte loads in flight per thread, over both arrays. */
#define CUA__EXACT_LOADS 8

/* Shared memory of a block. */
struct cua__exact_shared {
	int64_t digit[CUA_EXACT_DIGITS];
	uint32_t flags;
	uint32_t lo, hi; /* all nonzero digits are in lo to hi */
	uint32_t last;
};

/*
 * The windows of a lane: k of the first, and for each the constant M and the sum of 128 bits, in
 * units of its quantum.
 */
struct cua__exact_windows {
	int k;
	double m[3];
	uint64_t low[3];
	int64_t high[3];
};

/*
 * A lane's additions of a tile, until it is known whether they fit: for each window the sum of the
 * bits of v + M; the differences of their upper halves from M's, by OR; and the rests, by OR.
 *
 * Narrow windows: sum[0] has the sum of the bits of v + M modulo 2^32. `rests` has the sums of the
 * rests of even and odd elements. `greatest` has the greatest magnitude of the even and of the odd
 * elements, `least` the least nonzero magnitude, plus 0x7fff.
 */
struct cua__exact_tile {
	uint64_t sum[3];
	uint32_t bad;
	uint64_t rest;
	float rests[2];
	uint32_t greatest, least;
};

/*
 * Narrow windows: bits above 2^k, and bits of the rests. The least k is the exponent of the least
 * bf16, and the greatest k is the last with a finite M.
 */
#define CUA__NARROW_BITS 41
#define CUA__NARROW_RESTS 19
#define CUA__NARROW_LEAST (-133)
#define CUA__NARROW_MOST (127 - CUA__NARROW_BITS - 1)

#define CUA__EXACT_WHERE CUA_RELAXED, CUA_SCOPE_BLOCK, CUA_SPACE_SHARED

/* ---- kinds: a type, for sums or dot products ---- */

CUA_FORCE int cua__exact_windows_of(enum cua_type type, int dot)
{
	return type == CUA_F64 ? (dot ? 3 : 2) : dot && type != CUA_F16 ? 2 : 1;
}

/* Whether the windows are narrow. */
CUA_FORCE int cua__exact_narrow(enum cua_type type, int dot)
{
	return (type == CUA_F16 || type == CUA_BF16) && !dot;
}

CUA_FORCE int cua__exact_least(enum cua_type type, int dot)
{
	return type == CUA_F16 && !dot    ? -24
	       : type == CUA_BF16 && !dot ? CUA__NARROW_LEAST
	       : type == CUA_F64 && dot   ? CUA__WINDOW_LEAST_DOT_F64
					  : CUA__WINDOW_LEAST(cua__exact_windows_of(type, dot));
}

CUA_FORCE int cua__exact_most(enum cua_type type, int dot)
{
	return type == CUA_F16 && !dot    ? -24
	       : type == CUA_BF16 && !dot ? CUA__NARROW_MOST
					  : CUA__WINDOW_MOST;
}

/* k of the first window for elements below 2^(power + 1). */
CUA_FORCE int cua__exact_window_for(enum cua_type type, int dot, int power)
{
	const int more = cua__exact_narrow(type, dot) ? CUA__WINDOW_STEP - CUA__NARROW_BITS : 0;

	return cua__window_for(power + more, cua__exact_least(type, dot),
			       cua__exact_most(type, dot));
}

CUA_FORCE double cua__exact_double(enum cua_type type, uint64_t bits)
{
	if (type == CUA_F64)
		return cua__from_bits_f64(bits);
	return cua_port_cvt_f64_f32(cua__element_f32(type, bits));
}

CUA_FORCE struct cua__exact_parts cua__exact_parts_in(enum cua_type type, uint64_t bits)
{
	if (type == CUA_F64)
		return cua__exact_parts_of(bits, CUA__EXACT_FRACTION_f64, CUA__EXACT_EXPONENT_f64);
	if (type == CUA_F32)
		return cua__exact_parts_of(bits, CUA__EXACT_FRACTION_f32, CUA__EXACT_EXPONENT_f32);
	if (type == CUA_F16)
		return cua__exact_parts_of(bits, CUA__EXACT_FRACTION_f16, CUA__EXACT_EXPONENT_f16);
	return cua__exact_parts_of(bits, CUA__EXACT_FRACTION_bf16, CUA__EXACT_EXPONENT_bf16);
}

/* ---- a block's digits ---- */

CUA_FORCE void cua__exact_add_digit(struct cua__exact_shared *s, int i, uint64_t size,
				    uint32_t negative)
{
	if (size)
		cua_port_add_u64((uint64_t *)(void *)&s->digit[i], negative ? 0 - size : size,
				 CUA__EXACT_WHERE);
}

/* Adds mantissa 2^at. Bit 0 of digit 0 has weight 2^0. */
CUA_FN void cua__exact_add_digits(struct cua__exact_shared *s, uint32_t negative, uint64_t mantissa,
				  int at)
{
	int shift = at & 31;
	uint64_t low = mantissa << shift;

	cua__exact_add_digit(s, at >> 5, low & 0xffffffffu, negative);
	cua__exact_add_digit(s, (at >> 5) + 1, low >> 32, negative);
	cua__exact_add_digit(s, (at >> 5) + 2, mantissa >> 1 >> (63 - shift), negative);
}

CUA_FN void cua__exact_add_flags(struct cua__exact_shared *s, uint32_t flags)
{
	if (flags)
		cua_port_or_b32(&s->flags, flags, CUA__EXACT_WHERE);
}

/* Adds an element or a product to the digits directly. */
CUA_FORCE void cua__exact_add_element(struct cua__exact_shared *s, enum cua_type type, int dot,
				      uint64_t a, uint64_t b)
{
	struct cua__exact_parts x = cua__exact_parts_in(type, a), y;
	uint64_t x0, x1, y0, y1;
	uint32_t negative;
	int at;

	if (!dot) {
		if (x.flags)
			cua__exact_add_flags(s, x.flags);
		else
			cua__exact_add_digits(s, x.negative, x.mantissa, x.at);
		return;
	}
	y = cua__exact_parts_in(type, b);
	if (x.flags | y.flags) {
		cua__exact_add_flags(s, cua__exact_product_flags(x, y));
		return;
	}
	negative = x.negative ^ y.negative;
	at = x.at + y.at - CUA__EXACT_POINT;
	x0 = x.mantissa & 0xffffffffu;
	x1 = x.mantissa >> 32;
	y0 = y.mantissa & 0xffffffffu;
	y1 = y.mantissa >> 32;
	cua__exact_add_digits(s, negative, x0 * y0, at);
	if (type == CUA_F64) {
		cua__exact_add_digits(s, negative, x0 * y1 + x1 * y0, at + 32);
		cua__exact_add_digits(s, negative, x1 * y1, at + 64);
	}
}

/*
 * Each digit carries the bits above 32 to the next digit once; it is then below 2^33. The whole
 * block calls.
 */
CUA_FN void cua__exact_carry_block(struct cua__exact_shared *s)
{
	const uint32_t step = cua_port_block_size();

	cua_port_sync_block();
	/* in rounds from the top digits down, so that no carry moves twice */
	for (int round = (CUA_EXACT_DIGITS - 1) / (int)step; round >= 0; round--) {
		uint32_t i = (uint32_t)round * step + cua_port_thread();
		int64_t v = 0;

		if (i < CUA_EXACT_DIGITS - 1) {
			v = CUA_READ(s->digit[i]);
			CUA_WRITE(s->digit[i], v & 0xffffffff);
		}
		cua_port_sync_block();
		if (i < CUA_EXACT_DIGITS - 1 && v >> 32)
			CUA_WRITE(s->digit[i + 1],
				  cua__exact_plus(CUA_READ(s->digit[i + 1]), v >> 32));
		cua_port_sync_block();
	}
}

/* ---- windows ---- */

CUA_FORCE void cua__exact_open(struct cua__exact_windows *w, int windows, int k)
{
	w->k = k;
	CUA__UNROLL
	for (int i = 0; i < windows; i++) {
		uint64_t bits = cua__window_bits(k - i * CUA__WINDOW_STEP);

		memcpy(&w->m[i], &bits, sizeof(bits));
		w->low[i] = 0;
		w->high[i] = 0;
	}
}

/* The sum of v over the warp; the result is in its first lane. */
CUA_FORCE uint64_t cua__exact_warp_sum(uint32_t mask, uint64_t v)
{
	uint32_t lane = cua_port_lane();

	CUA__UNROLL
	for (uint32_t d = CUA_WARP_LANES / 2; d > 0; d /= 2) {
		uint64_t other = cua_port_shuffle_u64(mask, v, lane + d);

		if (lane + d < CUA_WARP_LANES && mask >> (lane + d) & 1)
			v += other;
	}
	return v;
}

/* Adds the windows of the whole warp to the block's digits. */
CUA_FORCE void cua__exact_flush(struct cua__exact_shared *s, const struct cua__exact_windows *w,
				int windows, uint32_t mask)
{
	CUA__UNROLL
	for (int i = 0; i < windows; i++) {
		int at = w->k - i * CUA__WINDOW_STEP + CUA__EXACT_POINT;
		uint64_t first = cua__exact_warp_sum(mask, w->low[i] & 0xffffffffu);
		uint64_t second = cua__exact_warp_sum(mask, w->low[i] >> 32);
		int64_t third = (int64_t)cua__exact_warp_sum(mask, (uint64_t)w->high[i]);

		if (cua_port_lane() == 0) {
			cua__exact_add_digits(s, 0, first, at);
			cua__exact_add_digits(s, 0, second, at + 32);
			cua__exact_add_digits(s, third < 0,
					      third < 0 ? 0 - (uint64_t)third : (uint64_t)third,
					      at + 64);
		}
	}
}

CUA_FORCE void cua__exact_clear(struct cua__exact_tile *t)
{
	t->sum[0] = t->sum[1] = t->sum[2] = 0;
	t->bad = 0;
	t->rest = 0;
	t->rests[0] = t->rests[1] = 0;
	t->greatest = 0;
	t->least = 0x7fff7fff;
}

/* Adds v to window i and returns the rest. */
CUA_FORCE double cua__exact_step(struct cua__exact_tile *t, const struct cua__exact_windows *w,
				 int i, double v)
{
	double sum = cua_port_add_rn_f64(v, w->m[i]);
	uint64_t bits = cua__exact_bits_f64(sum);

	t->sum[i] += bits;
	t->bad |= (uint32_t)((bits ^ cua__exact_bits_f64(w->m[i])) >> 32);
	return cua_port_sub_rn_f64(v, cua_port_sub_rn_f64(sum, w->m[i]));
}

/* Adds an element or a product. */
CUA_FORCE void cua__exact_fold(struct cua__exact_tile *t, const struct cua__exact_windows *w,
			       enum cua_type type, int dot, uint64_t a, uint64_t b)
{
	double x = cua__exact_double(type, a), y, error, v = x;

	if (dot) {
		y = cua__exact_double(type, b);
		v = cua_port_mul_rn_f64(x, y);
		if (type == CUA_F64) {
			error = cua_port_fma_rn_f64(x, y, -v);
			/* the whole product has underflowed */
			if (v == 0 && x != 0 && y != 0)
				t->bad = ~(uint32_t)0;
			error = cua__exact_step(t, w, 1, error);
			t->rest |= cua__exact_bits_f64(cua__exact_step(t, w, 2, error));
		}
	}
	v = cua__exact_step(t, w, 0, v);
	if (cua__exact_windows_of(type, dot) > 1)
		v = cua__exact_step(t, w, 1, v);
	t->rest |= cua__exact_bits_f64(v);
}

/* The greater, and the lesser signed, of each pair of 16-bit integers. */
CUA_FORCE uint32_t cua__exact_max_u16x2(uint32_t a, uint32_t b)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDACC_VER_MAJOR__ >= 12
	asm("max.u16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
	return a;
#elif defined(__CUDA_ARCH__)
	return __vmaxu2(a, b);
#else
	const uint32_t high = a >> 16 > b >> 16 ? a : b, low = (uint16_t)a > (uint16_t)b ? a : b;

	return (high & 0xffff0000u) | (low & 0xffffu);
#endif
}

CUA_FORCE uint32_t cua__exact_min_s16x2(uint32_t a, uint32_t b)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDACC_VER_MAJOR__ >= 12
	asm("min.s16x2 %0, %0, %1;" : "+r"(a) : "r"(b));
	return a;
#elif defined(__CUDA_ARCH__)
	return __vmins2(a, b);
#else
	/* with the sign bits inverted, the order is that of unsigned integers */
	return ~cua__exact_max_u16x2(~(a ^ 0x80008000u), ~(b ^ 0x80008000u)) ^ 0x80008000u;
#endif
}

/* The bits of the float M of a narrow window. */
CUA_FORCE uint32_t cua__narrow_bits(int k)
{
	return (uint32_t)(k + CUA__NARROW_BITS + 1 + 127) << 23 | (uint32_t)1 << 22;
}

/* Adds the two elements of a word to a narrow window. */
CUA_FORCE void cua__exact_fold_narrow(struct cua__exact_tile *t, int k, enum cua_type type,
				      uint32_t word)
{
	const float m = cua__from_bits_f32(cua__narrow_bits(k));

	CUA__UNROLL
	for (int i = 0; i < 2; i++) {
		const uint32_t half = i ? word >> 16 : word & 0xffff;
		const float v = type == CUA_F16
					? cua__element_f32(type, half)
					: cua__from_bits_f32(i ? word & 0xffff0000u : word << 16);
		const float sum = cua_port_add_rn_f32(v, m);
		const float rest = cua_port_sub_rn_f32(v, cua_port_sub_rn_f32(sum, m));

		t->sum[0] = (uint32_t)t->sum[0] + cua__bits_f32(sum);
		t->rests[i] = cua_port_add_rn_f32(t->rests[i], rest);
	}
	if (type == CUA_BF16) {
		word &= 0x7fff7fff;
		t->greatest = cua__exact_max_u16x2(t->greatest, word);
		/* zeros become the greatest signed integers, other magnitudes negative */
		t->least = cua__exact_min_s16x2(t->least, word + 0x7fff7fff);
	}
}

/* Whether the tile fits the windows. */
CUA_FORCE int cua__exact_fits(const struct cua__exact_tile *t, const struct cua__exact_windows *w,
			      enum cua_type type, int dot)
{
	if (!cua__exact_narrow(type, dot))
		return t->bad >> 20 == 0 && t->rest << 1 == 0;
	if (type == CUA_F16) {
		const float rests = t->rests[0] + t->rests[1];

		return rests == rests;
	}
	/*
	 * of bf16 patterns: the first magnitude of 2^(k + 41), and the first normal magnitude whose
	 * last bit is at least 2^k; with the least k every magnitude is a multiple of 2^k
	 */
	const uint32_t end = (uint32_t)(w->k + CUA__NARROW_BITS + 127) << 7;
	const uint32_t begin = w->k == CUA__NARROW_LEAST ? 1 : (uint32_t)(w->k + 7 + 127) << 7;
	const uint32_t least = t->least ^ 0x80008000u; /* less 1; zeros are the greatest */

	return t->greatest >> 16 < end && (t->greatest & 0xffff) < end &&
	       least >> 16 >= begin - 1 && (least & 0xffff) >= begin - 1;
}

/* Commits a tile that fits to the windows. `elements` is its number of elements in this lane. */
CUA_FORCE void cua__exact_commit(struct cua__exact_windows *w, const struct cua__exact_tile *t,
				 enum cua_type type, int dot, uint32_t elements)
{
	int windows = cua__exact_windows_of(type, dot);

	if (cua__exact_narrow(type, dot)) {
		const uint32_t first = (uint32_t)t->sum[0] - elements * cua__narrow_bits(w->k);
		const double unit = cua__from_bits_f64((uint64_t)(1023 - w->k) << 52);
		const double rests = cua_port_cvt_f64_f32(t->rests[0] + t->rests[1]);
		const uint64_t v = ((uint64_t)(int64_t)(int32_t)first << CUA__NARROW_RESTS) +
				   (uint64_t)(int64_t)(rests * unit);

		w->low[0] += v;
		w->high[0] += ((int64_t)v >> 63) + (w->low[0] < v);
		return;
	}
	CUA__UNROLL
	for (int i = 0; i < windows; i++) {
		/* the second window also has the errors of products */
		uint64_t additions = windows == 3 && i == 1 ? 2 * elements : elements;
		uint64_t v = t->sum[i] - additions * cua__exact_bits_f64(w->m[i]);

		w->low[i] += v;
		w->high[i] += ((int64_t)v >> 63) + (w->low[i] < v);
	}
}

/* ---- a tile that does not fit ---- */

/* The exponent of the leading bit. */
CUA_FORCE int cua__exact_leading(struct cua__exact_parts v)
{
	/* the conversion to double is exact */
	return v.at - CUA__EXACT_POINT + (int)(cua__exact_bits_f64((double)v.mantissa) >> 52) -
	       1023;
}

/*
 * An exponent that the leading bit of the element or product does not exceed; below -9999 for zero.
 */
CUA_FORCE int cua__exact_power(enum cua_type type, int dot, uint64_t a, uint64_t b)
{
	struct cua__exact_parts x = cua__exact_parts_in(type, a),
				y = cua__exact_parts_in(type, dot ? b : 0);

	if (x.flags || y.flags || !x.mantissa || (dot && !y.mantissa))
		return -10000;
	if (!dot)
		return cua__exact_leading(x);
	return cua__exact_leading(x) + cua__exact_leading(y) + 1;
}

/* Loads pack i of m, of N elements. Returns zeros if i >= m. */
CUA_FORCE struct cua__pack cua__exact_pack_at(enum cua_type type, int N, const void *x, uint64_t i,
					      uint64_t m, uint64_t policy)
{
	struct cua__pack p = {{0, 0, 0, 0}};
	uint64_t v;

	if (i >= m)
		return p;
	if (N > 1)
		return cua__cached_load((const struct cua__pack *)x + i, policy);
	v = cua__element_load(cua__element_size(type), x, i);
	p.word[0] = (uint32_t)v;
	p.word[1] = (uint32_t)(v >> 32);
	return p;
}

/* The packs of a launch, and the cache policies of the present tile. */
struct cua__exact_arrays {
	enum cua_type type;
	int dot;
	int per_pack; /* elements of a pack; 1 if x and y are not both aligned to 16 bytes */
	const void *x, *y;
	uint64_t packs;
	uint64_t policy_x, policy_y;
};

/*
 * Adds the tiles of a warp element by element. A lane has `packs` packs of in.per_pack elements:
 * the first at index `first`, each later pack `stride` packs further, none at or after in.packs. A
 * pack is loaded while the previous pack is added, because nothing else hides the latency.
 */
CUA_FORCE void cua__exact_retry(struct cua__exact_shared *s, struct cua__exact_windows *w,
				const struct cua__exact_arrays in, uint64_t first, uint32_t stride,
				uint32_t packs, uint32_t mask)
{
	const enum cua_type type = in.type;
	const int dot = in.dot, N = in.per_pack;
	const int windows = cua__exact_windows_of(type, dot);
	/* with a narrow window, an element is added with a zero */
	const int narrow = cua__exact_narrow(type, dot);
	const uint32_t lane = cua_port_lane();
	const struct cua__pack none = {{0, 0, 0, 0}};
	int power = -10000, k;
	uint64_t votes = 0; /* low half: elements that fit; high half: elements that do not */

	/* first round: choose windows; second round: add */
	for (int adding = 0; adding < 2; adding++) {
		struct cua__pack a, b = none, next_a, next_b = none;

		next_a = cua__exact_pack_at(type, N, in.x, first, in.packs, in.policy_x);
		if (dot)
			next_b = cua__exact_pack_at(type, N, in.y, first, in.packs, in.policy_y);
		for (uint32_t l = 0; l < packs; l++) {
			uint64_t next = first + (l + 1) * (uint64_t)stride;

			a = next_a;
			b = next_b;
			if (l + 1 < packs) {
				next_a = cua__exact_pack_at(type, N, in.x, next, in.packs,
							    in.policy_x);
				if (dot)
					next_b = cua__exact_pack_at(type, N, in.y, next, in.packs,
								    in.policy_y);
			}
			if (next - stride >= in.packs)
				break;
			CUA__UNROLL
			for (int j = 0; j < N; j++) {
				uint64_t u = cua__pack_element(cua__element_size(type), &a, j),
					 v = cua__pack_element(cua__element_size(type), &b, j);
				struct cua__exact_tile t;
				int fits, p;

				cua__exact_clear(&t);
				if (narrow)
					cua__exact_fold_narrow(&t, w->k, type, (uint32_t)u);
				else
					cua__exact_fold(&t, w, type, dot, u, v);
				fits = cua__exact_fits(&t, w, type, dot);
				if (!adding) {
					p = cua__exact_power(type, dot, u, v);
					power = p > power ? p : power;
					votes += fits ? 1 : (uint64_t)1 << 32;
				} else if (fits) {
					cua__exact_commit(w, &t, type, dot, narrow ? 2 : 1);
				} else {
					cua__exact_add_element(s, type, dot, u, v);
				}
			}
		}
		if (adding)
			break;
		votes = cua_port_shuffle_u64(mask, cua__exact_warp_sum(mask, votes), 0);
		for (uint32_t d = CUA_WARP_LANES / 2; d > 0; d /= 2) {
			int other = (int)cua_port_shuffle_u32(mask, (uint32_t)power, lane ^ d);

			if (mask >> (lane ^ d) & 1 && other > power)
				power = other;
		}
		/* in a warp with missing lanes the exchange is incomplete; lane 0 decides */
		power = (int)cua_port_shuffle_u32(mask, (uint32_t)power, 0);
		k = cua__exact_window_for(type, dot, power);
		/* a few elements far from the others do not move the windows */
		if (power > -10000 && k != w->k && votes >> 32 > (votes & 0xffffffffu)) {
			cua__exact_flush(s, w, windows, mask);
			cua__exact_open(w, windows, k);
		}
	}
}

/* ---- a block ---- */

/* Adds all packs. */
CUA_FORCE void cua__exact_packs(struct cua__exact_shared *s, struct cua__exact_windows *w,
				struct cua__exact_arrays in, const struct cua__cached *cached)
{
	const enum cua_type type = in.type;
	const int dot = in.dot, N = in.per_pack;
	enum { MOST = CUA__EXACT_LOADS };
	const uint32_t packs = N == 1 || !dot ? MOST : MOST / 2, size = cua_port_block_size();
	const uint32_t thread = cua_port_thread(), warp = thread / CUA_WARP_LANES * CUA_WARP_LANES;
	const uint32_t lanes = size - warp < CUA_WARP_LANES ? size - warp : CUA_WARP_LANES;
	const uint32_t mask = (uint32_t)(((uint64_t)1 << lanes) - 1);
	const uint64_t tile = (uint64_t)size * packs, stride = tile * cua_port_grid_size();
	const struct cua__pack *xs = (const struct cua__pack *)in.x;
	const struct cua__pack *ys = (const struct cua__pack *)in.y;
	uint32_t tiles = 0;

	for (uint64_t first = cua_port_block() * tile; first < in.packs; first += stride) {
		struct cua__pack a[MOST], b[MOST];
		struct cua__exact_tile t;

		in.policy_x = cua__cached_policy(cached, xs + first);
		in.policy_y = cua__cached_policy(cached, ys + first);
		CUA__UNROLL
		for (uint32_t l = 0; l < packs; l++) {
			uint64_t i = first + (uint64_t)l * size + thread;

			a[l] = cua__exact_pack_at(type, N, in.x, i, in.packs, in.policy_x);
			b[l] = dot ? cua__exact_pack_at(type, N, in.y, i, in.packs, in.policy_y)
				   : a[l];
		}
		cua__exact_clear(&t);
		CUA__UNROLL
		for (uint32_t l = 0; l < packs; l++) {
			if (cua__exact_narrow(type, dot)) {
				CUA__UNROLL
				for (int j = 0; j < 4; j++)
					cua__exact_fold_narrow(&t, w->k, type, a[l].word[j]);
				continue;
			}
			CUA__UNROLL
			for (int j = 0; j < N; j++)
				cua__exact_fold(
					&t, w, type, dot,
					cua__pack_element(cua__element_size(type), &a[l], j),
					cua__pack_element(cua__element_size(type), &b[l], j));
		}
		if (cua_port_ballot(mask, !cua__exact_fits(&t, w, type, dot)))
			cua__exact_retry(s, w, in, first + thread, size, packs, mask);
		else
			cua__exact_commit(w, &t, type, dot, packs * (uint32_t)N);
		if (++tiles % CUA__EXACT_TILES == 0)
			cua__exact_carry_block(s);
	}
	cua__exact_flush(s, w, cua__exact_windows_of(type, dot), mask);
}

/* The last block turns the digits of the launch, complete in s, into the result. */
CUA_FN void cua__exact_finish_block(struct cua__exact_shared *s, const struct cua__exact *r)
{
	const uint32_t step = cua_port_block_size(), thread = cua_port_thread();
	int lo, hi;

	if (!r->result && !r->fresh) {
		for (uint32_t i = thread; i < CUA_EXACT_DIGITS; i += step)
			CUA_WRITE(s->digit[i], cua__exact_plus(CUA_READ(s->digit[i]),
							       CUA_READ(r->partial->digit[i])));
		if (thread == 0) {
			cua__exact_add_flags(s, CUA_READ(r->partial->flags));
			if (CUA_READ(r->partial->layout) != CUA_EXACT_LAYOUT)
				cua__exact_add_flags(s, CUA_EXACT_NAN);
		}
	}
	if (thread == 0) {
		CUA_WRITE(s->lo, CUA_EXACT_DIGITS - 1);
		CUA_WRITE(s->hi, 0);
	}
	cua_port_sync_block();
	for (uint32_t i = thread; i < CUA_EXACT_DIGITS; i += step) {
		if (CUA_READ(s->digit[i])) {
			cua_port_min_u32(&s->lo, i, CUA__EXACT_WHERE);
			cua_port_max_u32(&s->hi, i, CUA__EXACT_WHERE);
		}
	}
	cua_port_sync_block();
	if (thread == 0) {
		lo = (int)CUA_READ(s->lo);
		/* a digit has less than 64 bits, so carries end there */
		hi = (int)CUA_READ(s->hi) + 2;
		if (!r->result || hi >= CUA_EXACT_DIGITS)
			hi = CUA_EXACT_DIGITS - 1;
		lo = lo < hi ? lo : hi;
		cua__exact_carry(s->digit, lo, hi);
		if (r->result)
			cua__exact_store(s->digit, lo, hi, CUA_READ(s->flags), r->result_type,
					 r->result);
	}
	if (r->result)
		return;
	cua_port_sync_block();
	for (uint32_t i = thread; i < CUA_EXACT_DIGITS; i += step)
		CUA_WRITE(r->partial->digit[i], CUA_READ(s->digit[i]));
	if (thread == 0) {
		CUA_WRITE(r->partial->layout, CUA_EXACT_LAYOUT);
		CUA_WRITE(r->partial->flags, CUA_READ(s->flags));
		CUA_WRITE(r->partial->pending, 0);
		CUA_WRITE(r->partial->reserved, 0);
	}
}

/*
 * Adds this block's digits to those of the launch. Returns 1 in the block that arrives last, with
 * all digits in s.
 */
CUA_FN int cua__exact_arrive(struct cua__exact_shared *s, struct cua__exact_state *state)
{
	const uint32_t step = cua_port_block_size(), thread = cua_port_thread();
	const uint64_t blocks = cua_port_grid_size();

	cua__exact_carry_block(s);
	if (blocks == 1)
		return 1;
	for (uint32_t i = thread; i < CUA_EXACT_DIGITS; i += step) {
		int64_t v = CUA_READ(s->digit[i]);

		if (v)
			cua_port_add_u64((uint64_t *)(void *)&state->digit[i], (uint64_t)v,
					 CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
	}
	if (thread == 0 && CUA_READ(s->flags))
		cua_port_or_b32(&state->flags, CUA_READ(s->flags), CUA_RELAXED, CUA_SCOPE_DEVICE,
				CUA_SPACE_GLOBAL);
	cua_port_sync_block();
	if (thread == 0)
		CUA_WRITE(s->last, (uint32_t)cua__finish_arrive(&state->finish, blocks));
	cua_port_sync_block();
	if (!CUA_READ(s->last))
		return 0;
	for (uint32_t i = thread; i < CUA_EXACT_DIGITS; i += step) {
		CUA_WRITE(s->digit[i],
			  (int64_t)cua_port_load_b64(&state->digit[i], CUA_RELAXED,
						     CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL));
		cua_port_store_b64(&state->digit[i], 0, CUA_RELAXED, CUA_SCOPE_DEVICE,
				   CUA_SPACE_GLOBAL);
	}
	if (thread == 0) {
		CUA_WRITE(s->flags, cua_port_load_b32(&state->flags, CUA_RELAXED, CUA_SCOPE_DEVICE,
						      CUA_SPACE_GLOBAL));
		cua_port_store_b32(&state->flags, 0, CUA_RELAXED, CUA_SCOPE_DEVICE,
				   CUA_SPACE_GLOBAL);
	}
	cua_port_sync_block();
	return 1;
}

CUA_FORCE void cua__exact_begin(struct cua__exact_shared *s)
{
	for (uint32_t i = cua_port_thread(); i < CUA_EXACT_DIGITS; i += cua_port_block_size())
		CUA_WRITE(s->digit[i], 0);
	if (cua_port_thread() == 0)
		CUA_WRITE(s->flags, 0);
	cua_port_sync_block();
}

/* A block's work of a whole launch. type and dot are those of r, as constants. */
CUA_FORCE void cua__exact_block(struct cua__exact_shared *s, const struct cua__exact *r,
				enum cua_type type, int dot)
{
	const uint32_t size = cua__element_size(type), N = 16 / size;
	const char *x = (const char *)r->x, *y = (const char *)(dot ? r->y : r->x);
	struct cua__exact_arrays in = {type, dot, 1, x, y, 0, 0, 0};
	struct cua__exact_windows w;
	struct cua__cached cached;
	uint64_t n = r->n, i;

	if (r->count && *r->count < n)
		n = *r->count;
	cached = cua__cached(n * size * (dot ? 2 : 1), r->kept_bytes);
	cua__exact_begin(s);
	cua__exact_open(&w, cua__exact_windows_of(type, dot), cua__exact_window_for(type, dot, 0));
	if (((uintptr_t)x ^ (uintptr_t)y) & 15) {
		/* x and y have no 16-byte boundary in common */
		in.packs = n;
		cua__exact_packs(s, &w, in, &cached);
	} else {
		uint64_t head = ((0 - (uintptr_t)x) & 15) / size, m, tail;

		head = head < n ? head : n;
		m = (n - head) / N;
		tail = head + m * N;
		/* fewer than N elements remain at either end */
		if (cua_port_block() == 0) {
			for (i = cua_port_thread(); i < head + (n - tail);
			     i += cua_port_block_size()) {
				uint64_t at = i < head ? i : tail + (i - head);

				cua__exact_add_element(
					s, type, dot,
					cua__element_load(cua__element_size(type), x, at),
					dot ? cua__element_load(cua__element_size(type), y, at)
					    : 0);
			}
		}
		in.per_pack = (int)N;
		in.x = x + head * size;
		in.y = y + head * size;
		in.packs = m;
		cua__exact_packs(s, &w, in, &cached);
	}
	if (cua__exact_arrive(s, r->state))
		cua__exact_finish_block(s, r);
}

/*
 * A single block computes *result, the sum of the partials. Digits of normalized sums are below 2^32,
 * so a digit of the sum of up to 2^31 partials does not overflow.
 */
CUA_FN void cua__exact_round_block(struct cua__exact_shared *s, const struct cua__exact *r)
{
	const uint32_t step = cua_port_block_size(), thread = cua_port_thread();

	cua__exact_begin(s);
	for (uint32_t i = thread; i < CUA_EXACT_DIGITS; i += step) {
		int64_t digit = 0;

		for (uint64_t p = 0; p < r->partials; p++)
			digit = cua__exact_plus(digit, CUA_READ(r->partial[p].digit[i]));
		CUA_WRITE(s->digit[i], digit);
	}
	for (uint64_t p = thread; p < r->partials; p += step)
		cua__exact_add_flags(s, CUA_READ(r->partial[p].layout) == CUA_EXACT_LAYOUT
						? CUA_READ(r->partial[p].flags)
						: CUA_EXACT_NAN);
	cua_port_sync_block();
	cua__exact_finish_block(s, r);
}

#endif /* CUATOMIC_KERNELS_EXACT_KERNEL_H */
