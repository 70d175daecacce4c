package conformance

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
)

// publisher is a directory with the scripts of a release and a dist of its own. The function runs publish there.
func publisher(t *testing.T, env ...string) (dir string, publish func(args ...string) (string, error)) {
	t.Helper()
	dir = t.TempDir()
	expect.Must(t, os.MkdirAll(filepath.Join(dir, "scripts"), 0o755))
	expect.Must(t, os.MkdirAll(filepath.Join(dir, "dist/npm"), 0o755))
	expect.Must(t, os.Symlink(mustAbs(t, "../scripts/release"), filepath.Join(dir, "scripts/release")))
	return dir, func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "scripts/release/publish"), args...)
		cmd.Env = append(os.Environ(), append(env, "HOME="+dir, "GOFLAGS=-modcacherw",
			"GOMODCACHE="+goEnv(t, "GOMODCACHE"), "GOCACHE="+goEnv(t, "GOCACHE"))...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, stderr.String())
		}
		return string(out), err
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	return strings.TrimSpace(string(expect.Value(exec.Command("go", "env", name).Output())(t)))
}

// npmRegistry answers npm as a registry does that takes any token. It keeps packages in the order of their arrival.
type npmRegistry struct {
	mu       sync.Mutex
	names    []string
	packages map[string]map[string]any
}

func (r *npmRegistry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := strings.Trim(req.URL.Path, "/")
	if req.Method == http.MethodPut {
		var p map[string]any
		if err := json.NewDecoder(req.Body).Decode(&p); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.names = append(r.names, name)
		r.packages[name] = p
	}
	p, exists := r.packages[name]
	if !exists {
		w.WriteHeader(http.StatusNotFound)
		p = map[string]any{"error": "Not found"}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(p)
}

// TestPublishNPM publishes packages with npm itself to a registry on loopback: in order, again without effect, and not
// over others.
func TestPublishNPM(t *testing.T) {
	npm := peer.Find(t, "npm")
	r := &npmRegistry{packages: map[string]map[string]any{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	config := filepath.Join(t.TempDir(), "npmrc")
	write(t, config, strings.TrimPrefix(server.URL, "http:")+"/:_authToken=any\nfetch-retries=0\n")
	dir, publish := publisher(t, "npm_config_registry="+server.URL, "npm_config_userconfig="+config, "GITHUB_ACTIONS=")
	pack := func(name, about string) {
		t.Helper()
		source := t.TempDir()
		write(t, filepath.Join(source, "package.json"),
			`{"name": "`+name+`", "version": "1.2.3", "description": "`+about+`"}`)
		cmd := exec.Command(npm, "pack", "--pack-destination", filepath.Join(dir, "dist/npm"))
		cmd.Dir = source
		out, err := cmd.CombinedOutput()
		expect.Must(t, err, string(out))
	}
	_, err := publish("npm", "v1.2.3")
	expect.Fails(t, err, "there is no dist/npm/mcp-funnel-[a-z]*-1.2.3.tgz")
	want := []string{"mcp-funnel-darwin-x64", "mcp-funnel-linux-x64", "mcp-funnel"}
	for _, name := range want {
		pack(name, "first")
	}
	for range 2 {
		out, err := publish("npm", "v1.2.3")
		expect.Must(t, err)
		expect.Contains(t, out, "mcp-funnel-linux-x64@1.2.3 is there\n", "mcp-funnel@1.2.3 is there\n")
		expect.EqualList(t, r.names, want)
	}
	text := expect.Value(os.ReadFile(filepath.Join(dir, "dist/npm/mcp-funnel-1.2.3.tgz")))(t)
	sum := sha512.Sum512(text)
	versions := expect.Value(json.Marshal(r.packages["mcp-funnel"]["versions"]))(t)
	expect.Has(t, string(versions), base64.StdEncoding.EncodeToString(sum[:]))

	pack("mcp-funnel-linux-x64", "another")
	_, err = publish("npm", "v1.2.3")
	expect.Fails(t, err, "mcp-funnel-linux-x64@1.2.3 is there as sha512-")
	server.Close()
	expect.Must(t, os.RemoveAll(filepath.Join(dir, ".npm"))) // else npm answers from its cache
	_, err = publish("npm", "v1.2.3")
	expect.Fails(t, err, "ECONNREFUSED")
	expect.EqualList(t, r.names, want)
}

// TestPublishImage pushes an image to a registry on loopback: again without effect, and not over another one.
func TestPublishImage(t *testing.T) {
	path := expect.Value(exec.Command("go", "-C", "../scripts/release", "tool", "-n", "crane").Output())(t)
	crane := strings.TrimSpace(string(path))
	registry := exec.CommandContext(t.Context(), crane, "registry", "serve", "--address", "127.0.0.1:0")
	log := expect.Value(registry.StderrPipe())(t)
	expect.Must(t, registry.Start())
	t.Cleanup(func() { _ = registry.Process.Kill(); _ = registry.Wait() })
	line := expect.Value(bufio.NewReader(log).ReadString('\n'))(t)
	_, port, _ := strings.Cut(strings.TrimSpace(line), "serving on port ")
	image := "127.0.0.1:" + port + "/group/image"

	dir, publish := publisher(t)
	blobs := filepath.Join(dir, "dist/oci/blobs/sha256")
	expect.Must(t, os.MkdirAll(blobs, 0o755))
	write(t, filepath.Join(dir, "dist/oci/oci-layout"), `{"imageLayoutVersion": "1.0.0"}`)
	// blob writes one of a media type, and returns its descriptor.
	blob := func(media, text string) string {
		digest := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
		write(t, filepath.Join(blobs, digest), text)
		return fmt.Sprintf(`{"mediaType": "application/vnd.oci.image.%s", "size": %d, "digest": "sha256:%s"}`,
			media, len(text), digest)
	}
	index := func(systems ...string) string {
		var manifests []string
		for _, system := range systems {
			config := blob("config.v1+json",
				`{"architecture": "`+system+`", "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}}`)
			manifests = append(manifests, blob("manifest.v1+json", `{"schemaVersion": 2, "config": `+config+`, "layers": [],`+
				` "mediaType": "application/vnd.oci.image.manifest.v1+json"}`))
		}
		text := `{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [` +
			strings.Join(manifests, ", ") + `]}`
		write(t, filepath.Join(dir, "dist/oci/index.json"), text)
		return fmt.Sprintf("sha256:%x\n", sha256.Sum256([]byte(text)))
	}
	want := index("amd64", "arm64")
	for range 2 {
		expect.Equal(t, expect.Value(publish("image", "v1.2.3", image))(t), want)
	}
	index("amd64")
	_, err := publish("image", "v1.2.3", image)
	expect.Fails(t, err, image+":1.2.3 is there as "+strings.TrimSpace(want))
	expect.Equal(t, expect.Value(publish("image", "v1.2.4", image))(t), index("amd64"))
}

// TestPublishCheck builds the program of a tagged clone: only its own tag, on main and with notes, passes.
func TestPublishCheck(t *testing.T) {
	drivesOnly(t)
	dir := filepath.Join(t.TempDir(), "clone")
	run := func(name string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		if slices.Contains(args, "clone") {
			cmd.Dir = mustAbs(t, "..")
		} else {
			cmd.Dir = dir
		}
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return string(out), err
	}
	must := func(name string, args ...string) {
		t.Helper()
		expect.Must(t, expect.Err(run(name, args...)))
	}
	must("git", "clone", "-q", "--no-tags", ".", dir)
	script := string(expect.Value(os.ReadFile("../scripts/release/publish"))(t))
	write(t, filepath.Join(dir, "scripts/release/publish"), script)
	must("chmod", "755", "scripts/release/publish")
	changes, err := run("git", "status", "--porcelain")
	expect.Must(t, err)
	if changes != "" { // of a script that is not committed
		must("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-aqm", "t")
	}
	must("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "tag", "-a", "-m", "t", "v0.97.1")
	must("git", "update-ref", "refs/remotes/origin/main", "HEAD")
	must("go", "build", "-buildvcs=true", "-o", "bin/release/mcp-funnel", "./cmd/mcp-funnel")
	must("mkdir", "dist")
	check := func(tag string) error { return expect.Err(run("scripts/release/publish", "check", tag)) }

	for _, tag := range []string{"0.97.1", "v0.97", "v0.97.1-rc.1", "v0.97.1\nv1", "v0.97.1/../x"} {
		expect.Fails(t, check(tag), "does not have the form v1.2.3")
	}
	expect.Fails(t, check("v0.97.2"), "the program says v0.97.1, the tag is v0.97.2")
	expect.Fails(t, check("v0.97.1"), "CHANGELOG.md has no version 0.97.1")
	log := filepath.Join(dir, "CHANGELOG.md")
	old := string(expect.Value(os.ReadFile(log))(t))
	write(t, log, strings.Replace(old, "\n## ", "\n## 0.97.1 (2026-01-02)\n\nNew.\n\n## ", 1))
	expect.Must(t, check("v0.97.1"))
	expect.Equal(t, string(expect.Value(os.ReadFile(filepath.Join(dir, "dist/notes.md")))(t)), "New.\n\n")
	must("git", "update-ref", "refs/remotes/origin/main", "HEAD~1")
	expect.Fails(t, check("v0.97.1"), "v0.97.1 is not a commit of main")
}
