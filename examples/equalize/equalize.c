/* SPDX-License-Identifier: MIT */
/*
 * Equalizes the histogram of a PNG image: a value becomes the share of the pixels that have a lower
 * value. So the values are spread over the whole range, and contrasts become visible.
 *
 * cua_histogram_bytes counts the values on the GPU or the CPU. The host scans the 256 counts and
 * makes a table of new values.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuatomic.h>
#include <png.h>

#define VALUES CUA_HISTOGRAM_BYTE_BINS
#define PIXELS_MOST ((size_t)1 << 29)

static void die(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("equalize: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(code);
}

static void check(enum cua_status status, const char *what)
{
	if (status != CUA_OK)
		die(1, "%s: %s", what, cua_strerror(status));
}

static uint8_t *bytes_for(size_t n)
{
	uint8_t *p = (uint8_t *)malloc(n + 1);

	if (!p)
		die(1, "out of memory");
	return p;
}

/* ---- images ---- */

/* Rows of pixels without gaps. A pixel has 1 or 3 values for colours, and perhaps one for alpha. */
struct picture {
	uint8_t *value;
	uint32_t width, height;
	size_t pixels;
	unsigned channels, colours;
};

static void set_format(struct picture *p, uint32_t format)
{
	p->colours = format & PNG_FORMAT_FLAG_COLOR ? 3 : 1;
	p->channels = p->colours + (format & PNG_FORMAT_FLAG_ALPHA ? 1 : 0);
	p->pixels = (size_t)p->width * p->height;
}

/* Reads a file that begins as a PNG file does. libpng itself names no reason. */
static uint8_t *read_file(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	size_t room = 8, got;
	uint8_t *bytes = NULL;

	if (!f)
		die(1, "%s: %s", path, strerror(errno));
	*n = 0;
	do {
		bytes = (uint8_t *)realloc(bytes, room);
		if (!bytes)
			die(1, "out of memory");
		got = fread(bytes + *n, 1, room - *n, f);
		*n += got;
		if (ferror(f))
			die(1, "%s: %s", path, strerror(errno));
		if (*n < 8 || png_sig_cmp(bytes, 0, 8))
			die(1, "%s: not a PNG file", path);
		room = 2 * *n;
	} while (got);
	fclose(f);
	return bytes;
}

/* Reads a PNG file of any kind as 8-bit values. */
static struct picture read_picture(const char *path, int grey)
{
	size_t n;
	uint8_t *bytes = read_file(path, &n);
	struct picture p;
	png_image image;

	memset(&image, 0, sizeof(image));
	image.version = PNG_IMAGE_VERSION;
	if (!png_image_begin_read_from_memory(&image, bytes, n))
		die(1, "%s: %s", path, image.message);
	image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
	image.format &= PNG_FORMAT_FLAG_COLOR | PNG_FORMAT_FLAG_ALPHA;
	if (grey)
		image.format &= ~PNG_FORMAT_FLAG_COLOR;
	p.width = image.width;
	p.height = image.height;
	set_format(&p, image.format);
	if (p.pixels > PIXELS_MOST)
		die(1, "%s: more than %zu pixels", path, PIXELS_MOST);
	p.value = bytes_for(p.pixels * p.channels);
	if (!png_image_finish_read(&image, NULL, p.value, 0, NULL))
		die(1, "%s: %s", path, image.message);
	free(bytes);
	return p;
}

static void write_picture(const struct picture *p, const char *path)
{
	png_image image;
	FILE *f;

	memset(&image, 0, sizeof(image));
	image.version = PNG_IMAGE_VERSION;
	image.width = p->width;
	image.height = p->height;
	image.format = (p->colours == 3 ? PNG_FORMAT_FLAG_COLOR : 0) |
		       (p->channels > p->colours ? PNG_FORMAT_FLAG_ALPHA : 0);
	/* png_image_write_to_file would remove the file after an error, even a device */
	f = fopen(path, "wb");
	if (!f)
		die(1, "%s: %s", path, strerror(errno));
	if (!png_image_write_to_stdio(&image, f, 0, p->value, 0, NULL))
		die(1, "%s: %s", path, image.message);
	if (fclose(f))
		die(1, "%s: %s", path, strerror(errno));
}

/* A landscape in fog: all values are between 90 and 159. */
static struct picture sample(int grey)
{
	struct picture p = {NULL, 160, 120, 0, 0, 0};
	uint32_t random = 1;

	set_format(&p, grey ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB);
	p.value = bytes_for(p.pixels * p.channels);
	for (uint32_t y = 0; y < p.height; y++) {
		for (uint32_t x = 0; x < p.width; x++) {
			/* a hill in front of a sky that is brighter at the horizon */
			const uint32_t hill = 50 + (x - 90) * (x - 90) / 120;
			const uint32_t base = y < hill ? 110 + y / 3 : 90 + x / 8;

			for (unsigned c = 0; c < p.colours; c++) {
				random = random * 1664525u + 1013904223u;
				p.value[(y * p.width + x) * p.channels + c] =
					(uint8_t)(base + 4 * c * (y < hill) + (random >> 30));
			}
		}
	}
	return p;
}

/* ---- equalization ---- */

/* The brightness of each pixel of a picture with colours, by the weights of ITU-R BT.709. */
static uint8_t *brightness_of(const struct picture *p)
{
	uint8_t *brightness = bytes_for(p->pixels);

	for (size_t i = 0; i < p->pixels; i++) {
		const uint8_t *v = p->value + i * p->channels;

		brightness[i] = (uint8_t)((54u * v[0] + 183u * v[1] + 19u * v[2]) >> 8);
	}
	return brightness;
}

/* Counts the first `counted` of each pixel's channels. */
static void count(struct cua_context *ctx, const uint8_t *value, size_t pixels, unsigned channels,
		  unsigned counted, uint64_t *counts)
{
	struct cua_histogram_options options = CUA_HISTOGRAM_OPTIONS_INIT;
	void *copy;

	options.channels = channels;
	options.counted = counted;
	check(cua_alloc(ctx, pixels * channels, 1, &copy), "memory");
	check(cua_copy(ctx, copy, value, pixels * channels), "copying the picture");
	check(cua_histogram_bytes(ctx, &options, pixels, copy, counts), "histogram");
	check(cua_free(ctx, copy), "memory");
}

/* Stops the program if a serial loop counts otherwise. */
static void check_counts(const uint8_t *value, size_t pixels, unsigned channels, unsigned counted,
			 const uint64_t *counts)
{
	uint64_t serial[3 * VALUES] = {0};

	for (size_t i = 0; i < pixels; i++) {
		for (unsigned c = 0; c < counted; c++)
			serial[c * VALUES + value[i * channels + c]]++;
	}
	if (memcmp(counts, serial, (size_t)counted * VALUES * sizeof(*counts)) != 0)
		die(1, "WRONG: a serial loop counts otherwise");
	printf("the same counts as by a serial loop\n");
}

/* The lowest value becomes 0 and the highest 255. A picture with a single value is unchanged. */
static void make_table(const uint64_t *counts, uint8_t *table)
{
	uint64_t all = 0, below = 0, highest = 0, range;

	for (unsigned v = 0; v < VALUES; v++) {
		all += counts[v];
		highest = counts[v] ? counts[v] : highest;
	}
	range = all - highest;
	for (unsigned v = 0; v < VALUES; v++) {
		/* no pixel has a value above the highest */
		const uint64_t share = below < range ? below : range;

		table[v] = (uint8_t)(range ? (share * 255 + range / 2) / range : v);
		below += counts[v];
	}
}

static uint8_t limited(int v)
{
	return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* Each pixel becomes brighter or darker, by the same step in all colours. */
static void equalize_brightness(struct cua_context *ctx, struct picture *p, int checked)
{
	uint8_t *brightness = brightness_of(p), table[VALUES];
	uint64_t counts[VALUES];

	count(ctx, brightness, p->pixels, 1, 1, counts);
	if (checked)
		check_counts(brightness, p->pixels, 1, 1, counts);
	make_table(counts, table);
	for (size_t i = 0; i < p->pixels; i++) {
		const int step = table[brightness[i]] - brightness[i];
		uint8_t *v = p->value + i * p->channels;

		for (unsigned c = 0; c < p->colours; c++)
			v[c] = limited(v[c] + step);
	}
	free(brightness);
}

static void equalize_channels(struct cua_context *ctx, struct picture *p, int checked)
{
	uint64_t counts[3 * VALUES];
	uint8_t table[3][VALUES];

	count(ctx, p->value, p->pixels, p->channels, p->colours, counts);
	if (checked)
		check_counts(p->value, p->pixels, p->channels, p->colours, counts);
	for (unsigned c = 0; c < p->colours; c++)
		make_table(counts + (size_t)c * VALUES, table[c]);
	for (size_t i = 0; i < p->pixels; i++) {
		for (unsigned c = 0; c < p->colours; c++) {
			uint8_t *v = p->value + i * p->channels + c;

			*v = table[c][*v];
		}
	}
}

/* ---- the program ---- */

static void describe(const char *when, const struct picture *p)
{
	unsigned low = 255, high = 0, different = 0;
	int seen[VALUES] = {0};

	for (size_t i = 0; i < p->pixels; i++) {
		for (unsigned c = 0; c < p->colours; c++) {
			const unsigned v = p->value[i * p->channels + c];

			low = v < low ? v : low;
			high = v > high ? v : high;
			different += !seen[v]++;
		}
	}
	printf("%s: values from %u to %u, %u different\n", when, low, high, different);
}

static enum cua_backend backend_of(const char *name)
{
	if (!strcmp(name, "cpu"))
		return CUA_BACKEND_CPU;
	if (!strcmp(name, "cuda"))
		return CUA_BACKEND_CUDA;
	if (strcmp(name, "auto"))
		die(2, "-b %s: choose cpu, cuda or auto", name);
	return CUA_BACKEND_AUTO;
}

struct options {
	enum cua_backend backend;
	int checked, each, grey, sample;
};

static void equalize_file(const struct options *o, const char *from, const char *to)
{
	struct picture p = read_picture(from, o->grey);
	struct cua_context *ctx;

	check(cua_context_create(o->backend, 0, &ctx),
	      o->backend == CUA_BACKEND_CUDA ? "CUDA" : "starting");
	printf("%" PRIu32 " x %" PRIu32 " pixels, %s\n", p.width, p.height,
	       p.colours == 3 ? "RGB" : "grey");
	describe("before", &p);
	if (o->each || p.colours == 1)
		equalize_channels(ctx, &p, o->checked);
	else
		equalize_brightness(ctx, &p, o->checked);
	describe("after", &p);
	if (fflush(stdout) || ferror(stdout))
		die(1, "standard output: %s", strerror(errno));
	write_picture(&p, to);
	cua_context_destroy(ctx);
	free(p.value);
}

static void usage(void)
{
	die(2, "usage: equalize [-b cpu|cuda|auto] [-c] [-e] [-g] FROM.png TO.png | "
	       "equalize -s [-g] SAMPLE.png");
}

int main(int argc, char **argv)
{
	struct options o = {CUA_BACKEND_AUTO, 0, 0, 0, 0};
	int c;

	opterr = 0;
	while ((c = getopt(argc, argv, "b:cegs")) != -1) {
		switch (c) {
		case 'b': o.backend = backend_of(optarg); break;
		case 'c': o.checked = 1; break;
		case 'e': o.each = 1; break;
		case 'g': o.grey = 1; break;
		case 's': o.sample = 1; break;
		default: usage();
		}
	}
	if (optind + (o.sample ? 1 : 2) != argc)
		usage();
	if (o.sample) {
		struct picture p = sample(o.grey);

		write_picture(&p, argv[optind]);
		free(p.value);
	} else {
		equalize_file(&o, argv[optind], argv[optind + 1]);
	}
	return 0;
}
