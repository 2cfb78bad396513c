/* SPDX-License-Identifier: MIT */
/*
 * Unsigned numbers of 128 bits for NVRTC, because NVRTC has __int128 only with an option. The class
 * has the operators that the headers use. Only <cuatomic/port.h> includes this file.
 */
#ifndef CUATOMIC_UINT128_H
#define CUATOMIC_UINT128_H

#if defined(__CUDACC_RTC__)

#include <cuatomic/detail/standard.h>

#define CUA__U128 __device__ __forceinline__

struct __attribute__((aligned(16))) cua__uint128 {
	uint64_t lo, hi;

	cua__uint128() = default;
	CUA__U128 cua__uint128(uint64_t v) : lo(v), hi(0)
	{
	}
	CUA__U128 cua__uint128(uint64_t low, uint64_t high) : lo(low), hi(high)
	{
	}
	CUA__U128 explicit operator uint64_t() const
	{
		return lo;
	}
};

/* Shifts by 0 to 127 bits. */
CUA__U128 cua__uint128 operator<<(cua__uint128 a, int by)
{
	if (by >= 64)
		return cua__uint128(0, a.lo << (by - 64));
	return by ? cua__uint128(a.lo << by, a.hi << by | a.lo >> (64 - by)) : a;
}

CUA__U128 cua__uint128 operator>>(cua__uint128 a, int by)
{
	if (by >= 64)
		return cua__uint128(a.hi >> (by - 64), 0);
	return by ? cua__uint128(a.lo >> by | a.hi << (64 - by), a.hi >> by) : a;
}

CUA__U128 cua__uint128 operator~(cua__uint128 a)
{
	return cua__uint128(~a.lo, ~a.hi);
}

CUA__U128 cua__uint128 operator&(cua__uint128 a, cua__uint128 b)
{
	return cua__uint128(a.lo & b.lo, a.hi & b.hi);
}

CUA__U128 cua__uint128 operator|(cua__uint128 a, cua__uint128 b)
{
	return cua__uint128(a.lo | b.lo, a.hi | b.hi);
}

CUA__U128 cua__uint128 operator^(cua__uint128 a, cua__uint128 b)
{
	return cua__uint128(a.lo ^ b.lo, a.hi ^ b.hi);
}

CUA__U128 cua__uint128 operator+(cua__uint128 a, cua__uint128 b)
{
	uint64_t low = a.lo + b.lo;

	return cua__uint128(low, a.hi + b.hi + (low < a.lo));
}

CUA__U128 cua__uint128 operator-(cua__uint128 a, cua__uint128 b)
{
	return cua__uint128(a.lo - b.lo, a.hi - b.hi - (a.lo < b.lo));
}

CUA__U128 cua__uint128 operator*(cua__uint128 a, cua__uint128 b)
{
	return cua__uint128(a.lo * b.lo, __umul64hi(a.lo, b.lo) + a.lo * b.hi + a.hi * b.lo);
}

CUA__U128 bool operator==(cua__uint128 a, cua__uint128 b)
{
	return a.lo == b.lo && a.hi == b.hi;
}
CUA__U128 bool operator!=(cua__uint128 a, cua__uint128 b)
{
	return !(a == b);
}
CUA__U128 bool operator<(cua__uint128 a, cua__uint128 b)
{
	return a.hi != b.hi ? a.hi < b.hi : a.lo < b.lo;
}
CUA__U128 bool operator>(cua__uint128 a, cua__uint128 b)
{
	return b < a;
}
CUA__U128 bool operator>=(cua__uint128 a, cua__uint128 b)
{
	return !(a < b);
}

#undef CUA__U128

#endif

#endif /* CUATOMIC_UINT128_H */
