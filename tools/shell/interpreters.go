package shell

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
)

// interpreterNames are the programs that the description of run names where commands have them, the most telling first.
var interpreterNames = []string{
	"python3", "node", "jq", "go", "git", "rg", "perl", "awk", "sqlite3", "ruby",
}

// maxInterpreters is the length of their list, in bytes: the description of run has no room for more.
const maxInterpreters = 40

// interpreters lists programs that commands find, with the versions that their paths tell: none is started, so that this
// takes no time.
func (o Options) interpreters() string {
	dirs := slices.DeleteFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool {
		visible := func(above string) bool { return within(above, dir) }
		return !filepath.IsAbs(dir) || o.Mode != sandbox.Off &&
			!slices.ContainsFunc(slices.Concat(sandbox.SystemDirs, o.AllowRead), visible)
	})
	list := ""
	for _, name := range interpreterNames {
		for _, dir := range dirs {
			path := filepath.Join(dir, name)
			if fi, err := os.Stat(path); err != nil || fi.IsDir() || fi.Mode()&0o111 == 0 {
				continue
			}
			if more := list + ", " + strings.TrimSpace(name+" "+version(path, name)); len(more)-2 <= maxInterpreters {
				list = more
			}
			break
		}
	}
	return strings.TrimPrefix(list, ", ")
}

// version returns the version of Python or Go, "" if its path does not tell it.
func version(path, name string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	switch name {
	case "python3":
		_, v, _ := strings.Cut(filepath.Base(real), "python")
		return onlyVersion(v)
	case "go":
		f, err := os.Open(filepath.Join(filepath.Dir(real), "..", "VERSION"))
		if err != nil {
			return ""
		}
		defer f.Close() //nolint:errcheck // it was only read
		line, _ := bufio.NewReaderSize(f, 64).ReadSlice('\n')
		return onlyVersion(strings.TrimPrefix(strings.TrimSpace(string(line)), "go"))
	}
	return ""
}

// onlyVersion returns the first two numbers of a version, "" if there are no two.
func onlyVersion(v string) string {
	parts := strings.SplitN(v, ".", 3)
	if len(parts) < 2 || strings.Trim(parts[0]+parts[1], "0123456789") != "" {
		return ""
	}
	return parts[0] + "." + parts[1]
}
