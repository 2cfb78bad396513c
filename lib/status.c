/* SPDX-License-Identifier: MIT */
/* The names and texts of the statuses. */
#include <cuatomic/status.h>

const char *cua_strerror(enum cua_status status)
{
	switch ((int)status) {
#define CUA__TEXT(name, number, text)                                                              \
	case number: return text;
		CUA_STATUS_LIST(CUA__TEXT)
	}
	return "unknown status";
}

const char *cua_status_name(enum cua_status status)
{
	switch ((int)status) {
#define CUA__NAME(name, number, text)                                                              \
	case number: return #name;
		CUA_STATUS_LIST(CUA__NAME)
	}
	return "CUA_ERROR_UNKNOWN";
}
