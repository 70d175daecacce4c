package shell

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// maxInterpreters is the length of the list of interpreters in bytes: the description of run has no room for more.
const maxInterpreters = 40

// interpreters lists programs that commands find, with the versions that their paths tell: none is started, so that this
// takes no time. The most telling come first.
func (o Options) interpreters() (list string) {
	dirs := slices.DeleteFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool {
		seen := append(o.AllowRead[:len(o.AllowRead):len(o.AllowRead)], sandbox.SystemDirs...)
		visible := o.Mode == sandbox.Off || slices.ContainsFunc(seen, func(above string) bool { return within(above, dir) })
		return !visible || !filepath.IsAbs(dir)
	})
	for _, name := range []string{"python3", "node", "jq", "go", "git", "rg", "perl", "awk", "sqlite3", "ruby"} {
		for _, dir := range dirs {
			path, err := exec.LookPath(filepath.Join(dir, name))
			if err != nil {
				continue
			}
			if more := strings.TrimPrefix(list+", "+name+version(path), ", "); len(more) <= maxInterpreters {
				list = more
			}
			break
		}
	}
	return list
}

// versioned matches the name of Python's program, and the file with Go's version.
var versioned = content.Pattern(`^(?:python|go)(\d+\.\d+)`)

// version returns " 3.11" of Python or Go, "" if the path does not tell it.
func version(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	said := filepath.Base(real)
	if said == "go" {
		if f, err := os.Open(filepath.Join(filepath.Dir(real), "..", "VERSION")); err == nil {
			defer f.Close() //nolint:errcheck // it was only read
			text, _ := io.ReadAll(io.LimitReader(f, 64))
			said = string(text)
		}
	}
	if m := versioned().FindStringSubmatch(said); m != nil {
		return " " + m[1]
	}
	return ""
}
