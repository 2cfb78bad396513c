# SPDX-License-Identifier: MIT
"""The library's interface, made from the public headers by abi.py: not to be edited."""

from ctypes import (
    Structure,
    c_char,
    c_double,
    c_int,
    c_int64,
    c_size_t,
    c_uint,
    c_uint32,
    c_uint64,
    c_void_p,
)

SONAME = "libcuatomic.so.0"

# enum cua_aggregate_op
CUA_AGGREGATE_COUNT = 1
CUA_AGGREGATE_SUM = 2
CUA_AGGREGATE_MIN = 3
CUA_AGGREGATE_MAX = 4
CUA_AGGREGATE_MEAN = 5
CUA_AGGREGATE_VARIANCE = 6
CUA_AGGREGATE_FIRST = 7
CUA_AGGREGATE_LAST = 8

# enum cua_atomic_op
CUA_OP_LOAD = 1
CUA_OP_STORE = 2
CUA_OP_EXCHANGE = 3
CUA_OP_COMPARE_EXCHANGE = 4
CUA_OP_ADD = 5
CUA_OP_SUB = 6
CUA_OP_MUL = 7
CUA_OP_DIV = 8
CUA_OP_MIN = 9
CUA_OP_MAX = 10
CUA_OP_AND = 11
CUA_OP_OR = 12
CUA_OP_XOR = 13
CUA_OP_NAND = 14
CUA_OP_INC = 15
CUA_OP_DEC = 16

# enum cua_atomic_path
CUA_PATH_NONE = 0
CUA_PATH_NATIVE = 1
CUA_PATH_CAS_8 = 2
CUA_PATH_CAS_16 = 3
CUA_PATH_CAS_32 = 4
CUA_PATH_CAS_64 = 5
CUA_PATH_CAS_128 = 6
CUA_PATH_WORD = 7
CUA_PATH_STRIPE = 8

# enum cua_backend
CUA_BACKEND_AUTO = 0
CUA_BACKEND_CPU = 1
CUA_BACKEND_CUDA = 2

# enum cua_compare
CUA_LT = 1
CUA_LE = 2
CUA_EQ = 3
CUA_NE = 4
CUA_GE = 5
CUA_GT = 6

# enum cua_finish_mode
CUA_FINISH_AUTO = 0
CUA_FINISH_LAST_BLOCK = 1
CUA_FINISH_ATOMIC = 2
CUA_FINISH_LOCK = 3
CUA_FINISH_ORDERED_LOCK = 4

# enum cua_hashmap_hash
CUA_HASHMAP_HASH_SEEDED = 0
CUA_HASHMAP_HASH_KEYED = 1

# enum cua_hashmap_merge_rule
CUA_HASHMAP_KEEP = 0
CUA_HASHMAP_ADD = 1
CUA_HASHMAP_MIN = 2
CUA_HASHMAP_MAX = 3
CUA_HASHMAP_AND = 4
CUA_HASHMAP_OR = 5
CUA_HASHMAP_XOR = 6
CUA_HASHMAP_REPLACE = 16

# enum cua_hashmap_operation
CUA_HASHMAP_SKIP = 0
CUA_HASHMAP_FIND = 1
CUA_HASHMAP_INSERT = 2
CUA_HASHMAP_ERASE = 3

# enum cua_hashmap_order
CUA_HASHMAP_ANY = 0
CUA_HASHMAP_SORTED = 1

# enum cua_hashmap_result
CUA_HASHMAP_ABSENT = 0
CUA_HASHMAP_INSERTED = 1
CUA_HASHMAP_EXISTS = 2
CUA_HASHMAP_FULL = 3
CUA_HASHMAP_DIFFERS = 4
CUA_HASHMAP_UNSUPPORTED = 5

# enum cua_histogram_side
CUA_HISTOGRAM_BELOW = 0
CUA_HISTOGRAM_ABOVE = 1
CUA_HISTOGRAM_NAN = 2
CUA_HISTOGRAM_REFUSED = 3

# enum cua_histogram_strategy
CUA_HISTOGRAM_AUTO = 0
CUA_HISTOGRAM_BLOCKED = 1
CUA_HISTOGRAM_INTERLEAVED = 2
CUA_HISTOGRAM_PRIVATIZED = 3
CUA_HISTOGRAM_AGGREGATED = 4

# enum cua_join_kind
CUA_JOIN_AUTO = 0
CUA_JOIN_INNER = 1
CUA_JOIN_LEFT = 2

# enum cua_key_order
CUA_KEY_ORDER_AUTO = 0
CUA_KEY_ORDER_FIRST = 1
CUA_KEY_ORDER_SORTED = 2
CUA_KEY_ORDER_ANY = 3

# enum cua_lock_kind
CUA_LOCK_SPIN = 1
CUA_LOCK_TICKET = 2
CUA_LOCK_MCS = 3
CUA_LOCK_READ = 4
CUA_LOCK_WRITE = 5
CUA_LOCK_SEQ = 6
CUA_LOCK_SEMAPHORE = 7

# enum cua_lock_mistake
CUA_LOCK_SELF_RELOCK = 1
CUA_LOCK_STRANGER_UNLOCK = 2
CUA_LOCK_UNLOCK_FREE = 3
CUA_LOCK_REINIT = 4

# enum cua_multimap_result
CUA_MULTIMAP_INSERTED = 1
CUA_MULTIMAP_FULL = 3
CUA_MULTIMAP_UNSUPPORTED = 5

# enum cua_order
CUA_RELAXED = 0
CUA_ACQUIRE = 1
CUA_RELEASE = 2
CUA_ACQ_REL = 3
CUA_SEQ_CST = 4

# enum cua_reduce_mode
CUA_REDUCE_AUTO = 0
CUA_REDUCE_FAST = 1
CUA_REDUCE_FIXED = 2
CUA_REDUCE_EXACT = 3

# enum cua_reduce_op
CUA_REDUCE_SUM = 1
CUA_REDUCE_MIN = 2
CUA_REDUCE_MAX = 3
CUA_REDUCE_DOT = 4
CUA_REDUCE_PRODUCT = 5
CUA_REDUCE_ARGMIN = 6
CUA_REDUCE_ARGMAX = 7
CUA_REDUCE_COUNT = 8
CUA_REDUCE_SUM_SQUARES = 9
CUA_REDUCE_SUM_ABS = 10
CUA_REDUCE_NORM2 = 11
CUA_REDUCE_MEAN = 12
CUA_REDUCE_VARIANCE = 13
CUA_REDUCE_VARIANCE_SAMPLE = 14
CUA_REDUCE_DOT_CONJ = 15

# enum cua_scatter_op
CUA_SCATTER_ADD = 1
CUA_SCATTER_MIN = 2
CUA_SCATTER_MAX = 3
CUA_SCATTER_MEAN = 4

# enum cua_scope
CUA_SCOPE_BLOCK = 0
CUA_SCOPE_DEVICE = 1
CUA_SCOPE_SYSTEM = 2

# enum cua_space
CUA_SPACE_GENERIC = 0
CUA_SPACE_GLOBAL = 1
CUA_SPACE_SHARED = 2

# enum cua_status
CUA_OK = 0
CUA_ERROR_NULL = -1
CUA_ERROR_VALUE = -2
CUA_ERROR_TYPE = -3
CUA_ERROR_SIZE = -4
CUA_ERROR_ALIGNMENT = -5
CUA_ERROR_OVERLAP = -6
CUA_ERROR_MEMORY_KIND = -7
CUA_ERROR_NO_MEMORY = -8
CUA_ERROR_NO_DEVICE = -9
CUA_ERROR_CUDA = -10
CUA_ERROR_CAPTURE = -11
CUA_ERROR_WORKSPACE = -12
CUA_ERROR_FULL = -13
CUA_ERROR_LAYOUT = -15
CUA_ERROR_SYSTEM = -16
CUA_ERROR_CONTEXT = -17
CUA_ERROR_CORRUPT = -18
CUA_ERROR_UNSUPPORTED = -19
CUA_ERROR_NOT_BUILT = -20
CUA_ERROR_TIMEOUT = -21

# enum cua_type
CUA_NONE = 0
CUA_I8 = 1
CUA_U8 = 2
CUA_I16 = 3
CUA_U16 = 4
CUA_I32 = 5
CUA_U32 = 6
CUA_I64 = 7
CUA_U64 = 8
CUA_U128 = 10
CUA_F16 = 16
CUA_BF16 = 17
CUA_F32 = 18
CUA_F64 = 19
CUA_COMPLEX_F32 = 24
CUA_COMPLEX_F64 = 25

# enum cua_update
CUA_UPDATE_ADD = 1
CUA_UPDATE_MIN = 2
CUA_UPDATE_MAX = 3
CUA_UPDATE_AND = 4
CUA_UPDATE_OR = 5
CUA_UPDATE_XOR = 6


class cua_append_view(Structure):
    _fields_ = [
        ("items", c_void_p),
        ("cursor", c_void_p),
        ("capacity", c_uint64),
        ("item_size", c_uint64),
        ("layout", c_uint32),
        ("reserved", c_uint32),
    ]


class cua_chained_view(Structure):
    _fields_ = [
        ("heads", c_void_p),
        ("locks", c_void_p),
        ("entries", c_void_p),
        ("cursor", c_void_p),
        ("n_buckets", c_uint64),
        ("capacity", c_uint64),
        ("layout", c_uint32),
        ("reserved", c_uint32),
        ("seed", c_uint64),
    ]


class cua_chained_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("seed", c_uint64),
    ]


class cua_chained_report(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("entries", c_uint64),
        ("reached", c_uint64),
        ("misplaced", c_uint64),
        ("twice", c_uint64),
        ("lost", c_uint64),
        ("broken_links", c_uint64),
    ]


class cua_device_info(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char * 128),
        ("compute_major", c_int),
        ("compute_minor", c_int),
        ("processors", c_uint32),
        ("memory_bytes", c_uint64),
        ("driver_cuda", c_int),
        ("runtime_cuda", c_int),
        ("driver", c_char * 32),
        ("pci_bus_id", c_char * 16),
        ("uuid", c_char * 40),
        ("cache_bytes", c_uint64),
        ("clock_mhz", c_uint32),
        ("memory_clock_mhz", c_uint32),
        ("memory_bus_bits", c_uint32),
        ("block_shared_bytes", c_uint32),
        ("processor_shared_bytes", c_uint32),
        ("ecc", c_int),
        ("managed_memory", c_int),
        ("concurrent_managed_access", c_int),
        ("host_native_atomics", c_int),
        ("cooperative_launch", c_int),
        ("memory_pools", c_int),
        ("reserved", c_int),
    ]


class cua_peer_info(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("access", c_int),
        ("native_atomics", c_int),
        ("array_access", c_int),
        ("performance_rank", c_int),
    ]


class cua_hashmap_view(Structure):
    _fields_ = [
        ("buckets", c_void_p),
        ("counts", c_void_p),
        ("rejects", c_void_p),
        ("n_buckets", c_uint64),
        ("seed", c_uint64),
        ("key_size", c_uint32),
        ("value_size", c_uint32),
        ("layout", c_uint32),
        ("hash", c_uint32),
        ("seed_high", c_uint64),
        ("max_probes", c_uint32),
        ("no_erase", c_uint32),
    ]


class cua_exact(Structure):
    _fields_ = [
        ("layout", c_uint32),
        ("flags", c_uint32),
        ("pending", c_uint32),
        ("reserved", c_uint32),
        ("digit", c_int64 * 136),
    ]


class cua_exact_cells_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("result_type", c_int),
        ("overwrite", c_int),
        ("lost", c_void_p),
    ]


class cua_filter_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("ordered", c_int),
        ("partition", c_int),
        ("flags", c_void_p),
        ("indexes", c_void_p),
        ("index_type", c_int),
    ]


class cua_aggregate(Structure):
    _fields_ = [
        ("op", c_int),
        ("type", c_int),
        ("result_type", c_int),
        ("ddof", c_uint32),
        ("values", c_void_p),
        ("valid", c_void_p),
        ("valid_bits", c_int),
        ("reserved", c_uint32),
        ("out", c_void_p),
    ]


class cua_group_by_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("mode", c_int),
        ("order", c_int),
    ]


class cua_unique_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("order", c_int),
        ("index_type", c_int),
        ("counts", c_void_p),
        ("first", c_void_p),
        ("inverse", c_void_p),
    ]


class cua_hashmap_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("seed", c_uint64),
        ("seed_high", c_uint64),
        ("rejects", c_uint64),
        ("max_bytes", c_uint64),
        ("grow_percent", c_uint32),
        ("own_hash", c_uint32),
        ("portable", c_uint32),
        ("hash", c_uint32),
        ("max_probes", c_uint32),
        ("no_erase", c_uint32),
    ]


class cua_hashmap_statistics(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("keys", c_uint64),
        ("slots", c_uint64),
        ("free", c_uint64),
        ("erased", c_uint64),
        ("rejected", c_uint64),
        ("worst_bucket", c_uint64),
        ("probes", c_uint64 * 32),
        ("load", c_double),
    ]


class cua_histogram_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("strategy", c_int),
        ("accumulate", c_int),
        ("count_type", c_int),
        ("channels", c_uint),
        ("counted", c_uint),
        ("closed", c_int),
        ("width", c_size_t),
        ("pitch", c_size_t),
        ("outside", c_void_p),
        ("weights", c_void_p),
        ("weight_type", c_int),
        ("weight_limit", c_double),
    ]


class cua_join_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("kind", c_int),
        ("index_type", c_int),
    ]


class cua_is_in_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("invert", c_int),
    ]


class cua_lock_agent(Structure):
    _fields_ = [
        ("grid", c_uint64),
        ("block", c_uint64),
        ("thread", c_uint64),
    ]


class cua_lock_verdict(Structure):
    _fields_ = [
        ("ready", c_uint64),
        ("mistake", c_uint32),
        ("kind", c_uint32),
        ("address", c_uint64),
        ("owner_clock", c_uint64),
        ("clock", c_uint64),
        ("owner", cua_lock_agent),
        ("offender", cua_lock_agent),
    ]


class cua_hang_report(Structure):
    _fields_ = [
        ("ready", c_uint64),
        ("kind", c_uint32),
        ("owner_kind", c_uint32),
        ("address", c_uint64),
        ("owner_clock", c_uint64),
        ("clock", c_uint64),
        ("waited_ns", c_uint64),
        ("owner", cua_lock_agent),
        ("waiter", cua_lock_agent),
    ]


class cua_lock_debug(Structure):
    _fields_ = [
        ("layout", c_uint32),
        ("reserved", c_uint32),
        ("n_records", c_uint64),
        ("records", c_void_p),
        ("max_verdicts", c_uint64),
        ("verdicts", c_void_p),
        ("max_reports", c_uint64),
        ("reports", c_void_p),
        ("limit_ns", c_uint64),
        ("n_verdicts", c_uint64),
        ("n_reports", c_uint64),
        ("n_dropped", c_uint64),
        ("ctx", c_void_p),
    ]


class cua_lock_debug_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("max_records", c_uint64),
        ("max_verdicts", c_uint64),
        ("max_reports", c_uint64),
        ("limit_ns", c_uint64),
    ]


class cua_pitched(Structure):
    _fields_ = [
        ("base", c_void_p),
        ("pitch", c_size_t),
        ("width", c_size_t),
        ("height", c_size_t),
        ("depth", c_size_t),
        ("element_size", c_size_t),
        ("layout", c_uint32),
        ("reserved", c_uint32),
    ]


class cua_pointer_info(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("backend", c_int),
        ("device", c_int),
        ("base", c_void_p),
        ("size", c_size_t),
        ("accessible", c_int),
        ("host_accessible", c_int),
    ]


class cua_multimap_view(Structure):
    _fields_ = [
        ("map", cua_hashmap_view),
        ("entries", c_void_p),
        ("reusable", c_void_p),
        ("pool", c_void_p),
        ("capacity", c_uint64),
        ("value_size", c_uint32),
        ("layout", c_uint32),
    ]


class cua_multimap_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("seed", c_uint64),
        ("seed_high", c_uint64),
        ("hash", c_uint32),
        ("link_size", c_uint32),
        ("portable", c_uint32),
        ("reserved", c_uint32),
    ]


class cua_reduce_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("finish", c_int),
        ("blocks", c_uint32),
        ("block_size", c_uint32),
        ("mode", c_int),
        ("result_type", c_int),
        ("count", c_void_p),
    ]


class cua_scatter_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("mode", c_int),
        ("result_type", c_int),
        ("overwrite", c_int),
        ("width", c_uint32),
        ("reserved", c_uint32),
        ("skipped", c_void_p),
    ]


class cua_segment_options(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("mode", c_int),
    ]


# The result and the parameters of each function, a letter each: - void, s string,
# p pointer, i int, I unsigned, L uint32_t, N size_t, Q uint64_t, d double.
PROTOTYPES = {
    "cua_alloc": "ipNNp",
    "cua_alloc_2d": "ipNNNp",
    "cua_alloc_3d": "ipNNNNp",
    "cua_alloc_system": "ipNNp",
    "cua_alloc_zero": "ipNNp",
    "cua_append_create": "ipNQp",
    "cua_append_demand": "ipp",
    "cua_append_destroy": "ip",
    "cua_append_get_view": "ipp",
    "cua_append_items": "ipp",
    "cua_append_read": "ippNp",
    "cua_append_reset": "ip",
    "cua_append_size": "ipp",
    "cua_append_status": "ip",
    "cua_atomic_path_query": "ipiip",
    "cua_chained_build_n": "ipNpp",
    "cua_chained_clear": "ip",
    "cua_chained_copy": "ippp",
    "cua_chained_count_n": "ipNpp",
    "cua_chained_create": "ippQQp",
    "cua_chained_demand": "ipp",
    "cua_chained_destroy": "ip",
    "cua_chained_find_n": "ipNppp",
    "cua_chained_get_view": "ipp",
    "cua_chained_insert_n": "ipNpp",
    "cua_chained_size": "ipp",
    "cua_chained_status": "ip",
    "cua_chained_values": "ipQQpp",
    "cua_chained_verify": "ipp",
    "cua_context_backend": "ip",
    "cua_context_create": "iiip",
    "cua_context_cuda_error": "ip",
    "cua_context_destroy": "-p",
    "cua_context_device": "ip",
    "cua_context_reserve": "ipN",
    "cua_context_set_stream": "ipp",
    "cua_context_set_threads": "ipI",
    "cua_context_stream": "pp",
    "cua_context_synchronize": "ip",
    "cua_context_threads": "Ip",
    "cua_copy": "ipppN",
    "cua_copy_from_pitched": "ippp",
    "cua_copy_to_pitched": "ippp",
    "cua_cuda_architectures": "s",
    "cua_device_count": "iip",
    "cua_device_peer_query": "iiiip",
    "cua_device_problem": "sii",
    "cua_device_query": "iiip",
    "cua_dot": "ipiNppp",
    "cua_exact_cells_finish_f32": "ipppp",
    "cua_exact_cells_finish_f64": "ipppp",
    "cua_exact_dot": "ipiNppp",
    "cua_exact_finish": "ippip",
    "cua_exact_range": "ipiNpp",
    "cua_exact_sum": "ipiNpp",
    "cua_fill": "ippNNp",
    "cua_fill_pitched": "ippNp",
    "cua_filter": "ipiNpipp",
    "cua_filter_append": "ippiNpipp",
    "cua_filter_array": "ippiNpipQpp",
    "cua_filter_workspace": "ippiNp",
    "cua_fixed_cut": "iiQLLp",
    "cua_free": "ipp",
    "cua_free_pitched": "ipp",
    "cua_group_by": "ippiNppLQpp",
    "cua_group_by_workspace": "ippiNpLQp",
    "cua_group_create": "ippp",
    "cua_group_create_devices": "iLpp",
    "cua_group_create_nccl": "ippp",
    "cua_group_destroy": "-p",
    "cua_group_local": "Lp",
    "cua_group_nccl_problem": "s",
    "cua_group_rank": "Lp",
    "cua_group_reduce": "ippiipppp",
    "cua_group_reduce_workspace": "ippiiNp",
    "cua_group_set_timeout": "ipd",
    "cua_group_size": "Lp",
    "cua_group_status": "ip",
    "cua_group_sum": "ipiNp",
    "cua_group_sum_workspace": "ipiNp",
    "cua_hang_report_text": "ipNp",
    "cua_hashmap_assign_n": "ipNppp",
    "cua_hashmap_build_n": "ipNppp",
    "cua_hashmap_build_workspace": "ipNp",
    "cua_hashmap_capacity": "ipp",
    "cua_hashmap_clear": "ip",
    "cua_hashmap_compare_exchange_n": "ipNpppp",
    "cua_hashmap_contains_n": "ipNpp",
    "cua_hashmap_copy_to_host": "ipQppp",
    "cua_hashmap_create": "ippiiQp",
    "cua_hashmap_destroy": "ip",
    "cua_hashmap_erase_n": "ipNpp",
    "cua_hashmap_exchange_n": "ipNpppp",
    "cua_hashmap_find_n": "ipNppp",
    "cua_hashmap_for_each": "ippp",
    "cua_hashmap_get_statistics": "ipp",
    "cua_hashmap_get_view": "ipp",
    "cua_hashmap_insert_n": "ipNppp",
    "cua_hashmap_insert_or_get_n": "ipNpppp",
    "cua_hashmap_load": "ipppp",
    "cua_hashmap_merge": "ippi",
    "cua_hashmap_rejected": "ipQppp",
    "cua_hashmap_resize": "ipQ",
    "cua_hashmap_retrieve": "ipiQppp",
    "cua_hashmap_retrieve_workspace": "ipiQp",
    "cua_hashmap_save": "ipp",
    "cua_hashmap_size": "ipp",
    "cua_hashmap_status": "ip",
    "cua_hashmap_update_n": "ipiNppp",
    "cua_hashmap_update_value_n": "ipiNppp",
    "cua_histogram_bytes": "ippNpp",
    "cua_histogram_edges": "ippiNpNpp",
    "cua_histogram_even": "ippiNpNppp",
    "cua_histogram_letters": "ippNpp",
    "cua_histogram_workspace": "ippNp",
    "cua_is_in": "ippiNpNpp",
    "cua_is_in_workspace": "ippiNNp",
    "cua_join": "ippiNpNpQppp",
    "cua_join_workspace": "ippiNNp",
    "cua_lock_debug_create": "ippp",
    "cua_lock_debug_destroy": "ip",
    "cua_lock_debug_dropped": "ipp",
    "cua_lock_debug_read_reports": "ipQNppp",
    "cua_lock_debug_read_verdicts": "ipQNppp",
    "cua_lock_verdict_text": "ipNp",
    "cua_max": "ipiNpp",
    "cua_memory_info": "ippp",
    "cua_min": "ipiNpp",
    "cua_multimap_clear": "ip",
    "cua_multimap_count_n": "ipNpp",
    "cua_multimap_create": "ippiiQQp",
    "cua_multimap_destroy": "ip",
    "cua_multimap_erase_n": "ipNpp",
    "cua_multimap_get_view": "ipp",
    "cua_multimap_insert_n": "ipNppp",
    "cua_multimap_keys": "ipp",
    "cua_multimap_reclaim": "ip",
    "cua_multimap_retrieve": "ipQppp",
    "cua_multimap_retrieve_n": "ipNpQppp",
    "cua_multimap_size": "ipp",
    "cua_multimap_status": "ip",
    "cua_pointer_query": "ippp",
    "cua_reduce": "ippiiNppp",
    "cua_reduce_by_key": "ippiiiNppQppp",
    "cua_reduce_by_key_workspace": "ippiiiNQp",
    "cua_reduce_workspace": "ippiiNp",
    "cua_scatter": "ippiiiNppNp",
    "cua_scatter_add": "ipiiNppNp",
    "cua_scatter_workspace": "ippiiiNNp",
    "cua_segmented_reduce": "ippiiNpNpp",
    "cua_segmented_reduce_workspace": "ippiiNNp",
    "cua_segmented_sum": "ipiNpNpp",
    "cua_sharded_map_assign_n": "ippppp",
    "cua_sharded_map_build_n": "ippppp",
    "cua_sharded_map_clear": "ip",
    "cua_sharded_map_contains_n": "ipppp",
    "cua_sharded_map_create": "ippiiQp",
    "cua_sharded_map_destroy": "-p",
    "cua_sharded_map_erase_n": "ipppp",
    "cua_sharded_map_find_n": "ippppp",
    "cua_sharded_map_insert_n": "ippppp",
    "cua_sharded_map_load": "ipppp",
    "cua_sharded_map_owner": "ippp",
    "cua_sharded_map_retrieve": "ipipppp",
    "cua_sharded_map_save": "ipp",
    "cua_sharded_map_shard": "ppL",
    "cua_sharded_map_size": "ipp",
    "cua_sharded_map_status": "ip",
    "cua_sharded_map_update_n": "ipipppp",
    "cua_sharded_map_workspace": "ipNp",
    "cua_status_name": "si",
    "cua_strerror": "si",
    "cua_sum": "ipiNpp",
    "cua_symbol_read": "ipppNN",
    "cua_symbol_write": "ippNpN",
    "cua_type_name": "si",
    "cua_type_size": "Ni",
    "cua_unique": "ippiNpQpp",
    "cua_unique_workspace": "ippiNQp",
    "cua_version": "s",
}
