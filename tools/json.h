/* SPDX-License-Identifier: MIT */
/* Members of JSON objects. Text that is not UTF-8 is replaced. */
#ifndef CUATOMIC_TOOLS_JSON_H
#define CUATOMIC_TOOLS_JSON_H

#include <math.h>
#include <stdio.h>

/* Returns the length of the UTF-8 character at text, or 0 if it is malformed. */
static inline int utf8_length(const unsigned char *text)
{
	static const struct {
		unsigned char low, high, next_low, next_high;
		int length;
	} ranges[] = {
		{0x00, 0x7f, 0x00, 0xff, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2},
		{0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
		{0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
		{0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4},
		{0xf4, 0xf4, 0x80, 0x8f, 4},
	};

	for (size_t k = 0; k < sizeof(ranges) / sizeof(ranges[0]); k++) {
		if (*text < ranges[k].low || *text > ranges[k].high)
			continue;
		for (int i = 1; i < ranges[k].length; i++) {
			const int first = i == 1;

			if (text[i] < (first ? ranges[k].next_low : 0x80) ||
			    text[i] > (first ? ranges[k].next_high : 0xbf))
				return 0;
		}
		return ranges[k].length;
	}
	return 0;
}

static inline void json_text(FILE *f, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	putc('"', f);
	while (*p) {
		const int length = utf8_length(p);

		if (!length) {
			fputs("\\ufffd", f);
			p++;
			continue;
		}
		if (*p == '"' || *p == '\\')
			fprintf(f, "\\%c", *p);
		else if (*p < ' ' || *p == 0x7f)
			fprintf(f, "\\u%04x", *p);
		else
			fwrite(p, 1, (size_t)length, f);
		p += length;
	}
	putc('"', f);
}

/* Writes `"name": "text"`, or null if text is NULL. */
static inline void json_member(FILE *f, const char *name, const char *text)
{
	json_text(f, name);
	fputs(": ", f);
	if (text)
		json_text(f, text);
	else
		fputs("null", f);
}

/* Writes `"name": v`, or null if v is negative. */
static inline void json_number(FILE *f, const char *name, double v)
{
	json_text(f, name);
	/* 17 digits keep all bits; the command never calls setlocale, so the separator is a point */
	if (v >= 0 && isfinite(v))
		fprintf(f, ": %.17g", v);
	else
		fputs(": null", f);
}

#endif /* CUATOMIC_TOOLS_JSON_H */
