package shell

import (
	"fmt"
	"path/filepath"

	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/sandbox"
)

// Words by which programs report what a sandbox refuses.
var (
	refusedWrite = content.Pattern(`(?i)read-only file system|EROFS`)
	refusedPath  = content.Pattern(
		`(?i)permission denied|operation not permitted|no such file or directory|EACCES|ENOENT|not found`,
	)
	refusedNet = content.Pattern(
		`(?i)could not resolve|couldn't resolve|network is unreachable|name resolution|no such host|` +
			`ENOTFOUND|EAI_AGAIN|ENETUNREACH|getaddrinfo|temporary failure|dial tcp|failed to connect`,
	)
	absolutePath = content.Pattern(`(?:^|[\s'"(=:])(/[\w.@+~/-]{2,200})`)
)

// grantHint returns which grant would allow what a failed command seems to have been refused; "" if nothing points to
// one.
func (s *Shell) grantHint(j *job) string {
	o := &s.options
	tail := j.seen.tail
	switch {
	case o.Mode == sandbox.Off:
		return ""
	case !o.AllowWrite && refusedWrite().Match(tail):
		return "commands may not write below the roots: the operator can allow it with --allow-write; /tmp and $HOME can be written"
	case !o.AllowNet && refusedNet().Match(tail):
		return "commands have no network but their own loopback: the operator can allow it with --allow-net"
	}
	if !refusedPath().Match(tail) {
		return ""
	}
	for _, m := range absolutePath().FindAllSubmatch(tail, -1) {
		path := filepath.Clean(string(m[1]))
		if s.hiddenFrom(path) {
			return fmt.Sprintf(
				"%s is outside what commands may see: the operator can allow its directory with --allow-read",
				path,
			)
		}
	}
	return ""
}

func sizeText(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

// hiddenFrom reports whether a path exists on this machine, but not for commands.
func (s *Shell) hiddenFrom(path string) bool {
	for _, dir := range append([]string{"/proc", "/dev", homeDir, obsDir}, systemDirs...) {
		if within(dir, path) {
			return false
		}
	}
	for _, dir := range s.options.AllowRead {
		if within(dir, path) {
			return false
		}
	}
	return exists(path)
}
