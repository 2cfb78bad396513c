/* SPDX-License-Identifier: MIT */
/*
 * Template: includes a template header once for each kind of some families of tree.h, with
 * CUA__KIND defined as the kind.
 *
 * Parameters, undefined by this file:
 *   CUA__TREE_TEMPLATE       the template header, in quotes
 *   CUA__TREE_WITH_<family>  defined for each family to include: INTEGER_SUMS, FLOAT_SUMS, DOTS,
 *                            ORDERS, MOMENTS; or CUA__TREE_WITH_ALL
 *
 * CUA__TREE_INDEX is defined while the kinds that find an index are included.
 *
 * tree.h has the types and functions of each kind. If a kind is missing here, the users of the
 * lists of tree.h do not compile.
 */
#if defined(CUA__TREE_WITH_INTEGER_SUMS) || defined(CUA__TREE_WITH_ALL)
#define CUA__KIND sum_b32
#include CUA__TREE_TEMPLATE
#define CUA__KIND sum_b64
#include CUA__TREE_TEMPLATE
#endif

#if defined(CUA__TREE_WITH_FLOAT_SUMS) || defined(CUA__TREE_WITH_ALL)
#define CUA__KIND sum_f16
#include CUA__TREE_TEMPLATE
#define CUA__KIND sum_bf16
#include CUA__TREE_TEMPLATE
#define CUA__KIND sum_f32
#include CUA__TREE_TEMPLATE
#define CUA__KIND sum_f64
#include CUA__TREE_TEMPLATE
#define CUA__KIND sum_c32
#include CUA__TREE_TEMPLATE
#define CUA__KIND sum_c64
#include CUA__TREE_TEMPLATE
#endif

#if defined(CUA__TREE_WITH_DOTS) || defined(CUA__TREE_WITH_ALL)
#define CUA__KIND dot_b32
#include CUA__TREE_TEMPLATE
#define CUA__KIND dot_b64
#include CUA__TREE_TEMPLATE
#define CUA__KIND dot_f16
#include CUA__TREE_TEMPLATE
#define CUA__KIND dot_bf16
#include CUA__TREE_TEMPLATE
#define CUA__KIND dot_f32
#include CUA__TREE_TEMPLATE
#define CUA__KIND dot_f64
#include CUA__TREE_TEMPLATE
#define CUA__KIND dot_c32
#include CUA__TREE_TEMPLATE
#define CUA__KIND dot_c64
#include CUA__TREE_TEMPLATE
#define CUA__KIND norm_f64
#include CUA__TREE_TEMPLATE
#endif

#if defined(CUA__TREE_WITH_ORDERS) || defined(CUA__TREE_WITH_ALL)
#define CUA__KIND order_b16
#include CUA__TREE_TEMPLATE
#define CUA__KIND order_b32
#include CUA__TREE_TEMPLATE
#define CUA__KIND order_b64
#include CUA__TREE_TEMPLATE
#define CUA__TREE_INDEX
#define CUA__KIND index_b16
#include CUA__TREE_TEMPLATE
#define CUA__KIND index_b32
#include CUA__TREE_TEMPLATE
#define CUA__KIND index_b64
#include CUA__TREE_TEMPLATE
#undef CUA__TREE_INDEX
#define CUA__KIND count_b16
#include CUA__TREE_TEMPLATE
#define CUA__KIND count_b32
#include CUA__TREE_TEMPLATE
#define CUA__KIND count_b64
#include CUA__TREE_TEMPLATE
#endif

#if defined(CUA__TREE_WITH_MOMENTS) || defined(CUA__TREE_WITH_ALL)
#define CUA__KIND product_b32
#include CUA__TREE_TEMPLATE
#define CUA__KIND product_b64
#include CUA__TREE_TEMPLATE
#define CUA__KIND product_f16
#include CUA__TREE_TEMPLATE
#define CUA__KIND product_bf16
#include CUA__TREE_TEMPLATE
#define CUA__KIND product_f32
#include CUA__TREE_TEMPLATE
#define CUA__KIND product_f64
#include CUA__TREE_TEMPLATE
#define CUA__KIND moments_b32
#include CUA__TREE_TEMPLATE
#define CUA__KIND moments_b64
#include CUA__TREE_TEMPLATE
#define CUA__KIND moments_f16
#include CUA__TREE_TEMPLATE
#define CUA__KIND moments_bf16
#include CUA__TREE_TEMPLATE
#define CUA__KIND moments_f32
#include CUA__TREE_TEMPLATE
#define CUA__KIND moments_f64
#include CUA__TREE_TEMPLATE
#endif

#undef CUA__TREE_TEMPLATE
#undef CUA__TREE_WITH_ALL
#undef CUA__TREE_WITH_INTEGER_SUMS
#undef CUA__TREE_WITH_FLOAT_SUMS
#undef CUA__TREE_WITH_DOTS
#undef CUA__TREE_WITH_ORDERS
#undef CUA__TREE_WITH_MOMENTS
