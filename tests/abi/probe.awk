# SPDX-License-Identifier: MIT
# Reads public headers and writes a C file with a variable for each named type that a program compiles in: the locks,
# cursors, entries and results of inline functions, which no function of the library takes.
# -v form=suppress writes a suppression for abidiff instead: a struct with struct_size may grow at its end.
FNR == 1 && form != "suppress" && FILENAME !~ "/(detail|port)/[^/]*$" {
	name = FILENAME
	sub(/.*\//, "", name)
	print "#include <cuatomic/" name ">"
}
/^(struct|enum|union) cua_[a-z0-9][a-z0-9_]* \{$/ {
	type = $1 " " $2
	tag = $2
	if (!(tag in seen))
		variables[++n] = type " *cuatomic_abi_" tag ";"
	seen[tag] = 1
}
tag && /^\tsize_t struct_size;/ { sized = sized (sized ? "|" : "") tag }
/^}/ { tag = "" }
END {
	if (form == "suppress") {
		print "[suppress_type]"
		print "  type_kind = struct"
		print "  name_regexp = ^(" sized ")$"
		print "  has_data_member_inserted_at = end"
		print "  has_size_change = yes"
		exit
	}
	for (i = 1; i <= n; i++)
		print variables[i]
}
