package channels

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha1" //nolint:gosec // the shasum of a packument
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// npmPrograms is the directory of programs of npm that package-lock.json pins, once scripts/test has installed them.
const npmPrograms = "../npm/node_modules"

// npmProgram returns the path of one, or skips the test; under CI it fails.
func npmProgram(t testing.TB, name string) string {
	t.Helper()
	file := expect.Value(filepath.Abs(filepath.Join(npmPrograms, name)))(t)
	if _, err := os.Stat(file); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is not installed: npm ci has not been run, or there is none for this system", name)
		}
		t.Skipf("%s is not installed: run scripts/test, which installs it", name)
	}
	return file
}

// tarball is a package of npm.
type tarball struct {
	file  string
	text  []byte
	about map[string]any         // its package.json
	modes map[string]fs.FileMode // of its files
}

var (
	readTarballs sync.Once
	allTarballs  map[string]tarball
)

// tarballs returns the packages of a release by name.
func tarballs(t testing.TB) map[string]tarball {
	t.Helper()
	readTarballs.Do(func() { allTarballs = findTarballs(t) })
	expect.MustEqual(t, len(allTarballs) > 0, true, "packages of npm in the release")
	return allTarballs
}

func findTarballs(t testing.TB) map[string]tarball {
	t.Helper()
	found := map[string]tarball{}
	for _, file := range expect.Value(filepath.Glob(filepath.Join(dist(t), "npm", "*.tgz")))(t) {
		p := tarball{file: file, text: expect.Value(os.ReadFile(file))(t), modes: map[string]fs.FileMode{}}
		archive := tar.NewReader(expect.Value(gzip.NewReader(bytes.NewReader(p.text)))(t))
		for h, err := archive.Next(); err != io.EOF; h, err = archive.Next() {
			expect.Must(t, err)
			p.modes[h.Name] = h.FileInfo().Mode()
			if h.Name == "package/package.json" {
				expect.Must(t, json.NewDecoder(archive).Decode(&p.about))
			}
		}
		found[p.about["name"].(string)] = p
	}
	return found
}

// registry serves packages as the registry of npm does, and notes what else is asked for.
type registry struct {
	*httptest.Server
	packages map[string]tarball
	mu       sync.Mutex
	refused  []string // requests
}

func newRegistry(t testing.TB) *registry {
	t.Helper()
	r := &registry{packages: tarballs(t)}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	name := strings.Split(request.URL.Path, "/")[1]
	p, ok := r.packages[name]
	switch {
	case !ok || request.Method != http.MethodGet:
		r.mu.Lock()
		r.refused = append(r.refused, request.Method+" "+request.URL.Path)
		r.mu.Unlock()
		http.NotFound(w, request)
	case path.Ext(request.URL.Path) == ".tgz":
		_, _ = w.Write(p.text)
	default:
		version, sum := p.about["version"].(string), sha512.Sum512(p.text)
		about := map[string]any{"dist": map[string]any{
			"tarball":   r.URL + "/" + name + "/-/" + filepath.Base(p.file),
			"shasum":    fmt.Sprintf("%x", sha1.Sum(p.text)), //nolint:gosec // see above
			"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
		}}
		for key, value := range p.about {
			about[key] = value
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"name": name, "dist-tags": map[string]any{"latest": version},
			"versions": map[string]any{version: about},
			// Old enough for managers that wait before they take what is new.
			"time": map[string]any{version: "2020-01-01T00:00:00.000Z", "modified": "2020-01-01T00:00:00.000Z"},
		})
	}
}

// nodeHome returns a function that makes commands for a user who has node and npm, and nothing else: HOME and the
// working directory are empty. Their names have blanks and letters beyond ASCII.
func nodeHome(t testing.TB, r *registry) (dir string, command func(words ...string) *exec.Cmd) {
	t.Helper()
	base := t.TempDir()
	dir, bin := filepath.Join(base, "a project, übung"), filepath.Join(base, "bin")
	home := filepath.Join(base, "hôme of 用户")
	for _, made := range []string{dir, home, bin} {
		expect.Must(t, os.Mkdir(made, 0o755))
	}
	// sh starts what npm installs; dirname, sed and uname are what pnpm's scripts call.
	for _, program := range []string{"node", "npm", "npx", "sh", "dirname", "sed", "uname"} {
		expect.Must(t, os.Symlink(peer.Find(t, program), filepath.Join(bin, program)))
	}
	for name, file := range map[string]string{
		"pnpm": "@pnpm/exe.linux-x64/pnpm", "bun": "@oven/bun-linux-x64/bin/bun", "yarn": "@yarnpkg/cli-dist/bin/yarn.js",
	} {
		if file, err := filepath.Abs(filepath.Join(npmPrograms, file)); err == nil {
			expect.Must(t, os.Symlink(file, filepath.Join(bin, name)))
		}
	}
	return dir, func(words ...string) *exec.Cmd {
		program := words[0]
		if !strings.Contains(program, "/") {
			program = filepath.Join(bin, program)
		}
		cmd := exec.Command(program, words[1:]...)
		cmd.Dir = dir
		cmd.Env = []string{
			"HOME=" + home, "PATH=" + bin,
			"npm_config_registry=" + r.URL, "npm_config_update_notifier=false", "pnpm_config_registry=" + r.URL,
			"YARN_NPM_REGISTRY_SERVER=" + r.URL, "YARN_UNSAFE_HTTP_WHITELIST=127.0.0.1", "YARN_ENABLE_TELEMETRY=0",
		}
		return cmd
	}
}

// TestNpmPackages looks at the packages without a manager: they run nothing when they are installed.
func TestNpmPackages(t *testing.T) {
	packages := tarballs(t)
	main := packages["mcp-funnel"]
	optional := main.about["optionalDependencies"].(map[string]any)
	expect.Equal(t, len(packages), 1+len(optional), "packages and those that the first one names")
	for name, p := range packages {
		modes := map[string]fs.FileMode{"package/package.json": 0o644, "package/LICENSE": 0o644}
		if name == "mcp-funnel" {
			modes["package/README.md"], modes["package/mcp-funnel.js"] = 0o644, 0o755
			expect.Equal(t, p.about["mcpName"].(string), serverName)
		} else {
			words := strings.Split(name, "-")
			system, cpu := words[2], words[3]
			expect.Same(t, p.about["os"], any([]any{system}), name)
			expect.Same(t, p.about["cpu"], any([]any{cpu}), name)
			expect.Equal(t, optional[name].(string), p.about["version"].(string), name)
			expect.Equal(t, p.about["preferUnplugged"] == true, true, "preferUnplugged of "+name)
			modes["package/NOTICES.md"], modes["package/mcp-funnel"] = 0o644, 0o755
			if system == "win32" {
				delete(modes, "package/mcp-funnel")
				modes["package/mcp-funnel.exe"] = 0o755
			}
		}
		expect.Same(t, p.modes, modes, name)
		expect.Equal(t, p.about["version"].(string), main.about["version"].(string), name)
		expect.Equal(t, p.about["repository"].(map[string]any)["url"].(string), "git+"+project+".git", name)
		for _, key := range []string{"scripts", "dependencies", "gypfile", "bundledDependencies"} {
			expect.Equal(t, p.about[key] == nil, true, "no "+key+" in "+name)
		}
	}
}

// channel is a way to install and start the package with a manager of node's packages.
type channel struct {
	name    string
	program string // of npmPrograms; empty if it comes with node
	full    bool   // only at full size
	install []string
	start   []string // without directories
}

func nodeChannels() []channel {
	const bun, pnpm, yarn = "@oven/bun-linux-x64", "@pnpm/exe.linux-x64", "@yarnpkg/cli-dist"
	return []channel{
		{"npx", "", false, nil, []string{"npx", "-y", "mcp-funnel"}},
		{"npm", "", true, []string{"npm", "install", "mcp-funnel"}, []string{"npx", "mcp-funnel"}},
		{"npm -g", "", false, []string{"npm", "install", "-g", "--prefix=g", "mcp-funnel"}, []string{"./g/bin/mcp-funnel"}},
		{"pnpm dlx", pnpm, false, nil, []string{"pnpm", "dlx", "mcp-funnel"}},
		{"pnpm", pnpm, true, []string{"pnpm", "add", "mcp-funnel"}, []string{"pnpm", "exec", "mcp-funnel"}},
		{"bunx", bun, false, nil, []string{"bun", "x", "mcp-funnel"}},
		{"bunx without node", bun, true, nil, []string{"bun", "x", "mcp-funnel"}},
		{"yarn dlx", yarn, true, nil, []string{"yarn", "dlx", "-q", "mcp-funnel"}},
		{"yarn Plug'n'Play", yarn, true, []string{"yarn", "add", "mcp-funnel"}, []string{"yarn", "mcp-funnel"}},
	}
}

// TestNodeChannels installs and starts the package as users do, from a registry that has only what a release makes.
func TestNodeChannels(t *testing.T) {
	for _, c := range nodeChannels() {
		t.Run(c.name, func(t *testing.T) {
			if c.full && !promise.Full() {
				t.Skip("only with SAFETY=full")
			}
			t.Parallel()
			if c.program != "" {
				npmProgram(t, c.program)
			}
			r := newRegistry(t)
			dir, command := nodeHome(t, r)
			root := filepath.Join(dir, "röot of mine")
			expect.Must(t, os.Mkdir(root, 0o755))
			writeLines(t, root)
			switch c.name {
			case "yarn Plug'n'Play": // which takes a directory without a lockfile for a part of a project above it
				expect.Must(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte("{}"), 0o600))
				expect.Must(t, os.WriteFile(filepath.Join(dir, "yarn.lock"), nil, 0o600))
			case "bunx without node":
				expect.Must(t, os.Remove(filepath.Join(dir, "../bin/node")))
			}
			if c.install != nil {
				out, err := command(c.install...).CombinedOutput()
				expect.Must(t, err, string(out))
			}
			firstReceipt(t, command(append(c.start, root)...), root)
			for _, request := range r.refused {
				// npm looks for known faults, and pnpm for its own next version.
				if request != "POST /-/npm/v1/security/advisories/bulk" && request != "GET /pnpm" {
					t.Error("asked the registry for more: ", request)
				}
			}
		})
	}
}

// nodeCPU is node's name of this processor.
func nodeCPU() string { return strings.Replace(runtime.GOARCH, "amd64", "x64", 1) }
