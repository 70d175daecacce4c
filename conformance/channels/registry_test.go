package channels

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"golang.org/x/mod/semver"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

const (
	serverName = "io.github.mcp-funnel/mcp-funnel"
	project    = "https://github.com/mcp-funnel/mcp-funnel"
	schemaURL  = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
)

// registryEntry is what the rules of the MCP registry read of a server.json.
type registryEntry struct {
	Schema                     string `json:"$schema"`
	Name, Description, Version string
	Repository                 struct{ URL, Source string }
	Packages                   []registryPackage
}

type argument struct {
	Type, Name, Value string
	IsRepeated        bool
}

type registryPackage struct {
	RegistryType, RegistryBaseURL, Identifier, Version, FileSHA256, RuntimeHint string
	Transport                                                                   struct{ Type, URL string }
	RuntimeArguments, PackageArguments                                          []argument
}

// registrySchema returns the schema of server.json: the registry's module has it, which goreleaser needs, so that the
// go.sum of scripts/release pins it.
func registrySchema(t testing.TB) *jsonschema.Resolved {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", "github.com/modelcontextprotocol/registry")
	cmd.Dir = "../../scripts/release"
	out, err := cmd.Output()
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("the schema of server.json cannot be downloaded: %v, %s", err, out)
	}
	var module struct{ Dir string }
	expect.Must(t, errors.Join(err, json.Unmarshal(out, &module)), string(out))
	var schema jsonschema.Schema
	file := filepath.Join(module.Dir, "internal/validators/schemas/2025-12-11.json")
	expect.Must(t, json.Unmarshal(expect.Value(os.ReadFile(file))(t), &schema))
	expect.Equal(t, schema.ID, schemaURL)
	return expect.Value(schema.Resolve(nil))(t)
}

var (
	nameForm    = regexp.MustCompile(`^io\.github\.[a-zA-Z0-9-]*[a-zA-Z0-9]/[a-zA-Z0-9][a-zA-Z0-9._-]*[a-zA-Z0-9]$`)
	releaseFile = regexp.MustCompile(`^` + regexp.QuoteMeta(project) + `/releases/download/v([^/]+)/([^/]+\.mcpb)$`)
	// The registry takes 1.0.0-next.1 for a range, because of its x.
	rangeLetters = regexp.MustCompile(`[xX*]`)
)

// registryRules are what the registry checks besides its schema, those that need a network against the files of the
// release: https://modelcontextprotocol.io/registry/package-types. Each returns what is wrong.
func registryRules(t testing.TB) map[string]func(e registryEntry) string {
	npm, labels := tarballs(t), imageLabels(t)
	files := map[string]string{} // sums by name
	for _, file := range expect.Value(filepath.Glob(filepath.Join(dist(t), "*.mcpb")))(t) {
		files[filepath.Base(file)] = fmt.Sprintf("%x", sha256.Sum256(expect.Value(os.ReadFile(file))(t)))
	}
	each := func(kind string, wrong func(e registryEntry, p registryPackage) bool) func(registryEntry) string {
		return func(e registryEntry) string {
			found := false
			for _, p := range e.Packages {
				if kind == "" || p.RegistryType == kind {
					found = true
					if wrong(e, p) {
						return fmt.Sprintf("%+v", p)
					}
				}
			}
			if !found {
				return "no package of " + kind
			}
			return ""
		}
	}
	field := func(wrong func(registryEntry) bool) func(registryEntry) string {
		return func(e registryEntry) string {
			if wrong(e) {
				return fmt.Sprintf("%+v", e)
			}
			return ""
		}
	}
	return map[string]func(registryEntry) string{
		"schema": field(func(e registryEntry) bool { return e.Schema != schemaURL }),
		"name": field(func(e registryEntry) bool {
			owner := strings.Split(strings.TrimPrefix(e.Repository.URL, "https://github.com/"), "/")[0]
			return !nameForm.MatchString(e.Name) || !strings.HasPrefix(e.Name, "io.github."+owner+"/")
		}),
		"repository": field(func(e registryEntry) bool {
			return e.Repository.URL != project || e.Repository.Source != "github"
		}),
		"version": field(func(e registryEntry) bool {
			return !semver.IsValid("v"+e.Version) || semver.Canonical("v"+e.Version) != "v"+e.Version ||
				rangeLetters.MatchString(e.Version)
		}),
		"transport": each("", func(_ registryEntry, p registryPackage) bool {
			return p.Transport.Type != "stdio" || p.Transport.URL != ""
		}),
		"identifier": each("", func(_ registryEntry, p registryPackage) bool { return strings.Contains(p.Identifier, " ") }),
		"base URL":   each("", func(_ registryEntry, p registryPackage) bool { return p.RegistryBaseURL != "" }),
		"arguments": each("", func(_ registryEntry, p registryPackage) bool {
			all := append(p.RuntimeArguments, p.PackageArguments...)
			return slices.ContainsFunc(all, func(a argument) bool {
				return a.Type == "named" && (!strings.HasPrefix(a.Name, "-") || strings.ContainsAny(a.Name, "<> $") ||
					strings.HasPrefix(a.Value, a.Name))
			}) || p.RuntimeArguments != nil && p.RuntimeHint == ""
		}),
		// Docker reads a mount as CSV.
		"mount": each("oci", func(_ registryEntry, p registryPackage) bool {
			mount := strings.ReplaceAll(p.RuntimeArguments[0].Value, "{directory}", "/a b,source=/,c:d")
			fields, err := csv.NewReader(strings.NewReader(mount)).Read()
			want := []string{"type=bind", "source=/a b,source=/,c:d", "target=/data", "readonly"}
			return err != nil || !slices.Equal(fields, want)
		}),
		"no flags": each("", func(_ registryEntry, p registryPackage) bool {
			args := p.PackageArguments
			return p.RegistryType != "mcpb" && (len(args) != 3 || args[0].Value != "serve" || args[1].Value != "--")
		}),
		"npm": each("npm", func(e registryEntry, p registryPackage) bool {
			about := npm[p.Identifier].about
			return about == nil || p.Version != about["version"] || p.Version != e.Version || about["mcpName"] != e.Name ||
				p.FileSHA256 != ""
		}),
		"mcpb": each("mcpb", func(e registryEntry, p registryPackage) bool {
			m := releaseFile.FindStringSubmatch(p.Identifier)
			return m == nil || m[1] != e.Version || files[m[2]] == "" || files[m[2]] != p.FileSHA256
		}),
		"oci": each("oci", func(e registryEntry, p registryPackage) bool {
			return p.Identifier != "ghcr.io/mcp-funnel/mcp-funnel:"+e.Version || p.Version != "" || p.FileSHA256 != "" ||
				slices.ContainsFunc(labels, func(l string) bool { return l != e.Name }) || len(labels) == 0
		}),
		"all bundles": field(func(e registryEntry) bool {
			var named []string
			for _, p := range e.Packages {
				if p.RegistryType == "mcpb" {
					named = append(named, path.Base(p.Identifier))
				}
			}
			slices.Sort(named)
			return len(named) != len(files) || len(slices.Compact(named)) != len(files)
		}),
	}
}

// imageLabels returns the name that each image of the release says is its server's.
func imageLabels(t testing.TB) (names []string) {
	t.Helper()
	blob := func(digest string, into any) {
		t.Helper()
		file := filepath.Join(dist(t), "oci/blobs", strings.Replace(digest, ":", "/", 1))
		expect.Must(t, json.Unmarshal(expect.Value(os.ReadFile(file))(t), into))
	}
	type descriptor struct{ Digest string }
	var index struct{ Manifests []descriptor }
	expect.Must(t, json.Unmarshal(expect.Value(os.ReadFile(filepath.Join(dist(t), "oci/index.json")))(t), &index))
	for _, m := range index.Manifests {
		var image struct{ Config descriptor }
		blob(m.Digest, &image)
		var config struct {
			Config struct{ Labels map[string]string }
		}
		blob(image.Config.Digest, &config)
		names = append(names, config.Config.Labels["io.modelcontextprotocol.server.name"])
	}
	return names
}

// TestRegistryEntry checks server.json against the schema and the rules of the MCP registry, and each of them by an
// entry that breaks it.
func TestRegistryEntry(t *testing.T) {
	text := expect.Value(os.ReadFile(filepath.Join(dist(t), "server.json")))(t)
	schema, rules := registrySchema(t), registryRules(t)
	var whole any
	expect.Must(t, json.Unmarshal(text, &whole))
	expect.OK(t, schema.Validate(whole), "server.json")
	var e registryEntry
	expect.Must(t, json.Unmarshal(text, &e))
	for name, wrong := range rules {
		expect.Equal(t, wrong(e), "", name)
	}

	for _, broken := range []struct{ rule, from, to string }{
		{"by the schema", `"description": "Search`, `"description": "` + strings.Repeat("long ", 20)},
		{"by the schema", `"description": "Search`, `"about": "`},
		{"by the schema", `"name": "io.github.`, `"name": "io/github.`},
		{"by the schema", "\n  " + `"version": "`, `"version": "` + strings.Repeat("1", 255)},
		{"by the schema", `"version": "` + e.Version, `"version": "latest`},
		{"by the schema", `"type": "stdio"`, `"type": "pipe"`},
		{"by the schema", `"valueHint": "`, `"hint": "`},
		{"by the schema", `"fileSha256": "`, `"fileSha256": "G`},
		{"by the schema", `"format": "filepath"`, `"format": "directory"`},
		{"schema", "2025-12-11", "2025-09-29"},
		{"name", `"name": "io.github.mcp-funnel/`, `"name": "io.github.somebody/`},
		{"name", `"name": "io.github.mcp-funnel/mcp-funnel"`, `"name": "io.github.mcp-funnel/mcp-funnel."`},
		{"repository", `"source": "github"`, `"source": "git"`},
		{"version", "\n  " + `"version": "`, `"version": "^`},
		{"version", "\n  " + `"version": "` + e.Version, `"version": "latest`},
		{"version", "\n  " + `"version": "` + e.Version, `"version": "1.x`},
		{"version", "\n  " + `"version": "` + e.Version, `"version": "1.2`},
		{"version", "\n  " + `"version": "` + e.Version, `"version": "1.0.0-next.1`},
		{"transport", `"type": "stdio"`, `"type": "sse", "url": "http://127.0.0.1/sse"`},
		{"transport", `"type": "stdio"`, `"type": "stdio", "url": "http://127.0.0.1/sse"`},
		{"identifier", `"identifier": "mcp-funnel"`, `"identifier": "mcp funnel"`},
		{"base URL", `"identifier": "ghcr.io/`, `"registryBaseUrl": "https://ghcr.io", "identifier": "`},
		{"arguments", `"name": "--mount"`, `"name": "--mount <DIR>"`},
		{"mount", `\"source={directory}\"`, `source={directory}`},
		{"mount", `,readonly`, ``},
		{"no flags", `"value": "--"`, `"value": "-"`},
		{"arguments", `"value": "type=`, `"value": "--mount type=`},
		{"arguments", `"runtimeHint": "docker"`, `"hint": ""`},
		{"npm", `"identifier": "mcp-funnel"`, `"identifier": "mcp-funnel-linux-x64"`},
		{"npm", `"registryType": "npm"`, `"registryType": "npm", "fileSha256": "` + strings.Repeat("0", 64) + `"`},
		{"npm", `"name": "io.github.mcp-funnel/mcp-funnel"`, `"name": "io.github.mcp-funnel/funnel"`},
		{"mcpb", `"fileSha256": "`, `"fileSha256": "0`},
		{"mcpb", `https://github.com/mcp-funnel/mcp-funnel/releases`, `https://example.com/mcp-funnel/mcp-funnel/releases`},
		{"mcpb", `releases/download/v`, `releases/download/`},
		{"oci", `/mcp-funnel:` + e.Version, `/mcp-funnel:latest`},
		{"oci", `"identifier": "ghcr.io/`, `"version": "1", "identifier": "ghcr.io/`},
		{"oci", `"name": "io.github.mcp-funnel/mcp-funnel"`, `"name": "io.github.mcp-funnel/funnel"`},
		{"all bundles", `"registryType": "mcpb"`, `"registryType": "pypi"`},
	} {
		about := fmt.Sprintf("control: %s, %s", broken.rule, broken.to)
		changed := []byte(strings.Replace(string(text), broken.from, broken.to, 1))
		expect.Equal(t, string(changed) == string(text), false, about+" changes nothing")
		if broken.rule == "by the schema" {
			var whole any
			expect.Must(t, json.Unmarshal(changed, &whole), about)
			expect.Equal(t, schema.Validate(whole) == nil, false, about)
			continue
		}
		var e registryEntry
		expect.Must(t, json.Unmarshal(changed, &e), about)
		expect.Equal(t, rules[broken.rule](e) == "", false, about)
	}
}

// TestRegistryStart starts the package of npm as server.json says, with directories whose names are flags.
func TestRegistryStart(t *testing.T) {
	var e registryEntry
	expect.Must(t, json.Unmarshal(expect.Value(os.ReadFile(filepath.Join(dist(t), "server.json")))(t), &e))
	p := e.Packages[0]
	expect.Equal(t, p.RegistryType, "npm")
	dir, command := nodeHome(t, newRegistry(t))
	roots := []string{"--root=none", "--allow-write"}
	words := []string{p.RuntimeHint, "-y", p.Identifier + "@" + p.Version}
	for _, a := range p.PackageArguments {
		if a.IsRepeated {
			words = append(words, roots...)
		} else {
			words = append(words, a.Value)
		}
	}
	for _, root := range roots {
		expect.Must(t, os.Mkdir(filepath.Join(dir, root), 0o755))
		writeLines(t, filepath.Join(dir, root))
	}
	for _, root := range roots {
		firstReceipt(t, command(words...), filepath.Join(dir, root))
	}
}
