package channels

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// descriptor names a blob of an OCI layout.
type descriptor struct {
	MediaType, Digest string
	Size              int64
	Platform          struct{ OS, Architecture string }
}

// imageConfig is the configuration of an image, as far as it is checked.
type imageConfig struct {
	OS, Architecture string
	Created          time.Time
	RootFS           struct {
		DiffIDs []string `json:"diff_ids"`
	}
	Config struct {
		User, WorkingDir     string
		Entrypoint, Env, Cmd []string
		Volumes              map[string]struct{}
		Labels               map[string]string
		Healthcheck          struct{ Test []string }
	}
}

// blob reads a blob, and checks its digest and size.
func blob(t *testing.T, layout string, d descriptor) []byte {
	t.Helper()
	sum, ok := strings.CutPrefix(d.Digest, "sha256:")
	expect.MustEqual(t, ok, true, d.Digest)
	text := read(t, filepath.Join(layout, "blobs/sha256", sum))
	expect.Equal(t, int64(len(text)), d.Size, "size of %s", d.Digest)
	expect.Equal(t, digestOf(text), d.Digest)
	return text
}

func digestOf(text []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(text)) }

func parse[T any](t *testing.T, text []byte) (v T) {
	t.Helper()
	expect.Must(t, json.Unmarshal(text, &v), text)
	return v
}

// readImage returns the files of an image and its configuration, by a descriptor of the index.
func readImage(t *testing.T, layout string, d descriptor) (files []entry, config imageConfig) {
	t.Helper()
	expect.Equal(t, d.MediaType, "application/vnd.oci.image.manifest.v1+json")
	manifest := parse[struct {
		Config descriptor
		Layers []descriptor
	}](t, blob(t, layout, d))
	expect.Equal(t, manifest.Config.MediaType, "application/vnd.oci.image.config.v1+json")
	config = parse[imageConfig](t, blob(t, layout, manifest.Config))
	expect.MustEqual(t, len(config.RootFS.DiffIDs), len(manifest.Layers), "layers")
	compressed := int64(0)
	for i, layer := range manifest.Layers {
		expect.Equal(t, layer.MediaType, "application/vnd.oci.image.layer.v1.tar+gzip")
		compressed += layer.Size
		text := gunzip(t, blob(t, layout, layer))
		expect.Equal(t, digestOf(text), config.RootFS.DiffIDs[i], "layer %d, uncompressed", i)
		files = append(files, readTar(t, bytes.NewReader(text))...)
	}
	if compressed > maxImage {
		t.Errorf("%d bytes compressed, more than %d", compressed, maxImage)
	}
	return files, config
}

// imageFiles are all files of an image: mode and owner.
var imageFiles = map[string]string{
	"etc/":                              "drwxr-xr-x 0:0",
	"etc/mcp-funnel.container":          "-rw-r--r-- 0:0",
	"etc/passwd":                        "-rw-r--r-- 0:0",
	"etc/ssl/":                          "drwxr-xr-x 0:0",
	"etc/ssl/certs/":                    "drwxr-xr-x 0:0",
	"etc/ssl/certs/ca-certificates.crt": "-rw-r--r-- 0:0",
	"mcp-funnel":                        "-rwxr-xr-x 0:0",
	"store/":                            "drwx------ 65532:65532",
	"tmp/":                              "dtrwxrwxrwx 0:0",
}

// maxImage is how large an image may be, in bytes: 25.5 MiB. The tools that change files brought it 0.1 MB over 25 MiB.
const maxImage = 51 << 19

// TestImage checks the images of all processors, and starts that of this one.
func TestImage(t *testing.T) {
	t.Parallel()
	layout := filepath.Join(dist(t), "oci")
	version := read(t, filepath.Join(layout, "oci-layout"))
	expect.Same(t, parse[map[string]string](t, version), map[string]string{"imageLayoutVersion": "1.0.0"})
	index := parse[struct {
		SchemaVersion int
		MediaType     string
		Manifests     []descriptor
	}](t, read(t, filepath.Join(layout, "index.json")))
	expect.Equal(t, fmt.Sprint(index.SchemaVersion, index.MediaType), "2application/vnd.oci.image.index.v1+json")
	var here []entry
	var config imageConfig
	named := map[string]bool{}
	for _, d := range index.Manifests {
		files, c := readImage(t, layout, d)
		expect.Equal(t, d.Platform.OS+"/"+d.Platform.Architecture, c.OS+"/"+c.Architecture)
		expect.Equal(t, named[c.Architecture], false, "%s is there twice", c.Architecture)
		named[c.Architecture] = true
		checkImage(t, files, c)
		if c.Architecture == runtime.GOARCH {
			here, config = files, c
		}
	}
	archives := all(t, layout, "../*_linux_*.tar.gz")
	if here == nil || len(named) != len(archives) {
		t.Fatalf("the index has %v, and there are %q", named, archives)
	}
	c := newClean(t, here)
	c.env, c.user, c.writable = config.Config.Env, config.Config.User, "/store"
	start := func(words ...string) []string { return append(config.Config.Entrypoint, words...) } // as in docs/HTTP.md
	t.Run("stdio", func(t *testing.T) { firstReceipt(t, c.command(t, start("/data")...), "") })
	t.Run("doctor", func(t *testing.T) {
		said, code := c.run(t, "/mcp-funnel", "doctor", "--root", "/data")
		expect.Equal(t, code, 0, said)
		expect.Has(t, said, "by a container image")
	})
	t.Run("only the store can be written", func(t *testing.T) {
		said, code := c.run(t, "/mcp-funnel", "keep", "--store", "/tmp/store")
		expect.Equal(t, code, 1, said)
		expect.Has(t, said, "read-only file system")
	})
	t.Run("http", func(t *testing.T) {
		serveImage(t, c, start("serve", "--no-client-roots", "/data"), config.Config.Healthcheck.Test)
	})
}

// checkImage checks the files and the configuration of an image.
func checkImage(t *testing.T, files []entry, c imageConfig) {
	t.Helper()
	found := map[string]string{}
	for _, f := range files {
		found[f.Name] = fmt.Sprintf("%v %d:%d", f.FileInfo().Mode(), f.Uid, f.Gid)
		expect.Equal(t, f.ModTime.UTC(), c.Created.UTC(), "time of %s", f.Name)
		if path.Base(f.Name) == "ca-certificates.crt" {
			certificates := 0
			for block, rest := pem.Decode(f.text); block != nil; block, rest = pem.Decode(rest) {
				expect.Value(x509.ParseCertificate(block.Bytes))(t)
				certificates++
			}
			if certificates < 100 {
				t.Errorf("%d certificates", certificates)
			}
		}
	}
	expect.Same(t, found, imageFiles)
	expect.Equal(t, c.Config.User, "65532:65532")
	expect.EqualList(t, c.Config.Entrypoint, []string{"/mcp-funnel"})
	expect.EqualList(t, c.Config.Healthcheck.Test, []string{"CMD", "/mcp-funnel", "doctor", "--ready"})
	expect.Same(t, c.Config.Volumes, map[string]struct{}{"/store": {}})
	for name, want := range map[string]string{
		"io.modelcontextprotocol.server.name": "io.github.mcp-funnel/mcp-funnel",
		"org.opencontainers.image.licenses":   "Apache-2.0",
		"org.opencontainers.image.source":     "https://github.com/mcp-funnel/mcp-funnel",
		"org.opencontainers.image.created":    c.Created.Format(time.RFC3339),
	} {
		expect.Equal(t, c.Config.Labels[name], want, name)
	}
	for _, name := range []string{"revision", "version", "title", "description", "documentation"} {
		if c.Config.Labels["org.opencontainers.image."+name] == "" {
			t.Errorf("no label %s", name)
		}
	}
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
	`"capabilities":{},"clientInfo":{"name":"channels","version":"1"}}}`

// serveImage starts an image over HTTP, and asks it whether it is ready by its health check: before it serves, while it
// does, and after it.
func serveImage(t *testing.T, c clean, start, check []string) {
	t.Helper()
	free := expect.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	_, port, err := net.SplitHostPort(free.Addr().String())
	expect.Must(t, err)
	expect.Must(t, free.Close())
	token := strings.Repeat("t", 40)
	c.env = append(c.env, "MCP_FUNNEL_HTTP=0.0.0.0:"+port, "MCP_FUNNEL_TOKEN="+token)
	said, code := c.run(t, check[1:]...)
	expect.Equal(t, code, 1, "before the start: %s", said)
	cmd := c.command(t, start...)
	log := expect.Value(cmd.StderrPipe())(t)
	expect.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(log)
	for text := ""; !strings.Contains(text, ":"+port); text += lines.Text() {
		if !lines.Scan() {
			t.Fatalf("it ended: %v\n%s", cmd.Wait(), text)
		}
	}
	said, code = c.run(t, check[1:]...)
	expect.Equal(t, code, 0, "while it serves: %s", said)
	request := expect.Value(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:"+port+"/mcp",
		strings.NewReader(initialize)))(t)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	got, err := http.DefaultClient.Do(request)
	expect.Must(t, err)
	answer := expect.Value(io.ReadAll(got.Body))(t)
	expect.Must(t, got.Body.Close())
	expect.Equal(t, got.StatusCode, http.StatusOK, answer)
	expect.Has(t, string(answer), `"name":"mcp-funnel"`)
	expect.Must(t, cmd.Process.Signal(os.Interrupt))
	expect.Value(io.Copy(io.Discard, log))(t)
	expect.OK(t, cmd.Wait(), "the end")
	said, code = c.run(t, check[1:]...)
	expect.Equal(t, code, 1, "after the end: %s", said)
}
