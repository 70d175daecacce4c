package worker

import "golang.org/x/sys/unix"

// deniedHere lists older forms of the calls in denied.
var deniedHere = []uintptr{
	unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_UNLINK, unix.SYS_RMDIR, unix.SYS_RENAME, unix.SYS_RENAMEAT,
	unix.SYS_LINK, unix.SYS_SYMLINK, unix.SYS_MKDIR, unix.SYS_MKNOD, unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_INOTIFY_INIT, unix.SYS_IOPL, unix.SYS_IOPERM,
}
