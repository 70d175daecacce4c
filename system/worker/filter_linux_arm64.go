package worker

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// deniedHere is empty: arm64 has none of the older forms.
var deniedHere []uintptr
