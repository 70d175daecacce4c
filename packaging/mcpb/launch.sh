#!/bin/sh
# Some clients unpack a bundle without the right to execute its files, or only for their own user, while commands of the
# tool run may have another one. PATH may have no chmod.
fail() {
	echo "mcp-funnel: $program $1" >&2
	exit 126
}
program=${0%/*}/mcp-funnel
[ -f "$program" ] && [ -s "$program" ] || fail "is missing, empty or not a file: install the bundle again"
(PATH=/bin:/usr/bin${PATH:+:$PATH} && chmod 755 "$program") >/dev/null 2>&1
[ -x "$program" ] || fail "cannot be made executable: run chmod 755 on it, or mount its file system without noexec"
exec "$program" "$@"
