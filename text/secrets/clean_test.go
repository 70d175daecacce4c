package secrets

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// exceptions are the places in what is looked through that hold what does look like a secret, by the end of their path,
// with the reason. Tests of Go's own are full of keys and passwords made for them.
var exceptions = map[string]string{
	"_test.go":                     "tests make up passwords and keys",
	"crypto/tls/testdata":          "keys of Go's tests",
	"x509/platform_root_key.pem":   "a key of Go's tests",
	"crypto/hpke/testdata":         "shared secrets of test vectors",
	"cmd/go/testdata":              "passwords of Go's tests",
	"net/http/internal/testcert":   "a key of Go's tests",
	"net/http/request.go":          "RFC 7617's own example of Basic credentials",
	"net/url/url.go":               "a user's name with a password in a comment",
	"conformance/corpus/testdata":  "packed",
	"testdata/bad/requests.ndjson": "Basic credentials that a server has to refuse",
}

func excepted(path string) bool {
	for end := range exceptions {
		if strings.Contains(filepath.ToSlash(path), end) {
			return true
		}
	}
	return false
}

// TestNoFalseAlarm looks through this project and a part of Go's own sources, where nothing is to be masked.
func TestNoFalseAlarm(t *testing.T) {
	roots := []string{"../.."}
	if out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output(); err == nil {
		src := filepath.Join(strings.TrimSpace(string(out)), "src")
		roots = append(
			roots, filepath.Join(src, "net"), filepath.Join(src, "crypto"), filepath.Join(src, "encoding"),
			filepath.Join(src, "os"),
		)
		if !testing.Short() {
			roots = append(roots, filepath.Join(src, "cmd", "go"), filepath.Join(src, "runtime"))
		}
	}
	m := New()
	files, size := 0, 0
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && slices.Contains([]string{".git", "node_modules", "bin", "dist"}, d.Name()) {
				return fs.SkipDir
			}
			if d.IsDir() || !d.Type().IsRegular() || excepted(path) {
				return nil
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files, size = files+1, size+len(b)
			for _, f := range (&scan{b: b, final: true, f: m.f()}).findAll() {
				t.Errorf("%s: %s: %.60q", path, f.format.Name, b[max(0, f.from-20):f.to])
			}
			return nil
		})
		expect.Must(t, err)
	}
	if files < 200 {
		t.Errorf("only %d files were looked through", files)
	}
	t.Logf("%d files, %d bytes", files, size)
}
