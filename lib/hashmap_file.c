/* SPDX-License-Identifier: MIT */
/* Save and load of a hash map. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hashmap_host.h"
#include "replace.h"

#define BATCH_BYTES ((size_t)4 << 20)
#define FILE_VERSION 1u
#define SAME_ORDER 0x01020304u
#define PORTABLE 1u
#define NO_ERASE 2u

struct header {
	char magic[8];
	uint32_t order; /* SAME_ORDER if the byte orders of file and machine agree */
	uint32_t version;
	uint32_t key_size, value_size;
	uint64_t count;
	uint64_t slots;
	uint64_t seed;
	uint64_t rejects;
	uint32_t grow_percent, flags;
	uint32_t hash, max_probes;
	uint64_t pairs_sum;
	uint64_t header_sum; /* of all fields before it */
};
CUA_STATIC_ASSERT(sizeof(struct header) == 88, "the header is a file format");

static const char magic[8] = {'c', 'u', 'a', 'm', 'a', 'p', '\r', '\n'};

/*
 * A checksum of 64 bits. Each word is mixed in by steps that are bijective in the sum and in the
 * word. So a change within a single word always changes the sum. All calls but the last of a
 * sequence must pass whole words.
 */
static uint64_t add_up(uint64_t sum, const void *bytes, size_t n)
{
	const char *p = bytes;

	for (; n; p += 8) {
		size_t take = n < 8 ? n : 8;
		uint64_t word = 0;

		memcpy(&word, p, take);
		sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
		sum ^= sum >> 29;
		n -= take;
	}
	return sum;
}

static uint64_t header_sum(const struct header *h)
{
	return add_up(h->version, h, offsetof(struct header, header_sum));
}

/* ---- save ---- */

/* A buffer of pairs in the format of the file; whole words, except at the end. */
struct stream {
	struct cua__replace *file;
	uint32_t ks, vs;
	char *bytes;
	size_t used, room;
	uint64_t sum;
};

static enum cua_status flush(struct stream *s)
{
	enum cua_status status = cua__replace_write(s->file, s->bytes, s->used);

	s->sum = add_up(s->sum, s->bytes, s->used);
	s->used = 0;
	return status;
}

static enum cua_status save_pairs(struct cua_hashmap *map, struct stream *s, struct header *h)
{
	struct cua__hashmap_pass pass;
	enum cua_status status;
	int more = 1;

	status = cua__hashmap_pass_begin(&pass, map);
	while (!status && more) {
		status = cua__hashmap_pass_next(&pass, &more);
		for (uint64_t i = 0; !status && i < pass.n; i++) {
			memcpy(s->bytes + s->used, pass.keys + i * s->ks, s->ks);
			memcpy(s->bytes + s->used + s->ks, pass.values + i * s->vs, s->vs);
			s->used += s->ks + s->vs;
			if (s->used == s->room)
				status = flush(s);
		}
		h->count += pass.n;
	}
	if (!status)
		status = flush(s);
	h->pairs_sum = s->sum;
	cua__hashmap_pass_end(&pass);
	return status;
}

static enum cua_status save_to(struct cua_hashmap *map, struct cua__replace *file)
{
	const uint32_t size = map->view.key_size + map->view.value_size;
	struct header h;
	struct stream s = {file, map->view.key_size, map->view.value_size, NULL, 0, 0, 0};
	enum cua_status status;

	memset(&h, 0, sizeof(h));
	memcpy(h.magic, magic, sizeof(magic));
	h.order = SAME_ORDER;
	h.version = FILE_VERSION;
	h.key_size = map->view.key_size;
	h.value_size = map->view.value_size;
	h.slots = cua__hashmap_slots(&map->view);
	/* the file does not contain the secret of a keyed hash; load draws another secret */
	h.seed = map->options.hash == CUA_HASHMAP_HASH_KEYED ? 0 : map->options.seed;
	h.hash = map->options.hash;
	h.max_probes = map->options.max_probes;
	h.rejects = map->options.rejects;
	h.grow_percent = map->options.grow_percent;
	h.flags = (map->options.portable ? PORTABLE : 0) | (map->options.no_erase ? NO_ERASE : 0);
	/* a multiple of the word size, too */
	s.room = BATCH_BYTES / (8 * size) * (8 * size);
	s.bytes = malloc(s.room);
	if (!s.bytes)
		return CUA_ERROR_NO_MEMORY;
	/* reserves the room of the header; its contents are known at the end */
	status = cua__replace_write(file, &h, sizeof(h));
	if (!status)
		status = save_pairs(map, &s, &h);
	free(s.bytes);
	h.header_sum = header_sum(&h);
	if (!status && lseek(file->fd, 0, SEEK_SET) != 0)
		status = CUA_ERROR_SYSTEM;
	if (!status)
		status = cua__replace_write(file, &h, sizeof(h));
	return status;
}

static enum cua_status save(struct cua_hashmap *map, const char *path)
{
	struct cua__replace file;
	enum cua_status status = cua__replace_begin(&file, path);

	if (status)
		return status;
	status = save_to(map, &file);
	if (!status)
		return cua__replace_finish(&file);
	cua__replace_abandon(&file);
	return status;
}

enum cua_status cua_hashmap_save(struct cua_hashmap *map, const char *path)
{
	enum cua_status status;
	int cancel;

	if (!map || !path)
		return CUA_ERROR_NULL;
	if (map->options.own_hash)
		return CUA_ERROR_UNSUPPORTED;
	/* cancellation would leave the temporary file behind */
	cancel = cua__cancel_disable();
	status = save(map, path);
	cua__cancel_restore(cancel);
	return status;
}

/* ---- load ---- */

enum cua_status cua__open_file(const char *path, int *fd, uint64_t *bytes)
{
	struct stat file;
	int saved;

	/* a path that is no regular file, such as a FIFO, must not block open */
	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (*fd < 0)
		return CUA_ERROR_SYSTEM;
	if (!fstat(*fd, &file) && S_ISREG(file.st_mode)) {
		*bytes = (uint64_t)file.st_size;
		return CUA_OK;
	}
	saved = fstat(*fd, &file) ? errno : S_ISDIR(file.st_mode) ? EISDIR : EINVAL;
	close(*fd);
	errno = saved;
	return CUA_ERROR_SYSTEM;
}

enum cua_status cua__read_all(int fd, void *bytes, size_t n)
{
	char *p = bytes;

	while (n) {
		ssize_t done = read(fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return CUA_ERROR_SYSTEM;
		if (!done)
			return CUA_ERROR_CORRUPT;
		p += done;
		n -= (size_t)done;
	}
	return CUA_OK;
}

/* `bytes` are those of the file. */
static enum cua_status read_header(int fd, uint64_t bytes, struct header *h)
{
	enum cua_status status;
	uint64_t size;

	if (bytes < sizeof(*h))
		return CUA_ERROR_CORRUPT;
	status = cua__read_all(fd, h, sizeof(*h));
	if (status)
		return status;
	if (memcmp(h->magic, magic, sizeof(magic)) || h->order != SAME_ORDER ||
	    h->version != FILE_VERSION || h->header_sum != header_sum(h) ||
	    cua__hashmap_type_of(h->key_size) == CUA_NONE ||
	    (h->value_size && cua__hashmap_type_of(h->value_size) == CUA_NONE) || !h->slots ||
	    h->grow_percent > 95 || h->flags > (PORTABLE | NO_ERASE) ||
	    h->hash > CUA_HASHMAP_HASH_KEYED ||
	    (h->max_probes && (h->max_probes < CUA_HASHMAP_LEAST_MAX_PROBES ||
			       h->max_probes > CUA_HASHMAP_MOST_MAX_PROBES)))
		return CUA_ERROR_CORRUPT;
	size = h->key_size + h->value_size;
	/* the rest must be exactly the pairs; this detects an absurd count before any allocation */
	if (bytes - sizeof(*h) != h->count * size || h->count != (bytes - sizeof(*h)) / size ||
	    (h->count > h->slots && h->count - h->slots > 2))
		return CUA_ERROR_CORRUPT;
	return CUA_OK;
}

static enum cua_status begin_pairs(struct cua__hashmap_reader *r, int fd, const struct header *h)
{
	const size_t pair = h->key_size + h->value_size;

	*r = (struct cua__hashmap_reader){
		.fd = fd,
		.key_size = h->key_size,
		.value_size = h->value_size,
		.count = h->count,
		.slots = h->slots,
		.file_sum = h->header_sum,
		.pairs_sum = h->pairs_sum,
		.most = BATCH_BYTES / (8 * pair) * 8,
	};
	r->bytes = malloc(2 * r->most * pair);
	if (!r->bytes)
		return CUA_ERROR_NO_MEMORY;
	r->keys = r->bytes + r->most * pair;
	r->values = r->keys + r->most * h->key_size;
	return CUA_OK;
}

enum cua_status cua__hashmap_reader_next(struct cua__hashmap_reader *r)
{
	const uint32_t ks = r->key_size, vs = r->value_size;
	enum cua_status status = CUA_OK;

	r->n = r->count - r->done < r->most ? (size_t)(r->count - r->done) : r->most;
	if (!r->n)
		return r->sum == r->pairs_sum ? CUA_OK : CUA_ERROR_CORRUPT;
	status = cua__read_all(r->fd, r->bytes, r->n * (ks + vs));
	if (status)
		return status;
	r->sum = add_up(r->sum, r->bytes, r->n * (ks + vs));
	for (size_t i = 0; i < r->n; i++) {
		memcpy(r->keys + i * ks, r->bytes + i * (ks + vs), ks);
		memcpy(r->values + i * vs, r->bytes + i * (ks + vs) + ks, vs);
	}
	r->done += r->n;
	return CUA_OK;
}

enum cua_status cua__hashmap_reader_open(struct cua__hashmap_reader *r, const char *path)
{
	struct header h;
	enum cua_status status;
	uint64_t bytes;
	int fd, saved;

	r->bytes = NULL;
	status = cua__open_file(path, &fd, &bytes);
	if (status)
		return status;
	status = read_header(fd, bytes, &h);
	if (!status)
		status = begin_pairs(r, fd, &h);
	if (status) {
		saved = errno;
		close(fd);
		errno = saved;
	}
	return status;
}

void cua__hashmap_reader_close(struct cua__hashmap_reader *r)
{
	const int saved = errno;

	if (r->bytes)
		close(r->fd);
	free(r->bytes);
	r->bytes = NULL;
	errno = saved;
}

/*
 * Inserts the pairs in batches. CORRUPT after the first batch with a key that occurred earlier, as
 * in a file with holes. CORRUPT at the end if the checksum of the pairs differs from the header's.
 */
static enum cua_status read_pairs(int fd, const struct header *h, struct cua_hashmap *map)
{
	struct cua__hashmap_reader r;
	enum cua_status status = begin_pairs(&r, fd, h);
	uint64_t size = 0;

	while (!status) {
		status = cua__hashmap_reader_next(&r);
		if (status || !r.n)
			break;
		status = cua__hashmap_insert_from_host(map, r.n, r.keys, r.values);
		if (!status)
			status = cua_hashmap_size(map, &size);
		/* with max_probes, the keys may not all find slots under another seed */
		if (!status && size != r.done)
			status =
				map->options.max_probes && cua_hashmap_status(map) == CUA_ERROR_FULL
					? CUA_ERROR_SIZE
					: CUA_ERROR_CORRUPT;
	}
	free(r.bytes);
	return status;
}

/*
 * Creates an empty map with the saved number of slots. A layout without reserved slots needs slots
 * for keys that had reserved slots.
 */
static enum cua_status create_for(struct cua_context *ctx,
				  const struct cua_hashmap_options *options, const struct header *h,
				  struct cua_hashmap **map)
{
	const enum cua_type key = cua__hashmap_type_of(h->key_size),
			    value = cua__hashmap_type_of(h->value_size);
	enum cua_status status = cua_hashmap_create(ctx, options, key, value, h->slots, map);

	if (status || h->count <= cua__hashmap_slots(&(*map)->view) ||
	    (*map)->view.layout == CUA_HASHMAP_WORDS)
		return status;
	cua_hashmap_destroy(*map);
	return cua_hashmap_create(ctx, options, key, value, h->count, map);
}

/*
 * A map with fewer pairs than slots / FEW is sparse: a header may claim many slots for few pairs.
 */
#define FEW 64

static void expect_pairs(struct cua_hashmap *map, uint64_t count)
{
	const struct cua__runtime *runtime = map->ctx->runtime;

	if (runtime->expect_few && count < cua__hashmap_slots(&map->view) / FEW)
		runtime->expect_few(map->ctx, map->base, map->bytes);
}

static enum cua_status load_from(struct cua_context *ctx, const struct cua_hashmap_options *options,
				 int fd, uint64_t bytes, struct cua_hashmap **result)
{
	struct cua_hashmap_options own = {.struct_size = sizeof(own)};
	struct cua_hashmap *map = NULL;
	struct header h;
	enum cua_status status;

	status = read_header(fd, bytes, &h);
	if (status)
		return status;
	own.seed = h.seed;
	own.rejects = h.rejects;
	own.grow_percent = h.grow_percent;
	own.portable = (h.flags & PORTABLE) != 0;
	own.no_erase = (h.flags & NO_ERASE) != 0;
	own.hash = h.hash;
	own.max_probes = h.max_probes;
	status = create_for(ctx, options ? options : &own, &h, &map);
	if (status)
		return status;
	expect_pairs(map, h.count);
	status = map->options.own_hash ? CUA_ERROR_UNSUPPORTED : read_pairs(fd, &h, map);
	if (status) {
		int saved = errno;

		cua_hashmap_destroy(map);
		errno = saved;
	} else {
		*result = map;
	}
	return status;
}

enum cua_status cua_hashmap_load(struct cua_context *ctx, const struct cua_hashmap_options *options,
				 const char *path, struct cua_hashmap **map)
{
	enum cua_status status;
	int fd, saved, cancel;
	uint64_t bytes;

	if (!ctx || !path || !map)
		return CUA_ERROR_NULL;
	cancel = cua__cancel_disable();
	status = cua__open_file(path, &fd, &bytes);
	if (!status) {
		status = load_from(ctx, options, fd, bytes, map);
		saved = errno;
		close(fd);
		errno = saved;
	}
	cua__cancel_restore(cancel);
	return status;
}
