# SPDX-License-Identifier: MIT
# Writes the examples of manual pages to files in the folder "dir", named PAGE.N with one of these endings:
#
#   .c .cu     a complete program: it has a main
#   .kernel    code for nvcc; a host function that launches a kernel follows the kernel in the same file
#   .part      other functions, in C
#   .output    the output that the page states for the program before it, after a sentence that ends in "prints:"
#   .says      that sentence
function finish(name)
{
	if (said ~ /prints:$/) {
		printf "%s", text >(name = stem ".output")
		close(name)
		print said >(name = stem ".says")
	} else {
		kernel = text ~ /__global__|__device__|<<</
		joins = kernel && text !~ /__global__|__device__/
		if (text ~ /[^a-z_]main\(/)
			end = kernel ? ".cu" : ".c"
		else
			end = kernel ? ".kernel" : ".part"
		if (!joins)
			stem = dir "/" page "." ++n
		printf "#line %d \"%s\"\n%s", first, FILENAME, text >>(name = stem end)
	}
	close(name)
}
FNR == 1 {
	page = FILENAME
	sub(/.*\//, "", page)
	n = in_section = 0
}
/^\.SH / { in_section = /^\.SH EXAMPLES?$/ }
/^\.EE/ { if (in_section) finish(); reading = 0 }
reading {
	gsub(/\\-/, "-")
	gsub(/\\\(aq/, "'")
	gsub(/\\\(ha/, "^")
	gsub(/\\\(ti/, "~")
	gsub(/\\&/, "")
	gsub(/\\e/, "\\")
	text = text $0 "\n"
	next
}
/^\.EX/ { reading = 1; text = ""; first = FNR + 1; next }
!/^\./ { said = $0 }
