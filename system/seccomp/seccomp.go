//go:build linux && (amd64 || arm64)

// Package seccomp denies system calls to this process and its children, permanently.
//
// A filter is a list of rules; the first rule that matches decides, and a call that matches none is allowed. It is a
// deny list, because any version of a runtime or a shell may start to use another call. It is no boundary alone: a
// filter sees numbers, not the paths or addresses behind pointers.
package seccomp

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Errnos of a [Rule] that are no errors.
const (
	Allow = unix.Errno(0)       // the call is made
	Ask   = unix.Errno(1 << 15) // the call waits until the holder of the filter's listener answers it; see [Install]
)

// Rule decides about one system call.
type Rule struct {
	Call  uintptr
	If    []Test // all must hold; none: the rule always matches
	Errno unix.Errno
}

// Test compares the lower half of an argument, counted from 0: argument & Mask == Value.
type Test struct {
	Argument    int
	Mask, Value uint32
}

// Is returns a test for an argument that equals value.
func Is(argument int, value uint32) Test { return Test{argument, ^uint32(0), value} }

// Deny returns rules that fail these calls with EPERM.
func Deny(calls ...uintptr) []Rule {
	rules := make([]Rule, len(calls))
	for i, call := range calls {
		rules[i] = Rule{Call: call, Errno: unix.EPERM}
	}
	return rules
}

// Install installs the filter on all threads of this process. Without CAP_SYS_ADMIN, the process must have set
// PR_SET_NO_NEW_PRIVS before. With rules that Ask it returns the descriptor of the listener, which is closed on exec; it
// then needs Linux 5.9, and fails if another filter of this process has a listener.
func Install(rules []Rule) (listener int, err error) {
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_TSYNC)
	if slices.ContainsFunc(rules, func(r Rule) bool { return r.Errno == Ask }) {
		flags |= unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH | unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	}
	program := assemble(rules)
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, e := unix.Syscall(
		unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)),
	)
	if e != 0 {
		return 0, fmt.Errorf("seccomp: %w", e)
	}
	return int(fd), nil
}

// Offsets in the kernel's struct seccomp_data.
const (
	atNumber    = 0
	atArch      = 4
	atArguments = 16 // 8 bytes each; the lower half comes first on little-endian machines
)

// assemble returns the program that the kernel runs on each call. Each rule is a block that jumps to its own end if the
// rule does not match.
func assemble(rules []Rule) []unix.SockFilter {
	const (
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		mask  = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		least = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		end   = unix.BPF_RET | unix.BPF_K
		// Some kernels also accept calls of another ABI, whose numbers start here.
		foreign = 0x40000000
	)
	p := []unix.SockFilter{
		{Code: load, K: atArch},
		{Code: equal, K: auditArch, Jt: 1},
		{Code: end, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: load, K: atNumber},
		{Code: least, K: foreign, Jf: 1},
		{Code: end, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
	}
	for _, r := range rules {
		verdict := unix.SECCOMP_RET_ERRNO | uint32(r.Errno)
		switch r.Errno {
		case Allow:
			verdict = unix.SECCOMP_RET_ALLOW
		case Ask:
			verdict = unix.SECCOMP_RET_USER_NOTIF
		}
		// After the first test, the accumulator holds an argument, so the block reloads the number at its end.
		body := 3*len(r.If) + 1
		if len(r.If) > 0 {
			body++
		}
		p = append(p, unix.SockFilter{Code: equal, K: uint32(r.Call), Jf: uint8(body)})
		for i, t := range r.If {
			p = append(p,
				unix.SockFilter{Code: load, K: uint32(atArguments + 8*t.Argument)},
				unix.SockFilter{Code: mask, K: t.Mask},
				unix.SockFilter{Code: equal, K: t.Value, Jf: uint8(3*(len(r.If)-1-i) + 1)},
			)
		}
		p = append(p, unix.SockFilter{Code: end, K: verdict})
		if len(r.If) > 0 {
			p = append(p, unix.SockFilter{Code: load, K: atNumber})
		}
	}
	return append(p, unix.SockFilter{Code: end, K: unix.SECCOMP_RET_ALLOW})
}
