/* SPDX-License-Identifier: MIT */
/* The sizes and names of the element types. */
#include <cuatomic/types.h>

static const struct {
	enum cua_type type;
	size_t size;
	const char *name;
} types[] = {
	{CUA_I8, 1, "i8"},
	{CUA_U8, 1, "u8"},
	{CUA_I16, 2, "i16"},
	{CUA_U16, 2, "u16"},
	{CUA_I32, 4, "i32"},
	{CUA_U32, 4, "u32"},
	{CUA_I64, 8, "i64"},
	{CUA_U64, 8, "u64"},
	{CUA_F32, 4, "f32"},
	{CUA_F64, 8, "f64"},
	{CUA_F16, 2, "f16"},
	{CUA_BF16, 2, "bf16"},
	{CUA_U128, 16, "u128"},
	{CUA_COMPLEX_F32, 8, "complex_f32"},
	{CUA_COMPLEX_F64, 16, "complex_f64"},
};

size_t cua_type_size(enum cua_type type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].type == type)
			return types[i].size;
	return 0;
}

const char *cua_type_name(enum cua_type type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].type == type)
			return types[i].name;
	return "unknown";
}
