# SPDX-License-Identifier: MIT
# Writes each block of C in README.md to a file, dir/N.c or, where it has a kernel, dir/N.cu, and the first command
# after the block that compiles file.c or file.cu to dir/N.command.
/^```c$/ { text = ""; inside = 1; n++; next }
/^```$/ && inside {
	inside = 0
	file = dir "/" n (text ~ /__global__/ ? ".cu" : ".c")
	printf "%s", text >file
	close(file)
	waiting = 1
	next
}
inside { text = text $0 "\n"; next }
waiting {
	all = all $0 " "
	if (match(all, /`(cc|nvcc) [^`]*`/)) {
		print substr(all, RSTART + 1, RLENGTH - 2) >(dir "/" n ".command")
		waiting = 0
		all = ""
	}
}
