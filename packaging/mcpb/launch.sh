#!/bin/sh
# Some clients unpack a bundle without the right to execute its files, or only for their own user, while commands of the
# tool run may have another one.
program=${0%/*}/mcp-funnel
chmod 755 "$program" >/dev/null 2>&1 || [ -x "$program" ] || {
	echo "mcp-funnel: $program is missing or cannot be made executable: install the bundle again" >&2
	exit 126
}
exec "$program" "$@"
