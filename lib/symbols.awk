# SPDX-License-Identifier: MIT
# Reads libcuatomic.symbols and prints the linker's version script: a node a release, each the successor of the node
# before it. Refuses a symbol without a node, a symbol in two nodes, a node that comes twice and an empty node.
#
# -v form=list   prints "symbol node" instead, a line a symbol
function bad(text) {
	printf "%s:%d: %s\n", FILENAME, FNR, text >"/dev/stderr"
	failed = 1
}
function close_node() {
	if (!node)
		return
	if (!count)
		bad("node " node " has no symbol")
	if (!last)
		body = body "local:\n*;\n"
	body = body "}" (last ? " " last : "") ";\n"
	last = node
}
/^#/ || /^$/ { next }
/^CUATOMIC_[0-9]+\.[0-9]+:$/ {
	close_node()
	node = substr($0, 1, length($0) - 1)
	if (node in nodes)
		bad("node " node " comes twice")
	nodes[node]
	count = 0
	body = body node " {\nglobal:\n"
	next
}
/^cua_[a-z0-9_]+$/ {
	if (!node)
		bad($0 " has no node")
	if ($0 in symbols)
		bad($0 " is in the nodes " symbols[$0] " and " node)
	symbols[$0] = node
	list = list $0 " " node "\n"
	body = body $0 ";\n"
	count++
	next
}
{ bad("neither a node nor a symbol: " $0) }
END {
	close_node()
	if (!last)
		bad("no node")
	if (failed)
		exit 1
	printf "%s", form == "list" ? list : body
}
