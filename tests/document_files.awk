# SPDX-License-Identifier: MIT
# Writes each block of a Markdown document that names its file, "```c file=program.c", to that file in dir.
/^```[a-z0-9]+ file=/ {
	file = $2
	sub(/^file=/, "", file)
	folder = file
	if (sub(/\/[^\/]*$/, "", folder))
		system("mkdir -p '" dir "/" folder "'")
	file = dir "/" file
	printf "" >file
	next
}
/^```/ && file { close(file); file = "" }
file { print >file }
