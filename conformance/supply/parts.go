package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// part is a module that is in a binary.
type part struct {
	Path, Version, Sum string
	Dir                string // directory of its source in the module cache; empty for the first two
}

// stdlib is the standard library's name as a part; its version is that of Go.
const stdlib = "stdlib"

// product is the package of the released command.
const product = "github.com/mcp-funnel/mcp-funnel/cmd/mcp-funnel"

// releaseParts are the parts of a binary, and by path those that only the builds of the same release for darwin and
// windows have.
func releaseParts(binary string) ([]part, error) {
	parts, err := partsOf(binary)
	if err != nil {
		return nil, err
	}
	own := len(parts)
	for _, system := range []string{"darwin", "windows"} {
		cmd := exec.Command("go", "list", "-deps", "-json=Module", product) //nolint:noctx // a command's only work
		cmd.Stderr, cmd.Env = os.Stderr, append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system)
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", system, err)
		}
		packages, err := decodeAll[struct{ Module part }](out)
		if err != nil {
			return nil, err
		}
		for _, p := range packages {
			if p.Module.Path != "" && !slices.ContainsFunc(parts, func(o part) bool { return o.Path == p.Module.Path }) {
				parts = append(parts, p.Module)
			}
		}
	}
	slices.SortFunc(parts[own:], func(a, b part) int { return strings.Compare(a.Path, b.Path) })
	return parts, nil
}

// partsOf reads the parts of a binary: the main module, the standard library, then the other modules by path.
func partsOf(binary string) ([]part, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	parts := []part{{Path: info.Main.Path, Version: info.Main.Version}, {Path: stdlib, Version: goVersion(info.GoVersion)}}
	args := []string{"mod", "download", "-json"}
	for _, d := range info.Deps {
		if d.Replace != nil {
			return nil, fmt.Errorf("%s is replaced by %s: a release is built of modules as they were published",
				d.Path, d.Replace.Path)
		}
		parts = append(parts, part{Path: d.Path, Version: d.Version, Sum: d.Sum})
		args = append(args, d.Path+"@"+d.Version)
	}
	if len(parts) < 3 {
		return nil, errors.New("the binary names no modules")
	}
	cmd := exec.Command("go", args...) //nolint:noctx // a command's only work
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go mod download: %w", err)
	}
	modules, err := decodeAll[part](out)
	for _, m := range modules {
		i := slices.IndexFunc(parts, func(p part) bool { return p.Path == m.Path })
		if i < 0 || parts[i].Sum != "" && parts[i].Sum != m.Sum {
			return nil, fmt.Errorf("%s %s: what is in the module cache is not what the binary was built of", m.Path, m.Version)
		}
		parts[i].Dir = m.Dir
	}
	return parts, err
}

// decodeAll decodes the JSON values of a text, one after the other.
func decodeAll[T any](text []byte) (all []T, err error) {
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var one T
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
}

// goVersion converts a Go version to a semantic version: go1.27rc1 to 1.27.0-rc.1.
func goVersion(v string) string {
	release, _, _ := strings.Cut(strings.TrimPrefix(v, "go"), " ")
	pre := ""
	for _, mark := range []string{"rc", "beta"} {
		if before, n, ok := strings.Cut(release, mark); ok {
			release, pre = before, "-"+mark+"."+n
		}
	}
	for strings.Count(release, ".") < 2 {
		release += ".0"
	}
	return release + pre
}

// bill returns the bill of materials in CycloneDX 1.6 format. It holds no time and no serial number, so that equal
// builds have equal bills.
func bill(parts []part) map[string]any {
	var components []map[string]any
	for i, p := range parts {
		url := "pkg:golang/" + strings.ToLower(p.Path) + "@" + p.Version
		c := map[string]any{"type": "library", "bom-ref": url, "name": p.Path, "version": p.Version, "purl": url}
		var ids []string
		switch {
		case i == 0:
			c["type"], ids = "application", []string{"Apache-2.0"}
		case p.Path == stdlib:
			ids = []string{"BSD-3-Clause"}
		default:
			ids, _, _ = p.licences() // check reports errors
			c["properties"] = []map[string]any{{"name": "go:sum", "value": p.Sum}}
		}
		var licences []any
		for _, id := range ids {
			licences = append(licences, map[string]any{"license": map[string]any{"id": id}})
		}
		c["licenses"] = licences
		components = append(components, c)
	}
	return map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata": map[string]any{"component": components[0]}, "components": components[1:],
	}
}
