#!/bin/sh
# Some clients unpack a bundle without the right to execute its files.
program=${0%/*}/mcp-funnel
[ -x "$program" ] || chmod 755 "$program" || exit 1
exec "$program" "$@"
