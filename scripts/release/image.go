package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user owns /store and runs the program: nobody else of the machine.
const user = 65532

// image writes the image of all processors of Linux as an OCI layout, dist/oci: the program and the certificates of
// Mozilla's list, without a shell.
func (r *release) image() error {
	var certificates bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a constraint cannot be written down in PEM
			if err := pem.Encode(&certificates, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
				return err
			}
		}
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range r.programs {
		if p.GOOS != "linux" {
			continue
		}
		binary, err := programFile("mcp-funnel", p.Path)
		if err != nil {
			return err
		}
		archive, err := tgz(r.when, []file{
			{name: "etc/", mode: 0o755},
			{name: "etc/mcp-funnel.container", mode: 0o644},
			{name: "etc/passwd", mode: 0o644, text: []byte("funnel:x:65532:65532::/store:/none\n")},
			{name: "etc/ssl/", mode: 0o755},
			{name: "etc/ssl/certs/", mode: 0o755},
			{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, text: certificates.Bytes()},
			{name: "store/", mode: 0o700, user: user},
			{name: "tmp/", mode: 0o1777},
			binary,
		})
		if err != nil {
			return err
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(archive)), nil
		}, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return err
		}
		one, err := mutate.Append(mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1),
			mutate.Addendum{Layer: layer, History: v1.History{
				CreatedBy: "make release", Created: v1.Time{Time: r.when},
			}})
		if err != nil {
			return err
		}
		if one, err = mutate.ConfigFile(one, r.config(one, p)); err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: p.GOOS, Architecture: p.GOARCH},
		}})
	}
	dir := filepath.Join(r.dist, "oci")
	if _, err := layout.Write(dir, index); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o644) // whoever copies it need not be its owner
	})
}

// config is that of an image with one layer.
func (r *release) config(one v1.Image, p program) *v1.ConfigFile {
	c, err := one.ConfigFile()
	if err != nil {
		panic(err) // it was made here
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Created, c.Author = p.GOOS, p.GOARCH, v1.Time{Time: r.when}, "The mcp-funnel authors"
	c.Config = v1.Config{
		User:       "65532:65532",
		Entrypoint: []string{"/mcp-funnel"},
		Env:        []string{"HOME=/store", "MCP_FUNNEL_STORE=/store", "PATH=/"},
		WorkingDir: "/",
		Volumes:    map[string]struct{}{"/store": {}},
		Labels: map[string]string{
			"io.modelcontextprotocol.server.name":    serverName,
			"org.opencontainers.image.created":       r.when.Format(time.RFC3339),
			"org.opencontainers.image.description":   "An MCP server whose tools never flood a model's context",
			"org.opencontainers.image.documentation": project + "/blob/main/docs/HTTP.md",
			"org.opencontainers.image.licenses":      "Apache-2.0",
			"org.opencontainers.image.revision":      r.revision,
			"org.opencontainers.image.source":        project,
			"org.opencontainers.image.title":         "mcp-funnel",
			"org.opencontainers.image.version":       r.version,
		},
		Healthcheck: &v1.HealthConfig{
			Test: []string{"CMD", "/mcp-funnel", "doctor", "--ready"}, Interval: 30 * time.Second, Timeout: 5 * time.Second,
		},
	}
	return c
}
