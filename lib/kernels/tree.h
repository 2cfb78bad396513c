/* SPDX-License-Identifier: MIT */
/*
 * Reductions in a fixed order: a tree that depends on the number of elements and their type alone.
 * So the result has the same bits on every GPU, for every grid, alignment and stream, and on the
 * CPU.
 *
 * Layout of the elements:
 * - pack: 16 bytes of elements, loaded by a lane at once.
 * - row: 32 packs, loaded by a warp at once.
 * - strip: consecutive rows, reduced by a warp. All strips have the same number of rows (`rows` of
 *   struct cua__tree_shape); only the last strip of the array may have fewer.
 * - chunk: CUA__TREE_WARPS consecutive strips, reduced by a block to a partial result.
 * - column j of a strip: element j of each of its rows.
 *
 * So strip w of chunk c begins at row (c * CUA__TREE_WARPS + w) * rows of the array. The number of
 * rows of a strip is the least multiple of CUA__TREE_ROWS that makes at most CUA__TREE_CHUNKS
 * chunks. It is not rounded to a power of two: strips are read side by side, and memory is slower
 * if their starts are powers of two apart.
 *
 * The tree, from its leaves to its root:
 * - A column folds in its elements row after row.
 * - The columns of a pack are combined with their neighbours, then pairs with pairs, and so on. The
 *   result is a value for each of the 32 packs of a strip's rows.
 * - These 32 values, and then the values of the chunk's strips, are combined by halving: value i
 *   combines with value i + d, for d half the number of values, then a fourth of it, and so on.
 * - The values of the chunks go round robin to CUA__TREE_THREADS accumulators: chunk c to
 *   accumulator c % CUA__TREE_THREADS, in ascending order. The accumulators are combined like the
 *   packs of a chunk: by halving within groups of 32, then over the groups.
 *
 * A missing element or chunk is left out of the tree. An implementation may combine with the value
 * of an empty column (cua__tree_none) instead. This changes no bit, because this value is the
 * identity of the kind's combine. For sums it is +0, which would change only -0; a sum starts from
 * +0, so it never is -0.
 *
 * Every rounding is explicit: the library is built without contraction, the device functions are
 * those of port.h, and the CPU backend replaces the caller's floating-point environment.
 *
 * On a GPU, a block stores a partial result for every chunk that it reduces. The block that arrives
 * last combines the partial results (tree_block.h). On the CPU, workers reduce many columns at once
 * (cpu_tree.c). Both call the functions of this file.
 */
#ifndef CUATOMIC_KERNELS_TREE_H
#define CUATOMIC_KERNELS_TREE_H

#include <cuatomic/atomic_half.h>
#include <cuatomic/reduce.h>

#include "backend/reduce_backend.h"

#define CUA__TREE_WARPS 8u
#define CUA__TREE_THREADS (32 * CUA__TREE_WARPS)
#define CUA__TREE_ROWS 8u
#define CUA__TREE_CHUNKS 2000u

struct cua__tree_shape {
	uint64_t n;
	uint64_t rows;   /* rows of a strip */
	uint64_t chunks; /* at least 1 */
};

/* size: bytes of an element. */
CUA_FN struct cua__tree_shape cua__tree_shape(uint64_t n, size_t size)
{
	struct cua__tree_shape s;
	uint64_t width = 32 * 16 / size, all = n / width + (n % width != 0);

	s.n = n;
	s.rows = CUA__TREE_ROWS;
	if (all)
		s.rows *= (all - 1) / (CUA__TREE_ROWS * CUA__TREE_WARPS * CUA__TREE_CHUNKS) + 1;
	s.chunks = all ? (all - 1) / (s.rows * CUA__TREE_WARPS) + 1 : 1;
	return s;
}

/*
 * The part of the tree that a call makes, for a call with n elements. The strips of a part are those
 * of the whole array. If the part begins at a chunk of the whole, so are its chunks. An empty part has
 * none.
 */
CUA_FN struct cua__tree_shape cua__tree_shape_of(const struct cua__reduce *r, uint64_t n,
						 size_t size)
{
	const uint64_t whole = r->whole ? r->whole : n, chunk = CUA__TREE_WARPS * (32 * 16 / size);
	struct cua__tree_shape s = cua__tree_shape(whole, size);

	s.n = n;
	if (r->step == CUA__TREE_ROOT)
		s.chunks = r->values;
	else if (r->whole)
		s.chunks = n ? (n - 1) / (chunk * s.rows) + 1 : 0;
	return s;
}

/*
 * Returns the number of complete rows of the strip at element `first`; *left is the number of
 * elements in the incomplete row after them. A row has `width` elements.
 */
CUA_FN uint32_t cua__tree_strip(const struct cua__tree_shape *s, uint64_t first, uint32_t width,
				uint32_t *left)
{
	uint64_t there = s->n > first ? s->n - first : 0;

	*left = 0;
	if (there >= s->rows * width)
		return (uint32_t)s->rows;
	*left = (uint32_t)(there % width);
	return (uint32_t)(there / width);
}

/* ---- values ---- */

/* A 128-bit sum of integers, in two's complement. */
struct cua__wide {
	uint64_t lo, hi;
};

/*
 * The greatest key and the index of the first element with this key. The index is UINT64_MAX if
 * every key is 0.
 */
struct cua__key_index {
	uint64_t key, index;
};

/* The number of elements, their mean, and the sum of their squared distances from it. */
struct cua__moments {
	double n, mean, squares;
};

/*
 * Sums of squares of large, medium and small elements. Large and small elements are scaled, because
 * their squares would overflow or underflow.
 */
struct cua__norm {
	double large, fit, small;
};

/*
 * Converts a double to float, rounding to odd. So a second rounding, to fewer bits, gives the same
 * as a single rounding of the double.
 */
CUA_FN float cua__f32_odd(double v)
{
	float f = (float)v;
	uint32_t bits = cua__bits_f32(f);
	double back = (double)f;

	if (back != v && v == v) {
		/* round towards zero, then set the last bit */
		if ((back < 0 ? -back : back) > (v < 0 ? -v : v))
			bits--;
		bits |= 1;
	}
	return cua__from_bits_f32(bits);
}

/* Rounds once to the result type. A NaN result has no sign and no payload. */
CUA_FN void cua__tree_store_f64(const struct cua__reduce *r, double v)
{
	/* a GPU's own conversion to 16 bits sets all payload bits of a NaN */
	const struct cua_f16 nan_f16 = {0x7e00};
	const struct cua_bf16 nan_bf16 = {0x7fc0};

	switch (r->result_type) {
	case CUA_F16:
		*(struct cua_f16 *)r->result = v != v ? nan_f16 : cua_f16_from_f32(cua__f32_odd(v));
		break;
	case CUA_BF16:
		*(struct cua_bf16 *)r->result =
			v != v ? nan_bf16 : cua_bf16_from_f32(cua__f32_odd(v));
		break;
	case CUA_F32: *(float *)r->result = cua__round_f32(v); break;
	default: *(double *)r->result = cua__round_f64(v); break;
	}
}

CUA_FN void cua__tree_store_complex(const struct cua__reduce *r, struct cua_complex_f64 v)
{
	if (r->result_type == CUA_COMPLEX_F32) {
		struct cua_complex_f32 *result = (struct cua_complex_f32 *)r->result;

		result->re = cua__round_f32(v.re);
		result->im = cua__round_f32(v.im);
	} else {
		struct cua_complex_f64 *result = (struct cua_complex_f64 *)r->result;

		result->re = cua__round_f64(v.re);
		result->im = cua__round_f64(v.im);
	}
}

CUA_FORCE double cua__tree_sqrt(double v)
{
#if defined(__CUDA_ARCH__)
	return __dsqrt_rn(v);
#else
	return __builtin_sqrt(v);
#endif
}

/* The sum divided by the number of elements; NaN if there are none. */
CUA_FN double cua__tree_mean(double sum, uint64_t n)
{
	return n ? cua_port_div_rn_f64(sum, (double)n) : cua__from_bits_f64(0x7ff8000000000000u);
}

/* ---- kinds of reductions ---- */

/*
 * A kind is a set of functions that serves several operations and types. Parameters in struct
 * cua__reduce (r below) distinguish the operations and types of a kind; `describe` of lib/reduce.c
 * sets them. A kind has three types:
 *
 *   T   an element          C   a column          A   a value that the tree combines
 *
 * and these functions:
 *
 *   C    cua__tree_none_<kind>(void)
 *          an empty column
 *   C    cua__tree_fold_<kind>(r, c, a, b, row)
 *          folds element a, and b of the second array, into column c; row counts from the
 *          strip's start. A kind with a single array ignores b.
 *   A    cua__tree_widen_<kind>(r, c, folded, first, columns)
 *          the value of a column of `folded` elements; its element of row 0 has index `first`
 *          in the array, and each later element is `columns` further
 *   A    cua__tree_combine_<kind>(a, b)
 *          combines a and b; a comes first
 *   void cua__tree_store_<kind>(r, n, a)
 *          stores the result of n elements
 */

/*
 * Integers of 32 and 64 bits: sum, sum of absolute values, mean. For signed elements r->sign is the
 * top bit: a column adds half of the type's range to each element, which makes it unsigned, and
 * widen subtracts the total. r->absolute has all bits set for the absolute values of signed
 * elements.
 */
#define CUA__TREE_UNUSED(r, b, row) ((void)(r), (void)(b), (void)(row))

CUA_FORCE uint64_t cua__tree_sum_b32_none(void)
{
	return 0;
}

CUA_FORCE uint64_t cua__tree_fold_sum_b32(const struct cua__reduce *r, uint64_t c, uint32_t a,
					  uint32_t b, uint32_t row)
{
	uint32_t turn = (0 - (a >> 31)) & (uint32_t)r->absolute;

	CUA__TREE_UNUSED(r, b, row);
	return c + (((a ^ turn) - turn) ^ (uint32_t)r->sign);
}

CUA_FORCE struct cua__wide cua__tree_wide_add(struct cua__wide a, struct cua__wide b)
{
	a.lo += b.lo;
	a.hi += b.hi + (a.lo < b.lo);
	return a;
}

CUA_FORCE struct cua__wide cua__tree_wide_sub(struct cua__wide a, struct cua__wide b)
{
	a.hi -= b.hi + (a.lo < b.lo);
	a.lo -= b.lo;
	return a;
}

CUA_FORCE struct cua__wide cua__tree_sum_b32_widen(const struct cua__reduce *r, uint64_t c,
						   uint64_t folded, uint64_t first,
						   uint64_t columns)
{
	struct cua__wide v = {c, 0}, moved = {r->sign * folded, 0};

	(void)first;
	(void)columns;
	return cua__tree_wide_sub(v, moved);
}

CUA_FN void cua__tree_wide_store(const struct cua__reduce *r, uint64_t n, struct cua__wide v)
{
	if (r->op == CUA_REDUCE_MEAN) {
		uint64_t turn = r->sign ? 0 - (v.hi >> 63) : 0;
		double sum;

		v.lo = (v.lo ^ turn) - turn;
		v.hi = (v.hi ^ turn) + (turn && !v.lo);
		sum = cua_port_add_rn_f64(cua_port_mul_rn_f64((double)v.hi, 0x1p64), (double)v.lo);
		cua__tree_store_f64(r, cua__tree_mean(turn ? -sum : sum, n));
	} else {
		*(uint64_t *)r->result = v.lo;
	}
}

CUA_FORCE struct cua__wide cua__tree_sum_b64_none(void)
{
	struct cua__wide none = {0, 0};

	return none;
}

CUA_FORCE struct cua__wide cua__tree_fold_sum_b64(const struct cua__reduce *r, struct cua__wide c,
						  uint64_t a, uint64_t b, uint32_t row)
{
	uint64_t turn = (0 - (a >> 63)) & r->absolute, v = ((a ^ turn) - turn) ^ r->sign;

	CUA__TREE_UNUSED(r, b, row);
	c.lo += v;
	c.hi += c.lo < v;
	return c;
}

CUA_FORCE struct cua__wide cua__tree_sum_b64_widen(const struct cua__reduce *r, struct cua__wide c,
						   uint64_t folded, uint64_t first,
						   uint64_t columns)
{
	struct cua__wide moved = {(folded & 1) << 63, folded >> 1};

	(void)first;
	(void)columns;
	return r->sign ? cua__tree_wide_sub(c, moved) : c;
}

/* Extends a 32-bit integer to 64 bits. */
CUA_FORCE uint64_t cua__tree_extend(const struct cua__reduce *r, uint32_t a)
{
	return (uint64_t)a - ((uint64_t)(a & (uint32_t)r->sign) << 1);
}

/* Dot products of integers, modulo 2^64. */
CUA_FORCE uint64_t cua__tree_fold_dot_b32(const struct cua__reduce *r, uint64_t c, uint32_t a,
					  uint32_t b, uint32_t row)
{
	(void)row;
	return c + cua__tree_extend(r, a) * cua__tree_extend(r, b);
}

CUA_FORCE uint64_t cua__tree_fold_dot_b64(const struct cua__reduce *r, uint64_t c, uint64_t a,
					  uint64_t b, uint32_t row)
{
	CUA__TREE_UNUSED(r, b, row);
	return c + a * b;
}

CUA_FORCE uint64_t cua__tree_u64_widen(const struct cua__reduce *r, uint64_t c, uint64_t folded,
				       uint64_t first, uint64_t columns)
{
	CUA__TREE_UNUSED(r, first, columns);
	(void)folded;
	return c;
}

CUA_FORCE uint64_t cua__tree_u64_add(uint64_t a, uint64_t b)
{
	return a + b;
}

CUA_FN void cua__tree_u64_store(const struct cua__reduce *r, uint64_t n, uint64_t v)
{
	(void)n;
	*(uint64_t *)r->result = v;
}

/* Products of integers, modulo 2^64. */
CUA_FORCE uint64_t cua__tree_product_b32_none(void)
{
	return 1;
}

CUA_FORCE uint64_t cua__tree_fold_product_b32(const struct cua__reduce *r, uint64_t c, uint32_t a,
					      uint32_t b, uint32_t row)
{
	CUA__TREE_UNUSED(r, b, row);
	return c * cua__tree_extend(r, a);
}

CUA_FORCE uint64_t cua__tree_fold_product_b64(const struct cua__reduce *r, uint64_t c, uint64_t a,
					      uint64_t b, uint32_t row)
{
	CUA__TREE_UNUSED(r, b, row);
	return c * a;
}

CUA_FORCE uint64_t cua__tree_u64_multiply(uint64_t a, uint64_t b)
{
	return a * b;
}

/* Counts nonzero elements. For floats r->keep excludes the sign bit, so -0 counts as zero. */
CUA_FORCE uint64_t cua__tree_fold_count_b16(const struct cua__reduce *r, uint64_t c, uint16_t a,
					    uint16_t b, uint32_t row)
{
	CUA__TREE_UNUSED(r, b, row);
	return c + ((a & (uint16_t)r->keep) != 0);
}

CUA_FORCE uint64_t cua__tree_fold_count_b32(const struct cua__reduce *r, uint64_t c, uint32_t a,
					    uint32_t b, uint32_t row)
{
	CUA__TREE_UNUSED(r, b, row);
	return c + ((a & (uint32_t)r->keep) != 0);
}

CUA_FORCE uint64_t cua__tree_fold_count_b64(const struct cua__reduce *r, uint64_t c, uint64_t a,
					    uint64_t b, uint32_t row)
{
	CUA__TREE_UNUSED(r, b, row);
	return c + ((a & r->keep) != 0);
}

/*
 * Sums of floats: f16 columns in float, all others in double. For absolute values r->keep excludes
 * the sign bit.
 */
CUA_FORCE float cua__tree_sum_f16_none(void)
{
	return 0;
}

CUA_FORCE float cua__tree_fold_sum_f16(const struct cua__reduce *r, float c, struct cua_f16 a,
				       struct cua_f16 b, uint32_t row)
{
	CUA__TREE_UNUSED(r, b, row);
	a.bits &= (uint16_t)r->keep;
	return cua_port_add_rn_f32(c, cua__f32_of_f16(a));
}

CUA_FORCE float cua__tree_fold_dot_f16(const struct cua__reduce *r, float c, struct cua_f16 a,
				       struct cua_f16 b, uint32_t row)
{
	CUA__TREE_UNUSED(r, b, row);
	return cua_port_add_rn_f32(c, cua_port_mul_rn_f32(cua__f32_of_f16(a), cua__f32_of_f16(b)));
}

CUA_FORCE double cua__tree_f32_widen(const struct cua__reduce *r, float c, uint64_t folded,
				     uint64_t first, uint64_t columns)
{
	CUA__TREE_UNUSED(r, first, columns);
	(void)folded;
	return (double)c;
}

CUA_FORCE double cua__tree_sum_f64_none(void)
{
	return 0;
}

CUA_FORCE double cua__tree_fold_sum_bf16(const struct cua__reduce *r, double c, struct cua_bf16 a,
					 struct cua_bf16 b, uint32_t row)
{
	CUA__TREE_UNUSED(r, b, row);
	a.bits &= (uint16_t)r->keep;
	return cua_port_add_rn_f64(c, (double)cua__f32_of_bf16(a));
}

CUA_FORCE double cua__tree_fold_sum_f32(const struct cua__reduce *r, double c, float a, float b,
					uint32_t row)
{
	CUA__TREE_UNUSED(r, b, row);
	return cua_port_add_rn_f64(
		c, (double)cua__from_bits_f32(cua__bits_f32(a) & (uint32_t)r->keep));
}

CUA_FORCE double cua__tree_fold_sum_f64(const struct cua__reduce *r, double c, double a, double b,
					uint32_t row)
{
	CUA__TREE_UNUSED(r, b, row);
	return cua_port_add_rn_f64(c, cua__from_bits_f64(cua__bits_f64(a) & r->keep));
}

/* Products of two bf16 or of two f32 are exact in double. */
CUA_FORCE double cua__tree_fold_dot_bf16(const struct cua__reduce *r, double c, struct cua_bf16 a,
					 struct cua_bf16 b, uint32_t row)
{
	CUA__TREE_UNUSED(r, b, row);
	return cua_port_add_rn_f64(
		c, cua_port_mul_rn_f64((double)cua__f32_of_bf16(a), (double)cua__f32_of_bf16(b)));
}

CUA_FORCE double cua__tree_fold_dot_f32(const struct cua__reduce *r, double c, float a, float b,
					uint32_t row)
{
	CUA__TREE_UNUSED(r, b, row);
	return cua_port_add_rn_f64(c, cua_port_mul_rn_f64((double)a, (double)b));
}

CUA_FORCE double cua__tree_fold_dot_f64(const struct cua__reduce *r, double c, double a, double b,
					uint32_t row)
{
	CUA__TREE_UNUSED(r, b, row);
	return cua_port_add_rn_f64(c, cua_port_mul_rn_f64(a, b));
}

CUA_FORCE double cua__tree_f64_widen(const struct cua__reduce *r, double c, uint64_t folded,
				     uint64_t first, uint64_t columns)
{
	CUA__TREE_UNUSED(r, first, columns);
	(void)folded;
	return c;
}

CUA_FORCE double cua__tree_f64_add(double a, double b)
{
	return cua_port_add_rn_f64(a, b);
}

CUA_FN void cua__tree_f64_store(const struct cua__reduce *r, uint64_t n, double v)
{
	if (r->op == CUA_REDUCE_MEAN)
		v = cua__tree_mean(v, n);
	else if (r->op == CUA_REDUCE_NORM2)
		v = cua__tree_sqrt(v);
	cua__tree_store_f64(r, v);
}

/* Products of floats, in double. */
CUA_FORCE double cua__tree_product_f64_none(void)
{
	return 1;
}

CUA_FORCE double cua__tree_fold_product_f16(const struct cua__reduce *r, double c, struct cua_f16 a,
					    struct cua_f16 b, uint32_t row)
{
	CUA__TREE_UNUSED(r, b, row);
	return cua_port_mul_rn_f64(c, (double)cua__f32_of_f16(a));
}

CUA_FORCE double cua__tree_fold_product_bf16(const struct cua__reduce *r, double c,
					     struct cua_bf16 a, struct cua_bf16 b, uint32_t row)
{
	CUA__TREE_UNUSED(r, b, row);
	return cua_port_mul_rn_f64(c, (double)cua__f32_of_bf16(a));
}

CUA_FORCE double cua__tree_fold_product_f32(const struct cua__reduce *r, double c, float a, float b,
					    uint32_t row)
{
	CUA__TREE_UNUSED(r, b, row);
	return cua_port_mul_rn_f64(c, (double)a);
}

CUA_FORCE double cua__tree_fold_product_f64(const struct cua__reduce *r, double c, double a,
					    double b, uint32_t row)
{
	CUA__TREE_UNUSED(r, b, row);
	return cua_port_mul_rn_f64(c, a);
}

CUA_FORCE double cua__tree_f64_multiply(double a, double b)
{
	return cua_port_mul_rn_f64(a, b);
}

/*
 * Complex numbers by components, in double. r->conjugate is -1 if the first factor is conjugated,
 * else 1.
 */
CUA_FORCE struct cua_complex_f64 cua__tree_complex_none(void)
{
	struct cua_complex_f64 none = {0, 0};

	return none;
}

CUA_FORCE struct cua_complex_f64 cua__tree_complex_add(struct cua_complex_f64 a,
						       struct cua_complex_f64 b)
{
	a.re = cua_port_add_rn_f64(a.re, b.re);
	a.im = cua_port_add_rn_f64(a.im, b.im);
	return a;
}

CUA_FORCE struct cua_complex_f64 cua__tree_complex_widen(const struct cua__reduce *r,
							 struct cua_complex_f64 c, uint64_t folded,
							 uint64_t first, uint64_t columns)
{
	CUA__TREE_UNUSED(r, first, columns);
	(void)folded;
	return c;
}

CUA_FORCE struct cua_complex_f64 cua__tree_complex_product(const struct cua__reduce *r,
							   struct cua_complex_f64 a,
							   struct cua_complex_f64 b)
{
	struct cua_complex_f64 p;
	double im = cua_port_mul_rn_f64(a.im, r->conjugate),
	       minus = cua_port_mul_rn_f64(a.im, -r->conjugate);

	/*
	 * a sum, not a difference: GCC fuses a sum and a difference of products into vector
	 * instructions, although contraction is off
	 */
	p.re = cua_port_add_rn_f64(cua_port_mul_rn_f64(a.re, b.re),
				   cua_port_mul_rn_f64(minus, b.im));
	p.im = cua_port_add_rn_f64(cua_port_mul_rn_f64(a.re, b.im), cua_port_mul_rn_f64(im, b.re));
	return p;
}

CUA_FORCE struct cua_complex_f64 cua__tree_fold_sum_c64(const struct cua__reduce *r,
							struct cua_complex_f64 c,
							struct cua_complex_f64 a,
							struct cua_complex_f64 b, uint32_t row)
{
	CUA__TREE_UNUSED(r, b.re, row);
	return cua__tree_complex_add(c, a);
}

CUA_FORCE struct cua_complex_f64 cua__tree_fold_dot_c64(const struct cua__reduce *r,
							struct cua_complex_f64 c,
							struct cua_complex_f64 a,
							struct cua_complex_f64 b, uint32_t row)
{
	(void)row;
	return cua__tree_complex_add(c, cua__tree_complex_product(r, a, b));
}

CUA_FORCE struct cua_complex_f64 cua__tree_of_c32(struct cua_complex_f32 a)
{
	struct cua_complex_f64 v = {(double)a.re, (double)a.im};

	return v;
}

CUA_FORCE struct cua_complex_f64 cua__tree_fold_sum_c32(const struct cua__reduce *r,
							struct cua_complex_f64 c,
							struct cua_complex_f32 a,
							struct cua_complex_f32 b, uint32_t row)
{
	CUA__TREE_UNUSED(r, b.re, row);
	return cua__tree_complex_add(c, cua__tree_of_c32(a));
}

CUA_FORCE struct cua_complex_f64 cua__tree_fold_dot_c32(const struct cua__reduce *r,
							struct cua_complex_f64 c,
							struct cua_complex_f32 a,
							struct cua_complex_f32 b, uint32_t row)
{
	(void)row;
	return cua__tree_complex_add(
		c, cua__tree_complex_product(r, cua__tree_of_c32(a), cua__tree_of_c32(b)));
}

CUA_FN void cua__tree_complex_store(const struct cua__reduce *r, uint64_t n,
				    struct cua_complex_f64 v)
{
	(void)n;
	cua__tree_store_complex(r, v);
}

/*
 * Minima and maxima, and their indexes, as the greatest key (cuatomic/reduce.h). Parameters:
 * - r->top: the top bit
 * - r->sign: the top bit for signed integers and floats; 0 for unsigned types
 * - r->low: all bits but the top bit for floats, else 0
 * - r->keep: all bits but the top bit for floats, else all bits
 * - r->finite: the bits of infinity for floats, else all bits; an element with greater bits, of
 *   those in r->keep, is NaN
 * - r->quiet: for floats, the bits of the NaN that is stored
 * - r->flip: all bits for a minimum, else 0
 */
#define CUA__TREE_DEFINE_KEY(bits)                                                                 \
	CUA_FORCE uint##bits##_t cua__tree_key_b##bits(const struct cua__reduce *r,                \
						       uint##bits##_t a)                           \
	{                                                                                          \
		uint##bits##_t negative = (uint##bits##_t)(0 - (a >> (bits - 1)));                 \
		uint##bits##_t key = (uint##bits##_t)(a ^ (uint##bits##_t)r->sign ^                \
						      (negative & (uint##bits##_t)r->low) ^        \
						      (uint##bits##_t)r->flip);                    \
                                                                                                   \
		return (a & (uint##bits##_t)r->keep) > (uint##bits##_t)r->finite ? 0 : key;        \
	}

#define CUA__TREE_DEFINE_ORDER(bits)                                                               \
	CUA_FORCE uint##bits##_t cua__tree_order_b##bits##_none(void)                              \
	{                                                                                          \
		return 0;                                                                          \
	}                                                                                          \
	CUA_FORCE uint##bits##_t cua__tree_fold_order_b##bits(const struct cua__reduce *r,         \
							      uint##bits##_t c, uint##bits##_t a,  \
							      uint##bits##_t b, uint32_t row)      \
	{                                                                                          \
		uint##bits##_t key = cua__tree_key_b##bits(r, a);                                  \
                                                                                                   \
		CUA__TREE_UNUSED(r, b, row);                                                       \
		return key > c ? key : c;                                                          \
	}                                                                                          \
	CUA_FORCE uint64_t cua__tree_order_b##bits##_widen(const struct cua__reduce *r,            \
							   uint##bits##_t c, uint64_t folded,      \
							   uint64_t first, uint64_t columns)       \
	{                                                                                          \
		CUA__TREE_UNUSED(r, first, columns);                                               \
		(void)folded;                                                                      \
		return c;                                                                          \
	}

#define CUA__TREE_DEFINE_INDEX(bits)                                                               \
	CUA_FORCE uint##bits##_t cua__tree_key_index_b##bits(const struct cua__reduce *r,          \
							     uint##bits##_t a)                     \
	{                                                                                          \
		return cua__tree_key_b##bits(r, a);                                                \
	}                                                                                          \
	struct cua__tree_first_b##bits {                                                           \
		uint##bits##_t key;                                                                \
		uint32_t row;                                                                      \
	};                                                                                         \
	CUA_FORCE struct cua__tree_first_b##bits cua__tree_index_b##bits##_none(void)              \
	{                                                                                          \
		struct cua__tree_first_b##bits none = {0, 0};                                      \
                                                                                                   \
		return none;                                                                       \
	}                                                                                          \
	CUA_FORCE struct cua__tree_first_b##bits cua__tree_fold_index_b##bits(                     \
		const struct cua__reduce *r, struct cua__tree_first_b##bits c, uint##bits##_t a,   \
		uint##bits##_t b, uint32_t row)                                                    \
	{                                                                                          \
		uint##bits##_t key = cua__tree_key_b##bits(r, a);                                  \
                                                                                                   \
		CUA__TREE_UNUSED(r, b, row);                                                       \
		c.row = key > c.key ? row : c.row;                                                 \
		c.key = key > c.key ? key : c.key;                                                 \
		return c;                                                                          \
	}                                                                                          \
	CUA_FORCE struct cua__key_index cua__tree_index_b##bits##_widen(                           \
		const struct cua__reduce *r, struct cua__tree_first_b##bits c, uint64_t folded,    \
		uint64_t first, uint64_t columns)                                                  \
	{                                                                                          \
		struct cua__key_index v;                                                           \
                                                                                                   \
		CUA__TREE_UNUSED(r, folded, first);                                                \
		v.key = c.key;                                                                     \
		v.index = c.key ? first + c.row * columns : UINT64_MAX;                            \
		return v;                                                                          \
	}

#define CUA__TREE_DEFINE_KEYS(bits)                                                                \
	CUA__TREE_DEFINE_KEY(bits)                                                                 \
	CUA__TREE_DEFINE_ORDER(bits)                                                               \
	CUA__TREE_DEFINE_INDEX(bits)
CUA__TREE_DEFINE_KEYS(16)
CUA__TREE_DEFINE_KEYS(32)
CUA__TREE_DEFINE_KEYS(64)

CUA_FORCE uint64_t cua__tree_order_combine(uint64_t a, uint64_t b)
{
	return b > a ? b : a;
}

CUA_FORCE struct cua__key_index cua__tree_index_combine(struct cua__key_index a,
							struct cua__key_index b)
{
	return b.key > a.key || (b.key == a.key && b.index < a.index) ? b : a;
}

/*
 * Key 0 of floats means NaN if there are elements. Without elements the result is the identity of
 * the operation.
 */
CUA_FN void cua__tree_order_store(const struct cua__reduce *r, uint64_t n, uint64_t key)
{
	uint64_t top = r->top, bits = key ^ r->flip;

	if (!r->low)
		bits ^= r->sign;
	else if (key)
		bits ^= bits & top ? top : r->keep | top;
	else
		bits = n ? r->quiet : r->flip ? r->finite : r->finite | top;
	if (top >> 63)
		*(uint64_t *)r->result = bits;
	else if (top >> 31)
		*(uint32_t *)r->result = (uint32_t)bits;
	else
		*(uint16_t *)r->result = (uint16_t)bits;
}

/*
 * If all keys are 0, all elements are NaN, or all are the integer of key 0. Then the index is 0.
 */
CUA_FN void cua__tree_index_store(const struct cua__reduce *r, uint64_t n, struct cua__key_index v)
{
	*(uint64_t *)r->result = n && v.index == UINT64_MAX ? 0 : v.index;
}

/*
 * Moments. A column sums the distances of its elements from its first element, and their squares.
 * Mean and squares of the column follow from these two sums. Two sets of elements are combined by
 * the formulas of Chan, Golub and LeVeque (1979).
 */
struct cua__tree_shifted {
	double shift, sum, squares;
};

CUA_FORCE struct cua__tree_shifted cua__tree_moments_none(void)
{
	struct cua__tree_shifted none = {0, 0, 0};

	return none;
}

CUA_FORCE struct cua__tree_shifted cua__tree_moments_fold(struct cua__tree_shifted c, double a,
							  uint32_t row)
{
	double distance;

	c.shift = row ? c.shift : a;
	distance = cua_port_sub_rn_f64(a, c.shift);
	c.sum = cua_port_add_rn_f64(c.sum, distance);
	c.squares = cua_port_add_rn_f64(c.squares, cua_port_mul_rn_f64(distance, distance));
	return c;
}

CUA_FORCE struct cua__moments cua__tree_moments_widen(const struct cua__reduce *r,
						      struct cua__tree_shifted c, uint64_t folded,
						      uint64_t first, uint64_t columns)
{
	struct cua__moments v = {0, 0, 0};
	double distance;

	CUA__TREE_UNUSED(r, first, columns);
	if (folded) {
		v.n = (double)folded;
		distance = cua_port_div_rn_f64(c.sum, v.n);
		v.mean = cua_port_add_rn_f64(c.shift, distance);
		v.squares = cua_port_sub_rn_f64(c.squares, cua_port_mul_rn_f64(c.sum, distance));
		if (v.squares < 0)
			v.squares = 0;
	}
	return v;
}

CUA_FN struct cua__moments cua__tree_moments_combine(struct cua__moments a, struct cua__moments b)
{
	double share, distance;
	struct cua__moments v;

	if (a.n == 0 || b.n == 0)
		return a.n == 0 ? b : a;
	v.n = cua_port_add_rn_f64(a.n, b.n);
	share = cua_port_div_rn_f64(b.n, v.n);
	distance = cua_port_sub_rn_f64(b.mean, a.mean);
	v.mean = cua_port_add_rn_f64(a.mean, cua_port_mul_rn_f64(distance, share));
	v.squares = cua_port_add_rn_f64(cua_port_add_rn_f64(a.squares, b.squares),
					cua_port_mul_rn_f64(cua_port_mul_rn_f64(distance, distance),
							    cua_port_mul_rn_f64(a.n, share)));
	return v;
}

CUA_FN void cua__tree_moments_store(const struct cua__reduce *r, uint64_t n, struct cua__moments v)
{
	uint64_t sample = r->op == CUA_REDUCE_VARIANCE_SAMPLE;

	cua__tree_store_f64(r, n > sample ? cua_port_div_rn_f64(v.squares, (double)(n - sample))
					  : cua__from_bits_f64(0x7ff8000000000000u));
}

#define CUA__TREE_DEFINE_MOMENTS(t, T, value)                                                      \
	CUA_FORCE struct cua__tree_shifted cua__tree_fold_moments_##t(                             \
		const struct cua__reduce *r, struct cua__tree_shifted c, T a, T b, uint32_t row)   \
	{                                                                                          \
		(void)r;                                                                           \
		(void)b;                                                                           \
		return cua__tree_moments_fold(c, value, row);                                      \
	}
CUA__TREE_DEFINE_MOMENTS(b32, uint32_t, (double)(int64_t)cua__tree_extend(r, a))
CUA__TREE_DEFINE_MOMENTS(b64, uint64_t, r->sign ? (double)(int64_t)a : (double)a)
CUA__TREE_DEFINE_MOMENTS(f16, struct cua_f16, (double)cua__f32_of_f16(a))
CUA__TREE_DEFINE_MOMENTS(bf16, struct cua_bf16, (double)cua__f32_of_bf16(a))
CUA__TREE_DEFINE_MOMENTS(f32, float, (double)a)
CUA__TREE_DEFINE_MOMENTS(f64, double, a)

/*
 * The 2-norm of f64, whose squares may exceed the range of f64. It uses three sums, after Blue, A
 * portable Fortran program to find the Euclidean norm of a vector (1978). The sum of medium squares
 * has room for 2^63 of them.
 */
CUA_FORCE struct cua__norm cua__tree_norm_f64_none(void)
{
	struct cua__norm none = {0, 0, 0};

	return none;
}

CUA_FORCE struct cua__norm cua__tree_fold_norm_f64(const struct cua__reduce *r, struct cua__norm c,
						   double a, double b, uint32_t row)
{
	double size = cua__from_bits_f64(cua__bits_f64(a) & r->keep);
	int large = size > 0x1p480, small = size < 0x1p-500;
	double scaled = cua_port_mul_rn_f64(size, large ? 0x1p-600 : small ? 0x1p600 : 1.0);
	double square = cua_port_mul_rn_f64(scaled, scaled);

	(void)b;
	(void)row;
	c.large = cua_port_add_rn_f64(c.large, large ? square : 0.0);
	c.small = cua_port_add_rn_f64(c.small, small ? square : 0.0);
	c.fit = cua_port_add_rn_f64(c.fit, large || small ? 0.0 : square);
	return c;
}

CUA_FORCE struct cua__norm cua__tree_norm_f64_widen(const struct cua__reduce *r, struct cua__norm c,
						    uint64_t folded, uint64_t first,
						    uint64_t columns)
{
	CUA__TREE_UNUSED(r, first, columns);
	(void)folded;
	return c;
}

CUA_FORCE struct cua__norm cua__tree_norm_combine(struct cua__norm a, struct cua__norm b)
{
	a.large = cua_port_add_rn_f64(a.large, b.large);
	a.fit = cua_port_add_rn_f64(a.fit, b.fit);
	a.small = cua_port_add_rn_f64(a.small, b.small);
	return a;
}

CUA_FN void cua__tree_norm_store(const struct cua__reduce *r, uint64_t n, struct cua__norm v)
{
	double norm;

	(void)n;
	if (v.large != 0) {
		v.fit = cua_port_mul_rn_f64(cua_port_mul_rn_f64(v.fit, 0x1p-600), 0x1p-600);
		norm = cua_port_mul_rn_f64(cua__tree_sqrt(cua_port_add_rn_f64(v.large, v.fit)),
					   0x1p600);
	} else if (v.fit != 0) {
		v.small = cua_port_mul_rn_f64(cua_port_mul_rn_f64(v.small, 0x1p-600), 0x1p-600);
		norm = cua__tree_sqrt(cua_port_add_rn_f64(v.fit, v.small));
	} else {
		norm = cua_port_mul_rn_f64(cua__tree_sqrt(v.small), 0x1p-600);
	}
	cua__tree_store_f64(r, norm);
}

/* X(kind, T, 1 if there are two arrays, C, A, none, widen, combine, store) */
#define CUA__TREE_SUMS(X)                                                                          \
	X(sum_b32, uint32_t, 0, uint64_t, struct cua__wide, sum_b32_none, sum_b32_widen, wide_add, \
	  wide_store)                                                                              \
	X(sum_b64, uint64_t, 0, struct cua__wide, struct cua__wide, sum_b64_none, sum_b64_widen,   \
	  wide_add, wide_store)                                                                    \
	CUA__TREE_FLOAT_SUMS(X)

#define CUA__TREE_FLOAT_SUMS(X)                                                                    \
	X(sum_f16, struct cua_f16, 0, float, double, sum_f16_none, f32_widen, f64_add, f64_store)  \
	X(sum_bf16, struct cua_bf16, 0, double, double, sum_f64_none, f64_widen, f64_add,          \
	  f64_store)                                                                               \
	X(sum_f32, float, 0, double, double, sum_f64_none, f64_widen, f64_add, f64_store)          \
	X(sum_f64, double, 0, double, double, sum_f64_none, f64_widen, f64_add, f64_store)         \
	X(sum_c32, struct cua_complex_f32, 0, struct cua_complex_f64, struct cua_complex_f64,      \
	  complex_none, complex_widen, complex_add, complex_store)                                 \
	X(sum_c64, struct cua_complex_f64, 0, struct cua_complex_f64, struct cua_complex_f64,      \
	  complex_none, complex_widen, complex_add, complex_store)

#define CUA__TREE_DOTS(X)                                                                          \
	X(dot_b32, uint32_t, 1, uint64_t, uint64_t, sum_b32_none, u64_widen, u64_add, u64_store)   \
	X(dot_b64, uint64_t, 1, uint64_t, uint64_t, sum_b32_none, u64_widen, u64_add, u64_store)   \
	X(dot_f16, struct cua_f16, 1, float, double, sum_f16_none, f32_widen, f64_add, f64_store)  \
	X(dot_bf16, struct cua_bf16, 1, double, double, sum_f64_none, f64_widen, f64_add,          \
	  f64_store)                                                                               \
	X(dot_f32, float, 1, double, double, sum_f64_none, f64_widen, f64_add, f64_store)          \
	X(dot_f64, double, 1, double, double, sum_f64_none, f64_widen, f64_add, f64_store)         \
	X(dot_c32, struct cua_complex_f32, 1, struct cua_complex_f64, struct cua_complex_f64,      \
	  complex_none, complex_widen, complex_add, complex_store)                                 \
	X(dot_c64, struct cua_complex_f64, 1, struct cua_complex_f64, struct cua_complex_f64,      \
	  complex_none, complex_widen, complex_add, complex_store)                                 \
	X(norm_f64, double, 0, struct cua__norm, struct cua__norm, norm_f64_none, norm_f64_widen,  \
	  norm_combine, norm_store)

#define CUA__TREE_ORDERS(X)                                                                        \
	X(order_b16, uint16_t, 0, uint16_t, uint64_t, order_b16_none, order_b16_widen,             \
	  order_combine, order_store)                                                              \
	X(order_b32, uint32_t, 0, uint32_t, uint64_t, order_b32_none, order_b32_widen,             \
	  order_combine, order_store)                                                              \
	X(order_b64, uint64_t, 0, uint64_t, uint64_t, order_b64_none, order_b64_widen,             \
	  order_combine, order_store)                                                              \
	X(index_b16, uint16_t, 0, struct cua__tree_first_b16, struct cua__key_index,               \
	  index_b16_none, index_b16_widen, index_combine, index_store)                             \
	X(index_b32, uint32_t, 0, struct cua__tree_first_b32, struct cua__key_index,               \
	  index_b32_none, index_b32_widen, index_combine, index_store)                             \
	X(index_b64, uint64_t, 0, struct cua__tree_first_b64, struct cua__key_index,               \
	  index_b64_none, index_b64_widen, index_combine, index_store)                             \
	X(count_b16, uint16_t, 0, uint64_t, uint64_t, sum_b32_none, u64_widen, u64_add, u64_store) \
	X(count_b32, uint32_t, 0, uint64_t, uint64_t, sum_b32_none, u64_widen, u64_add, u64_store) \
	X(count_b64, uint64_t, 0, uint64_t, uint64_t, sum_b32_none, u64_widen, u64_add, u64_store)

#define CUA__TREE_MOMENTS(X)                                                                       \
	X(product_b32, uint32_t, 0, uint64_t, uint64_t, product_b32_none, u64_widen, u64_multiply, \
	  u64_store)                                                                               \
	X(product_b64, uint64_t, 0, uint64_t, uint64_t, product_b32_none, u64_widen, u64_multiply, \
	  u64_store)                                                                               \
	X(product_f16, struct cua_f16, 0, double, double, product_f64_none, f64_widen,             \
	  f64_multiply, f64_store)                                                                 \
	X(product_bf16, struct cua_bf16, 0, double, double, product_f64_none, f64_widen,           \
	  f64_multiply, f64_store)                                                                 \
	X(product_f32, float, 0, double, double, product_f64_none, f64_widen, f64_multiply,        \
	  f64_store)                                                                               \
	X(product_f64, double, 0, double, double, product_f64_none, f64_widen, f64_multiply,       \
	  f64_store)                                                                               \
	X(moments_b32, uint32_t, 0, struct cua__tree_shifted, struct cua__moments, moments_none,   \
	  moments_widen, moments_combine, moments_store)                                           \
	X(moments_b64, uint64_t, 0, struct cua__tree_shifted, struct cua__moments, moments_none,   \
	  moments_widen, moments_combine, moments_store)                                           \
	X(moments_f16, struct cua_f16, 0, struct cua__tree_shifted, struct cua__moments,           \
	  moments_none, moments_widen, moments_combine, moments_store)                             \
	X(moments_bf16, struct cua_bf16, 0, struct cua__tree_shifted, struct cua__moments,         \
	  moments_none, moments_widen, moments_combine, moments_store)                             \
	X(moments_f32, float, 0, struct cua__tree_shifted, struct cua__moments, moments_none,      \
	  moments_widen, moments_combine, moments_store)                                           \
	X(moments_f64, double, 0, struct cua__tree_shifted, struct cua__moments, moments_none,     \
	  moments_widen, moments_combine, moments_store)

#define CUA__TREE_LIST(X)                                                                          \
	CUA__TREE_SUMS(X)                                                                          \
	CUA__TREE_DOTS(X)                                                                          \
	CUA__TREE_ORDERS(X)                                                                        \
	CUA__TREE_MOMENTS(X)

/*
 * The types and functions of each kind by the kind's name, for templates. A template header
 * (.tmpl.h) is included once per kind, with CUA__KIND defined as the kind: tree_kinds.tmpl.h.
 */
#define CUA__NAME_OF(name, kind) CUA__NAME_PASTE(name, kind)
#define CUA__NAME_PASTE(name, kind) name##_##kind

#define CUA__TREE_DEFINE_KIND(kind, T, two, C, A, none, widen, combine, store)                     \
	typedef T cua__tree_element_##kind;                                                        \
	typedef C cua__tree_column_##kind;                                                         \
	typedef A cua__tree_value_##kind;                                                          \
	enum { cua__tree_two_##kind = two };                                                       \
	CUA_FORCE C cua__tree_none_##kind(void)                                                    \
	{                                                                                          \
		return cua__tree_##none();                                                         \
	}                                                                                          \
	CUA_FORCE A cua__tree_widen_##kind(const struct cua__reduce *r, C c, uint64_t folded,      \
					   uint64_t first, uint64_t columns)                       \
	{                                                                                          \
		return cua__tree_##widen(r, c, folded, first, columns);                            \
	}                                                                                          \
	CUA_FORCE A cua__tree_combine_##kind(A a, A b)                                             \
	{                                                                                          \
		return cua__tree_##combine(a, b);                                                  \
	}                                                                                          \
	CUA_FORCE void cua__tree_store_##kind(const struct cua__reduce *r, uint64_t n, A a)        \
	{                                                                                          \
		cua__tree_##store(r, n, a);                                                        \
	}
CUA__TREE_LIST(CUA__TREE_DEFINE_KIND)

#endif /* CUATOMIC_KERNELS_TREE_H */
