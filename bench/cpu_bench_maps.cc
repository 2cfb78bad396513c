// SPDX-License-Identifier: MIT
// The part of `cuatomic bench hashmap` that needs C++. It compares the map of unique keys on the
// CPU with concurrent maps of C++, alternately in the same process, with the same threads, keys and
// values. The help text below has the details.

#include "config.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <time.h>

#ifdef HAVE_LIBCUCKOO
#include <libcuckoo/cuckoohash_map.hh>
#endif
#ifdef HAVE_TBB
#include <oneapi/tbb/concurrent_hash_map.h>
#endif

#include <cuatomic/hashmap.h>

#include "bench_keys.h"
#include "bench_table.h"

#define KEYS 26214400
#define QUICK_KEYS 16384
#define LOAD 80 // percent
#define RUNS 5
// If a run of all maps takes more than SLOW seconds or the time limit has passed, only SLOW_RUNS
// runs are measured.
#define SLOW 30
#define SLOW_RUNS STATS_LEAST

static const char help_text[] =
	"usage: bench-maps [--quick] [--threads=N]\n"
	"\n"
	"Inserts 26214400 distinct keys of 4 bytes with values of 4 bytes into an empty map\n"
	"that holds them at a load of 0.8, finds all of them in another order, and looks up as\n"
	"many absent keys. Does so with a single thread, and with N threads that share the\n"
	"keys. Prints millions of keys a second of the maps that the build found, in turns:\n"
	"\n"
	"  libcuckoo    cuckoohash_map<uint32_t, uint32_t> with this capacity reserved. Calls\n"
	"               insert and find. The number of slots is a power of two, so the load is\n"
	"               0.78. Measured with the default allocator, and with an allocator that\n"
	"               uses large pages like cuatomic\n"
	"  oneTBB       concurrent_hash_map<uint32_t, uint32_t> with a bucket reserved for each\n"
	"               key. Calls insert and find\n"
	"  cua_hashmap, a key a call\n"
	"               cua_hashmap_insert and cua_hashmap_find, in the threads of the peers\n"
	"  cua_hashmap  cua_hashmap_insert_n and cua_hashmap_find_n of the CPU backend, with as\n"
	"               many threads\n"
	"\n"
	"The last column is the ratio to the fastest peer. Every result is checked. Without a\n"
	"GPU, 'cuatomic bench hashmap' runs this program.\n";

// ---- the shared input ----

enum op { INSERT, FIND, MISS, OPS };
static const char *const op_names[OPS] = {"insert", "find hits", "find misses"};

static size_t n = KEYS;
static unsigned threads; // 0: the context's default
static struct cua_context *ctx;
static uint32_t *keys, *values, *asked, *absent, *out;
static uint8_t *found;

[[noreturn]] static void die(const char *what, const char *why)
{
	fflush(stdout);
	fprintf(stderr, "cuatomic: bench hashmap: %s: %s\n", what, why);
	exit(1);
}

static void need(enum cua_status status, const char *what)
{
	if (status)
		die(what, cua_strerror(status));
}

static double now()
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// ---- calls for a key, on threads that share the keys ----

// Calls part(first, end) on each thread, for its share of the keys.
template <typename Part> static void share(Part part)
{
	std::vector<std::thread> all;

	for (unsigned t = 1; t < threads; t++)
		all.emplace_back(part, n * t / threads, n * (t + 1) / threads);
	part((size_t)0, n / threads);
	for (std::thread &t : all)
		t.join();
}

// Calls map.insert_one or map.find_one for all keys.
template <typename Map> static void call_each(Map &map, enum op op)
{
	const uint32_t *wanted = op == FIND ? asked : absent;

	if (op == INSERT)
		share([&map](size_t first, size_t end) {
			for (size_t i = first; i < end; i++)
				map.insert_one(keys[i], values[i]);
		});
	else
		share([&map, wanted](size_t first, size_t end) {
			for (size_t i = first; i < end; i++)
				found[i] = map.find_one(wanted[i], &out[i]);
		});
}

// ---- libcuckoo ----

#ifdef HAVE_LIBCUCKOO
// Allocates memory with large pages.
template <typename T> struct large_pages {
	typedef T value_type;

	large_pages() = default;
	template <typename U> large_pages(const large_pages<U> &)
	{
	}
	T *allocate(size_t count)
	{
		const size_t page = (size_t)2 << 20,
			     bytes = (count * sizeof(T) + page - 1) / page * page;
		void *p = count * sizeof(T) < page ? malloc(count * sizeof(T))
						   : aligned_alloc(page, bytes);

		if (!p)
			throw std::bad_alloc();
		if (count * sizeof(T) >= page)
			(void)madvise(p, bytes, MADV_HUGEPAGE);
		return static_cast<T *>(p);
	}
	void deallocate(T *p, size_t)
	{
		free(p);
	}
	template <typename U> bool operator==(const large_pages<U> &) const
	{
		return true;
	}
	template <typename U> bool operator!=(const large_pages<U> &) const
	{
		return false;
	}
};

template <template <typename> class Allocator> class cuckoo
{
	libcuckoo::cuckoohash_map<uint32_t, uint32_t, std::hash<uint32_t>, std::equal_to<uint32_t>,
				  Allocator<std::pair<const uint32_t, uint32_t>>>
		map;

      public:
	cuckoo() : map(n * 100 / LOAD)
	{
	}
	void clear()
	{
		map.clear();
	}
	void insert_one(uint32_t key, uint32_t value)
	{
		map.insert(key, value);
	}
	bool find_one(uint32_t key, uint32_t *value)
	{
		return map.find(key, *value);
	}
	void call(enum op op)
	{
		call_each(*this, op);
	}
	uint64_t size() const
	{
		return map.size();
	}
};
#endif

// ---- oneTBB ----

#ifdef HAVE_TBB
class tbb_map
{
	typedef oneapi::tbb::concurrent_hash_map<uint32_t, uint32_t> map_type;
	map_type map;

      public:
	void clear()
	{
		map.clear();
		map.rehash(n);
	}
	void insert_one(uint32_t key, uint32_t value)
	{
		map.insert(map_type::value_type(key, value));
	}
	bool find_one(uint32_t key, uint32_t *value)
	{
		map_type::const_accessor pair;

		if (!map.find(pair, key))
			return false;
		*value = pair->second;
		return true;
	}
	void call(enum op op)
	{
		call_each(*this, op);
	}
	uint64_t size() const
	{
		return map.size();
	}
};
#endif

// ---- cuatomic ----

class ours
{
	struct cua_hashmap *map = nullptr;
	struct cua_hashmap_view view;
	bool bulk;

      public:
	explicit ours(bool bulk) : bulk(bulk)
	{
		need(cua_hashmap_create(ctx, nullptr, CUA_U32, CUA_U32, n * 100 / LOAD, &map),
		     "cua_hashmap_create");
		need(cua_hashmap_get_view(map, &view), "cua_hashmap_get_view");
	}
	~ours()
	{
		cua_hashmap_destroy(map);
	}
	ours(const ours &) = delete;
	ours &operator=(const ours &) = delete;
	void clear()
	{
		need(cua_hashmap_clear(map), "cua_hashmap_clear");
	}
	void insert_one(uint32_t key, uint32_t value)
	{
		(void)cua_hashmap_insert(&view, key, value);
	}
	bool find_one(uint32_t key, uint32_t *value)
	{
		uint64_t v;

		if (!cua_hashmap_find(&view, key, &v))
			return false;
		*value = (uint32_t)v;
		return true;
	}
	void call(enum op op)
	{
		if (!bulk)
			call_each(*this, op);
		else if (op == INSERT)
			need(cua_hashmap_insert_n(map, n, keys, values, nullptr),
			     "cua_hashmap_insert_n");
		else
			need(cua_hashmap_find_n(map, n, op == FIND ? asked : absent, out, found),
			     "cua_hashmap_find_n");
	}
	uint64_t size() const
	{
		uint64_t result;

		need(cua_hashmap_size(map, &result), "cua_hashmap_size");
		return result;
	}
};

// ---- measurement ----

struct way {
	const char *name;
	enum table_kind kind;
	double rates[OPS][RUNS];
};

static struct way ways[] = {
#ifdef HAVE_LIBCUCKOO
	{"libcuckoo", TABLE_PEER, {}},
	{"libcuckoo, large pages", TABLE_PEER, {}},
#endif
#ifdef HAVE_TBB
	{"oneTBB", TABLE_PEER, {}},
#endif
	{"cua_hashmap, a key a call", TABLE_OURS, {}},
	{"cua_hashmap", TABLE_OURS, {}},
};

// The number of keys with the right result.
static uint64_t right(enum op op, uint64_t size)
{
	uint64_t count = 0;

	if (op == INSERT)
		return size;
	for (size_t i = 0; i < n; i++)
		count += op == MISS ? found[i] == 0
				    : found[i] == 1 && out[i] == keys_value(4, asked[i]);
	return count;
}

// Measures a run. Run -1 warms up and is not counted.
template <typename Map> static void measure(Map &map, struct way *way, int run)
{
	map.clear();
	for (int op = INSERT; op < OPS; op++) {
		double start, taken;
		uint64_t got;

		memset(found, 2, n);
		memset(out, 0, n * sizeof(*out));
		start = now();
		map.call((enum op)op);
		taken = now() - start;
		got = right((enum op)op, map.size());
		if (got != n) {
			char why[96];

			snprintf(why, sizeof(why), "%s: %llu of %zu are right", op_names[op],
				 (unsigned long long)got, n);
			die(way->name, why);
		}
		if (run >= 0)
			way->rates[op][run] = (double)n / taken * 1e-6;
	}
}

template <typename T> static void get_memory(T **p)
{
	void *memory;

	need(cua_alloc(ctx, n, sizeof(T), &memory), "memory");
	*p = static_cast<T *>(memory);
}

static void make_keys()
{
	get_memory(&keys);
	get_memory(&values);
	get_memory(&asked);
	get_memory(&absent);
	get_memory(&out);
	get_memory(&found);
	for (size_t i = 0; i < n; i++) {
		keys[i] = (uint32_t)keys_key(4, i);
		values[i] = (uint32_t)keys_value(4, keys[i]);
		asked[i] = (uint32_t)keys_key(4, keys_turn(i, n));
		absent[i] = (uint32_t)keys_key(4, n + i);
	}
}

static void parse(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		char *end = argv[i];

		if (!strcmp(argv[i], "--help")) {
			fputs(help_text, stdout);
			exit(0);
		}
		if (!strcmp(argv[i], "--quick")) {
			n = QUICK_KEYS;
			continue;
		}
		if (!strncmp(argv[i], "--threads=", 10))
			threads = (unsigned)strtoul(argv[i] + 10, &end, 10);
		if (*end || threads < 1 || threads > 1024) {
			fprintf(stderr,
				"cuatomic: bench hashmap: bench-maps takes no argument '%s'\n",
				argv[i]);
			exit(2);
		}
	}
}

// Measures all maps in turns for so many seconds, and returns the number of runs.
static int measure_all(double seconds)
{
	const double first = now();
	struct way *way;
	int runs = RUNS;
#ifdef HAVE_LIBCUCKOO
	cuckoo<std::allocator> small;
	cuckoo<large_pages> large;
#endif
#ifdef HAVE_TBB
	tbb_map tbb;
#endif
	ours each(false), bulk(true);

	for (int run = -1; run < runs; run++) {
		double start = now();

		way = ways;
#ifdef HAVE_LIBCUCKOO
		measure(small, way++, run);
		measure(large, way++, run);
#endif
#ifdef HAVE_TBB
		measure(tbb, way++, run);
#endif
		measure(each, way++, run);
		measure(bulk, way, run);
		if (now() - start > SLOW)
			runs = SLOW_RUNS;
		if (run + 1 >= STATS_LEAST && now() - first >= seconds)
			runs = run + 1;
	}
	return runs;
}

static void name_case(char name[28], int op)
{
	snprintf(name, 28, "%s, %u thread%s", op_names[op], threads, threads == 1 ? "" : "s");
}

// Whether the filter has a row with this number of threads. All maps run in turns, so a single row
// needs all runs.
static bool wants_rows()
{
	bool wants = false;
	char name[28];

	for (int op = INSERT; op < OPS; op++) {
		name_case(name, op);
		for (struct way &way : ways)
			wants = wants || table_matches(name, way.name);
	}
	return wants;
}

static void measure_threads(unsigned count)
{
	const int rows = OPS * (sizeof(ways) / sizeof(ways[0]));
	struct table table = {};
	int runs = 0;

	threads = count;
	need(cua_context_set_threads(ctx, threads), "cua_context_set_threads");
	if (wants_rows()) {
		if (!keys)
			make_keys();
		runs = measure_all(bench_env()->seconds > 0 ? bench_stats_plan().seconds * rows
							    : HUGE_VAL);
	}
	for (int op = INSERT; op < OPS; op++) {
		char name[28];

		name_case(name, op);
		table_begin(&table, name);
		for (struct way &way : ways) {
			struct figure f = {};

			if (runs)
				f = table_figure(way.rates[op], runs);
			if (runs && runs < RUNS)
				f.reason = STATS_TIME_LIMIT;
			table_add(&table, way.kind, way.name, f);
		}
		table_end(&table);
	}
}

int main(int argc, char **argv)
{
	unsigned all;

	bench_env();
	parse(argc, argv);
	need(cua_context_create(CUA_BACKEND_CPU, 0, &ctx), "cua_context_create");
	need(cua_context_set_threads(ctx, threads), "cua_context_set_threads");
	all = cua_context_threads(ctx);
	bench_program("hashmap");
	bench_plan(OPS * (sizeof(ways) / sizeof(ways[0])) * (all > 1 ? 2 : 1));
	printf("\n%zu keys of 4 bytes and values of 4 bytes, load %d %%, in turns\n", n, LOAD);
	table_columns("M/s", "");
	measure_threads(1);
	if (all > 1)
		measure_threads(all);
	cua_context_destroy(ctx);
	return 0;
}
