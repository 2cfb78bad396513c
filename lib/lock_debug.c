/* SPDX-License-Identifier: MIT */
/* The host side of the lock checker: creates, destroys and reads its tables. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "backend/internal.h"

#define DEFAULT_RECORDS 16384u
#define DEFAULT_VERDICTS 1024u
#define DEFAULT_REPORTS 1024u

/* ---- create and destroy ---- */

/* Stores in *n the least power of two >= least. Returns CUA_ERROR_SIZE if there is none. */
static enum cua_status power_of_two(uint64_t least, uint64_t *n)
{
	uint64_t p = 1;

	while (p < least) {
		if (p > UINT64_MAX / 2)
			return CUA_ERROR_SIZE;
		p *= 2;
	}
	*n = p;
	return CUA_OK;
}

/* Adds the bytes of n elements to *bytes. Returns CUA_ERROR_SIZE if the sum is too large. */
static enum cua_status add_bytes(uint64_t n, size_t size, size_t *bytes)
{
	enum cua_status status;
	size_t more;

	if (n > SIZE_MAX)
		return CUA_ERROR_SIZE;
	status = cua__bytes((size_t)n, size, &more);
	if (status)
		return status;
	if (more > SIZE_MAX / 2 - *bytes)
		return CUA_ERROR_SIZE;
	*bytes += more;
	return CUA_OK;
}

enum cua_status cua_lock_debug_create(struct cua_context *ctx,
				      const struct cua_lock_debug_options *options,
				      struct cua_lock_debug **table)
{
	struct cua_lock_debug_options chosen;
	const struct cua__runtime *runtime;
	struct cua_lock_verdict *verdicts;
	struct cua_hang_report *reports;
	struct cua_lock_debug *t;
	struct cua__call call;
	enum cua_status status;
	size_t mapped_bytes = sizeof(*t), record_bytes = 0;
	void *mapped = NULL, *records = NULL;

	if (!ctx || !table)
		return CUA_ERROR_NULL;
	if (cua__options(options, &chosen, sizeof(chosen)))
		return CUA_ERROR_VALUE;
	if (!chosen.max_records)
		chosen.max_records = DEFAULT_RECORDS;
	if (!chosen.max_verdicts)
		chosen.max_verdicts = DEFAULT_VERDICTS;
	if (!chosen.max_reports)
		chosen.max_reports = DEFAULT_REPORTS;
	status = power_of_two(chosen.max_records, &chosen.max_records);
	if (!status)
		status = add_bytes(chosen.max_records, sizeof(struct cua_lock_record),
				   &record_bytes);
	if (!status)
		status = add_bytes(chosen.max_verdicts, sizeof(*verdicts), &mapped_bytes);
	if (!status)
		status = add_bytes(chosen.max_reports, sizeof(*reports), &mapped_bytes);
	if (status)
		return status;

	runtime = ctx->runtime;
	cua__call_begin(&call, ctx);
	status = runtime->may_wait(ctx);
	if (!status)
		status = runtime->allocate_mapped(ctx, mapped_bytes, &mapped);
	if (!status)
		status = runtime->allocate(ctx, record_bytes, &records);
	if (!status)
		status = runtime->set_bytes(ctx, records, 0, record_bytes);
	if (!status)
		status = runtime->synchronize(ctx);
	if (status) {
		if (records)
			runtime->release(ctx, records);
		if (mapped)
			runtime->release_mapped(ctx, mapped);
		return cua__call_end(&call, status);
	}
	memset(mapped, 0, mapped_bytes);
	t = mapped;
	verdicts = (struct cua_lock_verdict *)(t + 1);
	reports = (struct cua_hang_report *)(verdicts + chosen.max_verdicts);
	cua_lock_debug_init(t, chosen.max_records, records, chosen.max_verdicts, verdicts,
			    chosen.max_reports, reports, chosen.limit_ns);
	t->ctx = ctx;
	status = cua__call_end(&call, CUA_OK);
	if (!status)
		*table = t;
	return status;
}

enum cua_status cua_lock_debug_destroy(struct cua_lock_debug *table)
{
	const struct cua__runtime *runtime;
	struct cua_context *ctx;
	struct cua__call call;
	enum cua_status status, second;

	if (!table)
		return CUA_OK;
	if (table->layout != CUA_LOCK_DEBUG_LAYOUT)
		return CUA_ERROR_LAYOUT;
	ctx = table->ctx;
	if (!ctx)
		return CUA_ERROR_VALUE;
	runtime = ctx->runtime;
	cua__call_begin(&call, ctx);
	status = runtime->may_wait(ctx);
	if (!status)
		status = runtime->synchronize(ctx);
	if (status == CUA_ERROR_CAPTURE)
		return cua__call_end(&call, status);
	second = runtime->release(ctx, table->records);
	if (!status)
		status = second;
	second = runtime->release_mapped(ctx, table);
	return cua__call_end(&call, status ? status : second);
}

/* ---- reads concurrent with writers ---- */

static uint64_t read_u64(const uint64_t *p)
{
	return cua_port_load_b64(p, CUA_ACQUIRE, CUA_SCOPE_SYSTEM, CUA_SPACE_GENERIC);
}

/*
 * Copies entries of `size` bytes from number `first` on, up to the first entry that is not ready.
 * The first word of an entry is nonzero once the entry is ready. Returns the number of copied
 * entries.
 */
static size_t read_entries(const void *entries, size_t size, uint64_t capacity, uint64_t count,
			   uint64_t first, size_t most, void *out)
{
	const char *from = entries;
	char *to = out;
	size_t n = 0;

	if (count > capacity)
		count = capacity;
	while (n < most && first < count && n < count - first) {
		const char *entry = from + (size_t)(first + n) * size;

		if (!read_u64((const uint64_t *)(const void *)entry))
			break;
		memcpy(to + n * size, entry, size);
		n++;
	}
	return n;
}

enum cua_status cua_lock_debug_read_verdicts(const struct cua_lock_debug *table, uint64_t first,
					     size_t most, struct cua_lock_verdict *verdicts,
					     size_t *n, uint64_t *total)
{
	uint64_t count;

	if (!table || !n || !total || (!verdicts && most))
		return CUA_ERROR_NULL;
	if (table->layout != CUA_LOCK_DEBUG_LAYOUT)
		return CUA_ERROR_LAYOUT;
	count = read_u64(&table->n_verdicts);
	*n = read_entries(table->verdicts, sizeof(*verdicts), table->max_verdicts, count, first,
			  most, verdicts);
	*total = count;
	return CUA_OK;
}

enum cua_status cua_lock_debug_read_reports(const struct cua_lock_debug *table, uint64_t first,
					    size_t most, struct cua_hang_report *reports, size_t *n,
					    uint64_t *total)
{
	uint64_t count;

	if (!table || !n || !total || (!reports && most))
		return CUA_ERROR_NULL;
	if (table->layout != CUA_LOCK_DEBUG_LAYOUT)
		return CUA_ERROR_LAYOUT;
	count = read_u64(&table->n_reports);
	*n = read_entries(table->reports, sizeof(*reports), table->max_reports, count, first, most,
			  reports);
	*total = count;
	return CUA_OK;
}

enum cua_status cua_lock_debug_dropped(const struct cua_lock_debug *table, uint64_t *dropped)
{
	if (!table || !dropped)
		return CUA_ERROR_NULL;
	if (table->layout != CUA_LOCK_DEBUG_LAYOUT)
		return CUA_ERROR_LAYOUT;
	*dropped = read_u64(&table->n_dropped);
	return CUA_OK;
}

/* ---- as text ---- */

static const char *kind_name(uint32_t kind)
{
	switch (kind) {
	case CUA_LOCK_SPIN: return "spinlock";
	case CUA_LOCK_TICKET: return "ticket lock";
	case CUA_LOCK_MCS: return "queue lock";
	case CUA_LOCK_READ: return "rwlock (read)";
	case CUA_LOCK_WRITE: return "rwlock (write)";
	case CUA_LOCK_SEQ: return "sequence lock";
	case CUA_LOCK_SEMAPHORE: return "semaphore";
	default: return "unknown lock";
	}
}

static const char *mistake_text(uint32_t mistake)
{
	switch (mistake) {
	case CUA_LOCK_SELF_RELOCK: return "locked again by its holder";
	case CUA_LOCK_STRANGER_UNLOCK: return "unlocked by a non-owner";
	case CUA_LOCK_UNLOCK_FREE: return "unlocked while free";
	case CUA_LOCK_REINIT: return "initialized while held";
	default: return "unknown mistake";
	}
}

#define AGENT_FORMAT "grid %#" PRIx64 " block %" PRIu64 " thread %" PRIu64
#define AGENT(a) (a).grid, (a).block, (a).thread

/* The owner and the time of its acquisition; clock is 0 without a recorded owner. */
static void owner_text(const struct cua_lock_agent *owner, uint64_t clock, size_t size, char *text)
{
	if (clock)
		snprintf(text, size, AGENT_FORMAT " since %" PRIu64 " ns", AGENT(*owner), clock);
	else
		snprintf(text, size, "no recorded owner");
}

/* Copies the line to the caller's buffer. Returns CUA_ERROR_SIZE if the buffer is too small. */
static enum cua_status copy_line(const char *line, size_t size, char *text)
{
	size_t bytes = strlen(line) + 1;

	if (bytes > size)
		return CUA_ERROR_SIZE;
	memcpy(text, line, bytes);
	return CUA_OK;
}

enum cua_status cua_lock_verdict_text(const struct cua_lock_verdict *verdict, size_t size,
				      char *text)
{
	char line[CUA_LOCK_DEBUG_TEXT], owner[128];

	if (!verdict || !text)
		return CUA_ERROR_NULL;
	owner_text(&verdict->owner, verdict->owner_clock, sizeof(owner), owner);
	snprintf(line, sizeof(line),
		 "%s %#" PRIx64 " %s: by " AGENT_FORMAT " at %" PRIu64 " ns; held by %s",
		 kind_name(verdict->kind), verdict->address, mistake_text(verdict->mistake),
		 AGENT(verdict->offender), verdict->clock, owner);
	return copy_line(line, size, text);
}

enum cua_status cua_hang_report_text(const struct cua_hang_report *report, size_t size, char *text)
{
	char line[CUA_LOCK_DEBUG_TEXT], owner[128];

	if (!report || !text)
		return CUA_ERROR_NULL;
	owner_text(&report->owner, report->owner_clock, sizeof(owner), owner);
	snprintf(line, sizeof(line),
		 "%s %#" PRIx64 ": wait of %" PRIu64 " ns by " AGENT_FORMAT " at %" PRIu64
		 " ns; held%s by %s",
		 kind_name(report->kind), report->address, report->waited_ns, AGENT(report->waiter),
		 report->clock, report->owner_kind == CUA_LOCK_READ ? " to read" : "", owner);
	return copy_line(line, size, text);
}
