package conformance

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
)

// publisher is a checkout with the tag v1.2.3, the scripts of a release and a dist of its own. The function runs
// publish there.
func publisher(t *testing.T, env ...string) (dir string, publish func(args ...string) (string, error)) {
	t.Helper()
	dir = t.TempDir()
	expect.Must(t, os.MkdirAll(filepath.Join(dir, "scripts"), 0o755))
	expect.Must(t, os.MkdirAll(filepath.Join(dir, "dist/npm"), 0o755))
	expect.Must(t, os.Symlink(mustAbs(t, "../scripts/release"), filepath.Join(dir, "scripts/release")))
	git(t, dir, "init", "-q")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "t")
	for _, tag := range []string{"v1.2.3", "v2.0.0-rc.1", "very-old"} { // only the first is one that is published
		git(t, dir, "tag", tag)
	}
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

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	args = append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)
	out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput()
	expect.Must(t, err, string(out))
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

// TestPublishNPM publishes packages with npm itself to a registry on loopback: in order, again without effect, not over
// others, and under the tag latest only where no higher version has a tag.
func TestPublishNPM(t *testing.T) {
	npm, _ := peer.Find(t, "npm"), peer.Find(t, "jq")
	r := &npmRegistry{packages: map[string]map[string]any{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	config := filepath.Join(t.TempDir(), "npmrc")
	write(t, config, strings.TrimPrefix(server.URL, "http:")+"/:_authToken=any\nfetch-retries=0\n")
	dir, publish := publisher(t, "npm_config_registry="+server.URL, "npm_config_userconfig="+config, "GITHUB_ACTIONS=")
	version := "1.2.3"
	pack := func(name, about string) {
		t.Helper()
		source := t.TempDir()
		parts := ""
		if name == "mcp-funnel" {
			parts = fmt.Sprintf(`"mcp-funnel-darwin-x64": %q, "mcp-funnel-linux-x64": %[1]q`, version)
		}
		write(t, filepath.Join(source, "package.json"), `{"name": "`+name+`", "version": "`+version+
			`", "description": "`+about+`", "optionalDependencies": {`+parts+`}}`)
		cmd := exec.Command(npm, "pack", "--pack-destination", filepath.Join(dir, "dist/npm"))
		cmd.Dir = source
		out, err := cmd.CombinedOutput()
		expect.Must(t, err, string(out))
	}
	_, err := publish("npm", "v1.2.3")
	expect.Fails(t, err, "there is no dist/npm/mcp-funnel-1.2.3.tgz")
	want := []string{"mcp-funnel", "mcp-funnel-darwin-x64", "mcp-funnel-linux-x64"}
	for _, name := range want {
		_, err = publish("npm", "v1.2.3")
		expect.Fails(t, err, "dist/npm")
		pack(name, "first")
	}
	expect.Equal(t, len(r.names), 0, "all or none")
	want = append(want[1:], want[0])
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

	git(t, dir, "tag", "v1.10.0")
	version = "1.2.4"
	expect.Must(t, os.RemoveAll(filepath.Join(dir, "dist/npm")))
	expect.Must(t, os.Mkdir(filepath.Join(dir, "dist/npm"), 0o755))
	for _, name := range want {
		expect.Same(t, r.packages[name]["dist-tags"], map[string]any{"latest": "1.2.3"}, name)
		pack(name, "a patch")
		delete(r.packages, name) // it has one version at a time
	}
	expect.Must(t, expect.Err(publish("npm", "v1.2.4")))
	for _, name := range want {
		expect.Same(t, r.packages[name]["dist-tags"], map[string]any{"line-1.2": "1.2.4"}, name)
	}
	want = append(want, want...)

	server.Close()
	expect.Must(t, os.RemoveAll(filepath.Join(dir, ".npm"))) // else npm answers from its cache
	_, err = publish("npm", "v1.2.4")
	expect.Fails(t, err, "ECONNREFUSED")
	expect.EqualList(t, r.names, want)
}

// imageIn writes an image of some processors into dist/oci, and returns its digest.
func imageIn(t *testing.T, dist, version string, processors ...string) string {
	t.Helper()
	blobs := filepath.Join(dist, "oci/blobs/sha256")
	expect.Must(t, os.MkdirAll(blobs, 0o755))
	write(t, filepath.Join(dist, "oci/oci-layout"), `{"imageLayoutVersion": "1.0.0"}`)
	// blob writes one of a media type, and returns its descriptor.
	blob := func(media, text string) string {
		digest := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
		write(t, filepath.Join(blobs, digest), text)
		return fmt.Sprintf(`{"mediaType": "application/vnd.oci.image.%s", "size": %d, "digest": "sha256:%s"}`,
			media, len(text), digest)
	}
	var manifests []string
	for _, processor := range processors {
		config := blob("config.v1+json", `{"architecture": "`+processor+`", "os": "linux", "config": {"Labels": {`+
			`"org.opencontainers.image.version": "`+version+`"}}, "rootfs": {"type": "layers", "diff_ids": []}}`)
		manifests = append(manifests, blob("manifest.v1+json", `{"schemaVersion": 2, "config": `+config+`, "layers": [],`+
			` "mediaType": "application/vnd.oci.image.manifest.v1+json"}`))
	}
	text := `{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [` +
		strings.Join(manifests, ", ") + `]}`
	write(t, filepath.Join(dist, "oci/index.json"), text)
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text)))
}

// TestPublishImage pushes an image to a registry on loopback: again without effect, not over another one, also if the
// registry does not say what it has. The tag latest never goes back.
func TestPublishImage(t *testing.T) {
	path := expect.Value(exec.Command("go", "-C", "../scripts/release", "tool", "-n", "crane").Output())(t)
	crane := strings.TrimSpace(string(path))
	registry := exec.CommandContext(t.Context(), crane, "registry", "serve", "--address", "127.0.0.1:0")
	log := expect.Value(registry.StderrPipe())(t)
	expect.Must(t, registry.Start())
	t.Cleanup(func() { _ = registry.Process.Kill(); _ = registry.Wait() })
	line := expect.Value(bufio.NewReader(log).ReadString('\n'))(t)
	_, port, _ := strings.Cut(strings.TrimSpace(line), "serving on port ")
	behind := expect.Value(url.Parse("http://127.0.0.1:" + port))(t)
	proxy := httputil.NewSingleHostReverseProxy(behind)
	var busy atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if busy.Load() && req.Method != http.MethodPut && strings.HasSuffix(req.URL.Path, "/manifests/1.2.3") {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"errors": [{"code": "TOOMANYREQUESTS", "message": "later"}]}`)
			return
		}
		proxy.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	image := strings.TrimPrefix(server.URL, "http://") + "/group/image"
	is := func(tag, want string) {
		t.Helper()
		out := expect.Value(exec.CommandContext(t.Context(), crane, "digest", image+":"+tag).Output())(t)
		expect.Equal(t, strings.TrimSpace(string(out)), want, tag)
	}

	dir, publish := publisher(t)
	dist := filepath.Join(dir, "dist")
	first := imageIn(t, dist, "1.2.3", "amd64", "arm64")
	for range 2 {
		expect.Equal(t, expect.Value(publish("image", "v1.2.3", image))(t), first+"\n")
	}
	second := imageIn(t, dist, "1.2.4", "amd64")
	_, err := publish("image", "v1.2.3", image)
	expect.Fails(t, err, image+":1.2.3 is there as "+first)
	busy.Store(true)
	_, err = publish("image", "v1.2.3", image)
	expect.Fails(t, err, "TOOMANYREQUESTS")
	busy.Store(false)
	is("1.2.3", first)
	expect.Equal(t, expect.Value(publish("image", "v1.2.4", image))(t), second+"\n")

	for _, step := range []struct{ tag, digest, want string }{
		{"v1.2.3", first, first}, {"v1.10.0", second, second}, {"v1.2.3", first, second},
	} {
		git(t, dir, "tag", "-f", step.tag)
		expect.Must(t, expect.Err(publish("latest", step.tag, image+"@"+step.digest)), step)
		is("latest", step.want)
	}
	head := expect.Value(exec.CommandContext(t.Context(), "git", "-C", dir, "rev-parse", "HEAD").Output())(t)
	write(t, filepath.Join(dir, ".git/shallow"), string(head))
	_, err = publish("latest", "v1.2.3", image+"@"+first)
	expect.Fails(t, err, "the checkout must have all tags")
}

// distOf is what distIn writes: packages of npm, and what else differs in tests.
type distOf struct{ version, names, image, server, packages, dependencies string }

var wholeDist = distOf{
	"0.97.1",
	"mcp-funnel_0.97.1_linux_amd64.tar.gz mcp-funnel_0.97.1_linux_amd64.deb",
	"0.97.1", "0.97.1", "mcp-funnel-linux-x64 mcp-funnel-win32-x64", "mcp-funnel-linux-x64 mcp-funnel-win32-x64",
}

// distIn makes a dist, with checksums.txt of all files.
func distIn(t *testing.T, dist string, of distOf) {
	t.Helper()
	expect.Must(t, os.RemoveAll(dist))
	imageIn(t, dist, of.version, "amd64")
	imageIn(t, dist, of.image, "amd64", "arm64")
	sums := ""
	file := func(name, text string) {
		write(t, filepath.Join(dist, name), text)
		sums += fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(text)), filepath.Base(name))
	}
	for name := range strings.FieldsSeq(of.names) {
		file(name, name)
	}
	for name := range strings.FieldsSeq(of.packages) {
		file("npm/"+name+"-"+of.version+".tgz", name)
	}
	dependencies := map[string]string{}
	for name := range strings.FieldsSeq(of.dependencies) {
		dependencies[name] = of.version
	}
	about := expect.Value(json.Marshal(map[string]any{"optionalDependencies": dependencies}))(t)
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	archive := tar.NewWriter(zip)
	expect.Must(t, archive.WriteHeader(&tar.Header{Name: "package/package.json", Size: int64(len(about)), Mode: 0o644}))
	expect.Must(t, expect.Err(archive.Write(about)))
	expect.Must(t, archive.Close())
	expect.Must(t, zip.Close())
	file("npm/mcp-funnel-"+of.version+".tgz", b.String())
	file("server.json", `{"version": "`+of.server+`"}`)
	write(t, filepath.Join(dist, "checksums.txt"), strings.TrimSuffix(sums, "\n"))
}

// TestPublishCheck builds the program of a tagged clone: only its own tag passes, on main, with notes and a whole dist.
func TestPublishCheck(t *testing.T) {
	drivesOnly(t)
	peer.Find(t, "jq")
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
	dist := filepath.Join(dir, "dist")
	distIn(t, dist, wholeDist)
	check := func(tag string) error { return expect.Err(run("scripts/release/publish", "check", tag)) }

	for _, tag := range []string{"0.97.1", "v0.97", "v0.97.1-rc.1", "v0.97.1\nv1", "v0.97.1/../x"} {
		expect.Fails(t, check(tag), "does not have the form v1.2.3")
	}
	expect.Fails(t, check("v0.97.2"), "there is no dist/npm/mcp-funnel-0.97.2.tgz")
	other := wholeDist
	other.version = "0.97.2"
	distIn(t, dist, other)
	expect.Fails(t, check("v0.97.2"), "the program says v0.97.1, the tag is v0.97.2")
	distIn(t, dist, wholeDist)
	expect.Fails(t, check("v0.97.1"), "CHANGELOG.md has no version 0.97.1")
	log := filepath.Join(dir, "CHANGELOG.md")
	old := string(expect.Value(os.ReadFile(log))(t))
	write(t, log, strings.Replace(old, "\n## ", "\n## 0.97.1 (2026-01-02)\n\nNew.\n\n## ", 1))
	expect.Must(t, check("v0.97.1"))
	expect.Equal(t, string(expect.Value(os.ReadFile(filepath.Join(dir, "dist/notes.md")))(t)), "New.\n\n")

	for want, fault := range map[string]func(of *distOf){
		"these names of dist/checksums.txt are not of 0.97.1": func(of *distOf) { of.names += " a_0.97.10_b.deb" },
		"dist/server.json and dist/oci are of 0.97.1\n0.97.0": func(of *distOf) { of.image = "0.97.0" },
		"dist/server.json and dist/oci are of 0.97.0\n0.97.1": func(of *distOf) { of.server = "0.97.0" },
		"dist/npm has mcp-funnel-linux-x64-0.97.1.tgz\nmcp":   func(of *distOf) { of.dependencies = "mcp-funnel-linux-x64" },
		"dist/npm has mcp-funnel-linux-x64-0.97.1.tgz, but":   func(of *distOf) { of.packages = "mcp-funnel-linux-x64" },
		"dist/npm has , but": func(of *distOf) { of.packages, of.dependencies = "", "" },
	} {
		of := wholeDist
		fault(&of)
		distIn(t, dist, of)
		expect.Fails(t, check("v0.97.1"), want)
	}
	for name, fault := range map[string]func(){
		"server.json":                          func() { write(t, filepath.Join(dist, "server.json"), "{}") }, // the last one
		"mcp-funnel_0.97.1_linux_amd64.deb":    func() { must("sh", "-c", "rm dist/*.deb") },
		"mcp-funnel_0.97.1_linux_amd64.tar.gz": func() { must("sh", "-c", "mkdir dist/x && cp dist/*.gz dist/x") },
		"mcp-funnel-linux-x64-0.97.1.tgz":      func() { must("cp", "LICENSE", "dist/npm/mcp-funnel-linux-x64-0.97.1.tgz") },
	} {
		for _, what := range []string{"check", "github"} {
			distIn(t, dist, wholeDist)
			fault()
			err := expect.Err(run("scripts/release/publish", what, "v0.97.1"))
			expect.Fails(t, err, "dist has not one file "+name+" with the sum")
		}
	}
	for _, file := range []string{"mcp-funnel_0.97.1_linux_amd64.rpm", "checksums.txt"} {
		distIn(t, dist, wholeDist)
		write(t, filepath.Join(dist, file), "")
		expect.Fails(t, check("v0.97.1"), "dist has files that checksums.txt does not name")
	}
	distIn(t, dist, wholeDist)
	must("git", "update-ref", "refs/remotes/origin/main", "HEAD~1")
	expect.Fails(t, check("v0.97.1"), "v0.97.1 is not a commit of main")
}

// TestReleaseEnvironment builds what makes a release where variables and a workspace would stop or change that.
func TestReleaseEnvironment(t *testing.T) {
	drivesOnly(t)
	dir := t.TempDir()
	for _, file := range expect.Value(filepath.Glob("../scripts/release/*"))(t) {
		write(t, filepath.Join(dir, "scripts/release", filepath.Base(file)), string(expect.Value(os.ReadFile(file))(t)))
	}
	write(t, filepath.Join(dir, "go.work"), "go 1.26\nuse ./missing\n")
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(dir, "scripts/release/release"), "-help")
	cmd.Env = append(os.Environ(), "GOEXPERIMENT=x", "GOFIPS140=x", "GOAMD64=x", "GOARM64=x", "GOWORK=")
	out, err := cmd.CombinedOutput()
	expect.Must(t, err, string(out))
	expect.Has(t, string(out), "Usage of bin/make-release")
}
