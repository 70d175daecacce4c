package shell

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Messages by which programs report what a sandbox refuses.
var (
	refusedWrite = content.Pattern(`(?i)read-only file system|\bEROFS\b`)
	refusedPath  = content.Pattern(
		`(?i)permission denied|operation not permitted|no such file or directory|\bEACCES\b|\bENOENT\b|not found`,
	)
	refusedNet = content.Pattern(
		`(?i)could not resolve|couldn't resolve|unable to resolve|network is unreachable|network unreachable|` +
			`name resolution|name or service not known|no such host|lookup \S+ on \S+:53: |` +
			`\bENOTFOUND\b|\bEAI_AGAIN\b|\bENETUNREACH\b|getaddrinfo`,
	)
	noProcess   = content.Pattern(`(?i)cannot fork|fork: (?:retry: )?resource temporarily|can't start new thread`)
	outOfMemory = content.Pattern(
		`\bMemoryError\b|(?i)memory exhausted|out of memory|cannot allocate memory|heap limit|bad_alloc|\bENOMEM\b`,
	)
	absolutePath = content.Pattern(`(?:^|[\s'"(=:])(/[\w.@+~/-]{2,200})`)
)

// grantHint names the grant that a failed command seems to lack; "" if it lacks none. A line of its output must report
// the refusal; for the network, the kernel's counters must confirm it.
func (s *Shell) grantHint(j *job, status sandbox.Status) string {
	o := &s.options
	if o.Mode == sandbox.Off {
		return ""
	}
	refused := status.Unrouted == nil || *status.Unrouted > 0
	for line := range bytes.Lines(j.seen.tail) {
		if refusedWrite().Match(line) {
			if hint := s.cacheHint(line); hint != "" {
				return hint
			}
		}
		switch {
		case refusedWrite().Match(line) && s.belowRoot(j, line):
			return s.writable() + "; /tmp and $HOME can be written"
		case !o.AllowNet && refused && refusedNet().Match(line):
			return "commands have no network but their own loopback: the operator can allow it with --allow-net"
		case refusedPath().Match(line):
			for _, m := range absolutePath().FindAllSubmatch(line, -1) {
				if path := filepath.Clean(string(m[1])); s.hiddenFrom(j, path) {
					return path + " is outside what commands may see: the operator can allow its directory with --allow-read"
				}
			}
		}
	}
	if noProcess().Match(j.seen.tail) {
		return fmt.Sprintf("a command gets %d processes and threads (--run-processes)", o.Processes)
	}
	if status.Limit == "" && outOfMemory().Match(j.seen.tail) {
		return fmt.Sprintf("a process of a command gets %s of memory (--run-memory)", sizeText(o.Memory))
	}
	return ""
}

// writable says where commands may write below the roots.
func (s *Shell) writable() string {
	if len(s.options.AllowWrite) == 0 {
		return "commands may not write below the roots: the operator can allow it with --allow-write"
	}
	return "commands may write below " + content.ClipBytes(strings.Join(s.options.AllowWrite, ", "), 200) +
		" alone (--allow-write), but not to what git, clients and editors run there"
}

// belowRoot reports whether a line names a path below a root, or none that exists elsewhere: a relative path is most
// often below a root. The path of the shell, with which its own messages begin, does not count.
func (s *Shell) belowRoot(j *job, line []byte) bool {
	line = bytes.TrimPrefix(line, []byte(s.options.Shell+": "))
	for _, m := range absolutePath().FindAllSubmatch(line, -1) {
		path := filepath.Clean(string(m[1]))
		if slices.ContainsFunc(j.view.roots, func(r rootDir) bool { return within(r.dir, path) }) {
			return true
		}
		if _, err := os.Lstat(path); err == nil ||
			slices.ContainsFunc(sandbox.SystemDirs, func(d string) bool { return within(d, path) }) {
			return false
		}
	}
	return true
}

func sizeText(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

// hiddenFrom reports whether a path exists on this machine, but not for commands.
func (s *Shell) hiddenFrom(j *job, path string) bool {
	granted := slices.Concat(s.options.AllowRead, s.options.AllowCache, directories(j.view.roots))
	seen := slices.Concat([]string{"/proc", "/dev", homeDir, obsDir}, sandbox.SystemDirs, granted)
	return !slices.ContainsFunc(seen, func(dir string) bool { return within(dir, path) }) && exists(path)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
