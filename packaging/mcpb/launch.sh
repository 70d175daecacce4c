#!/bin/sh
# Some clients unpack a bundle without the right to execute its files, or only for their own user, while commands of the
# tool run may have another one.
program=${0%/*}/mcp-funnel
chmod 755 "$program" 2>/dev/null || [ -x "$program" ] || {
	echo "mcp-funnel: $program cannot be made executable: unpack the bundle where its files can be changed" >&2
	exit 126
}
exec "$program" "$@"
