package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/semver"

	"github.com/mcp-funnel/mcp-funnel/conformance/built"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

const module = "github.com/mcp-funnel/mcp-funnel"

// release returns the product, built with the flags of a release.
func release(t *testing.T) string {
	t.Helper()
	return built.Program(t, "cmd/mcp-funnel")
}

func TestMain(m *testing.M) { os.Exit(built.Main(m)) }

// build builds the command from a directory with the module's source, with the flags of a release.
func build(ctx context.Context, source, path string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", path, "./cmd/mcp-funnel")
	cmd.Dir, cmd.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	return cmd.CombinedOutput()
}

// partsOfRelease returns the modules of the release, with their source directories.
func partsOfRelease(t *testing.T) []part {
	t.Helper()
	return expect.Value(partsOf(release(t)))(t)
}

// Every module of the binary, on every system, has an allowed licence, and NOTICES.md has its text.
func TestS32LicencesAreAllowed(t *testing.T) {
	parts := expect.Value(releaseParts(release(t)))(t)
	found := check(parts)
	for _, f := range found {
		t.Error(f)
	}
	if others := len(parts) - len(partsOfRelease(t)); others < 1 {
		t.Error("no module that only other systems need is looked at")
	}
	var fresh bytes.Buffer
	expect.Must(t, notices(&fresh, parts))
	if kept, err := os.ReadFile("../../NOTICES.md"); err != nil || !bytes.Equal(kept, fresh.Bytes()) {
		t.Errorf("NOTICES.md needs updating, run make supply (%v)", err)
	}

	// The control: licences that are not allowed.
	control := 0
	for _, text := range []string{
		"GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007", "GNU AFFERO GENERAL PUBLIC\nLICENSE Version 3", "GNU Lesser General Public License v2.1", "Mozilla Public License Version 2.0", "Server Side Public License", "Business Source License 1.1",
		"Permission is hereby granted, free of charge, to any person obtaining a copy\n\n\"Commons Clause\" License Condition v1.0", "All rights reserved.", "", "Creative Commons Attribution-NonCommercial 4.0",
	} {
		dir := t.TempDir()
		if text != "" {
			expect.Must(t, os.WriteFile(filepath.Join(dir, "LICENSE.md"), []byte(text), 0o600))
		}
		if len(check([]part{{}, {}, {Path: "example.org/planted", Version: "v1.0.0", Dir: dir}})) == 0 {
			t.Errorf("a module under %q is allowed", text)
		} else {
			control++
		}
	}
	promise.Keptf(t, promise.Proof{Promise: "S32", Cases: len(parts) - 2, Failures: len(found), Control: control},
		"modules, their licences")
}

// No module of the binary has a denied version.
func TestS32NoDeniedVersions(t *testing.T) {
	parts := partsOfRelease(t)
	all := expect.Value(denials(denied))(t)
	found := all.check(parts)
	for _, f := range found {
		t.Error(f)
	}
	// The control: the same build with a denied version added, for each.
	control := 0
	for _, r := range all {
		version := "0.0.1"
		if r.bounds[0][1] != "<" {
			version = r.bounds[0][2]
		}
		if hits := all.check(append(slices.Clone(parts), part{Path: r.path, Version: "v" + version})); len(hits) == 0 {
			t.Errorf("%s v%s is not found", r.path, version)
		} else {
			control++
		}
	}
	for _, bad := range []string{"example.org/x", "example.org/x <1.0.0", "example.org/x reason", "example.org/x >1.0.0 reason", "example.org/x < reason"} {
		expect.Fails(t, expect.Err(denials(bad)), "", "%q is taken", bad)
	}
	promise.Keptf(t, promise.Proof{Promise: "S32", Cases: len(parts), Failures: len(found), Control: control},
		"parts against %d denied versions", len(all))
}

func TestGoVersionsAreSemantic(t *testing.T) {
	for in, want := range map[string]string{"go1.26.8": "1.26.8", "go1.27rc1": "1.27.0-rc.1", "go1.27": "1.27.0", "go1.26.8 X:simd": "1.26.8"} {
		expect.Equal(t, goVersion(in), want, in)
	}
}

// plant writes a vulnerability database with the given entries: for each module, the events of CVE-2026-0, of
// CVE-2026-1 and so on.
func plant(t *testing.T, entries map[string][]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	type vuln struct {
		ID string `json:"id"`
	}
	type indexed struct {
		Path  string `json:"path"`
		Vulns []vuln `json:"vulns"`
	}
	var index []indexed
	write := func(name string, b []byte) { // as a file of a copy, and packed, as it is asked for over HTTP
		expect.Must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, err := z.Write(b)
		expect.Must(t, errors.Join(
			err, z.Close(), os.WriteFile(filepath.Join(dir, name), b, 0o600),
			os.WriteFile(filepath.Join(dir, name+".gz"), packed.Bytes(), 0o600),
		))
	}
	for path, all := range entries {
		entry := indexed{Path: path}
		for i, events := range all {
			id := fmt.Sprintf("GO-2026-%04d%d", len(index), i)
			entry.Vulns = append(entry.Vulns, vuln{id})
			write(
				"ID/"+id+".json",
				fmt.Appendf(
					nil,
					`{"id":%q,"aliases":["CVE-2026-%d"],"summary":"planted","affected":[{"package":{"name":%q},`+
						`"ranges":[{"type":"SEMVER","events":%s}]}]}`,
					id, i, path, events,
				),
			)
		}
		index = append(index, entry)
	}
	b := expect.Value(json.Marshal(index))(t)
	write("index/modules.json", b)
	write("index/db.json", []byte(`{"modified":"2026-01-01T00:00:00Z"}`))
	return dir
}

// No part has an entry in the vulnerability database; without a database the command reports that it checked nothing.
func TestS32NoKnownVulnerabilities(t *testing.T) {
	parts, binary := partsOfRelease(t), release(t)
	// Only VULN_DB enables the network: a test does not use it by itself.
	figures, unchecked, failures := "the check itself, with databases that are known", "known vulnerabilities not checked: no database (VULN_DB is not set)", 0
	if base := os.Getenv("VULN_DB"); base != "" {
		found, err := vulnerabilities(base, binary)
		for _, f := range found {
			t.Error(f)
		}
		expect.OK(t, err)
		figures, unchecked, failures = "vulnerability database: "+base, "", len(found)
	}
	t.Log(figures, unchecked)

	// The check itself, with a known database that has five entries for every part.
	events := []string{
		`[{"introduced":"0"}]`,
		`[{"introduced":"0"},{"fixed":"99.0.0"}]`,
		`[{"introduced":"0"},{"fixed":"0.0.0-0"}]`, // from here on the part is not affected
		`[{"introduced":"99.0.0"}]`,
		`[{"introduced":"0"},{"fixed":"0.0.0-0"},{"introduced":"98.0.0"},{"fixed":"99.0.0"}]`,
	}
	const affected = 2
	cases, control := 0, 0
	planted := map[string][]string{"example.org/other": events[:1]}
	for _, p := range parts[1:] {
		planted[p.Path] = events
	}
	found, err := vulnerabilities(plant(t, planted), binary)
	expect.OK(t, err)
	for _, p := range parts[1:] {
		for i := range events {
			hit := slices.ContainsFunc(found, func(f string) bool {
				return strings.HasPrefix(f, p.Path+" ") && strings.Contains(f, fmt.Sprintf("(CVE-2026-%d)", i))
			})
			if cases++; hit != (i < affected) {
				failures++
				t.Errorf("%s %s: %v", p.Path, events[i], found)
			}
			if hit {
				control++
			}
		}
	}
	if want := affected * (len(parts) - 1); len(found) != want {
		failures++
		t.Errorf("%d findings, not %d", len(found), want)
	}
	// Over HTTP, and without a database.
	dir := plant(t, map[string][]string{"github.com/itchyny/gojq": events[:1]})
	web := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer web.Close()
	if found, err := vulnerabilities(web.URL, binary); err != nil || len(found) != 1 ||
		!strings.Contains(found[0], "(CVE-2026-0) planted") {
		t.Errorf("over HTTP: %v %v", found, err)
	}
	for _, none := range []string{web.URL + "/nothing", t.TempDir(), "file://" + t.TempDir(), plant(t, nil), ""} {
		t.Setenv("VULN_DB", none)
		expect.ErrorIs(t, run([]string{"vulnerabilities", binary}, io.Discard), errNotChecked,
			"without a database the command says")
	}
	promise.Kept(
		t,
		promise.Proof{
			Promise: "S32", Cases: cases, Failures: failures, Control: control, Figures: figures, Unchecked: unchecked,
		},
	)
}

// The bill of materials names exactly the modules of the binary, and two bills are equal.
func TestS32BillOfMaterials(t *testing.T) {
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		expect.Must(t, run([]string{"sbom", release(t)}, out))
	}
	cmd := exec.CommandContext(t.Context(), "go", "version", "-m", release(t))
	out := expect.Value(cmd.Output())(t)
	// wrong counts the modules that differ between a bill and the toolchain's list.
	wrong := func(text []byte) (cases, wrong int) {
		type component struct {
			Name, Version, PURL string
			Licenses            []any
			Properties          []struct{ Name, Value string }
		}
		var b struct {
			BOMFormat  string
			Metadata   struct{ Component component }
			Components []component
		}
		if err := json.Unmarshal(text, &b); err != nil || b.BOMFormat != "CycloneDX" || b.Metadata.Component.Name != module {
			t.Fatalf("%v %+v", err, b.Metadata)
		}
		for line := range strings.Lines(string(out)) {
			fields := strings.Fields(line)
			if len(fields) < 4 || fields[0] != "dep" {
				continue
			}
			cases++
			if !slices.ContainsFunc(b.Components, func(c component) bool {
				return c.Name == fields[1] && c.Version == fields[2] && len(c.Licenses) > 0 && len(c.Properties) == 1 &&
					c.Properties[0].Value == fields[3] && c.PURL == "pkg:golang/"+strings.ToLower(fields[1])+"@"+fields[2]
			}) {
				wrong++
			}
		}
		if extra := len(b.Components) - cases - 1; extra != 0 { // and Go's own library
			wrong++
		}
		return cases, wrong
	}
	cases, failures := wrong(first.Bytes())
	expect.Equal(t, first.String(), second.String(), "two bills of one binary differ")
	// The control: a bill of another build.
	_, control := wrong(bytes.ReplaceAll(first.Bytes(), []byte("v1."), []byte("v7.")))
	promise.Keptf(t, promise.Proof{Promise: "S32", Cases: cases, Failures: failures, Control: control},
		"modules in the bill of materials")
}

// Two builds in two directories give equal binaries.
func TestS32BuildsAreReproducible(t *testing.T) {
	hash := func(path string) string {
		b := expect.Value(os.ReadFile(path))(t)
		return fmt.Sprintf("%x", sha256.Sum256(b))
	}
	builds := map[string]bool{}
	top := t.TempDir()
	for i, name := range []string{"a", "another/directory with a longer name"} {
		dir := filepath.Join(top, name)
		source(t, dir)
		path := filepath.Join(top, fmt.Sprint("built-", i))
		if promise.Full() && i > 0 { // nothing of the first build is used
			t.Setenv("GOCACHE", filepath.Join(top, "cache"))
		}
		if out, err := build(t.Context(), dir, path); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		builds[hash(path)] = true
	}
	failures := len(builds) - 1
	if failures > 0 {
		t.Error("two builds differ")
	}
	var sum string
	for sum = range builds {
		break
	}
	// The control: a build that contains its time.
	const stamp = "package main\n\nimport \"os\"\n\nvar _, _ = os.LookupEnv(\"2026-11-21T10:00:01Z\")\n"
	dir, path := filepath.Join(top, "a"), filepath.Join(top, "stamped")
	expect.Must(t, os.WriteFile(filepath.Join(dir, "cmd/mcp-funnel/stamp.go"), []byte(stamp), 0o600))
	if out, err := build(t.Context(), dir, path); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	control := 0
	if !builds[hash(path)] {
		control++
	}
	promise.Keptf(t, promise.Proof{Promise: "S32", Cases: 2, Failures: failures, Control: control},
		"builds in two directories, one sha256: %s…", sum[:16])
}

// source copies the module's files, but for tests and documentation.
func source(t *testing.T, dir string) {
	t.Helper()
	const copies = `mkdir -p "$1"; git ls-files -co --exclude-standard -z -- . ':!conformance' ':!docs' ':!*_test.go' |
	tar --null --ignore-failed-read -cf - -T - | tar -xf - -C "$1"`
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", copies, peer.Find(t, "git"), dir)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// The module files require a Go version whose os.Root is safe, and the binary was built with such a version.
func TestS3ModulesAndBinaryAskForASafeGo(t *testing.T) {
	const least = "1.26.5"
	asked := map[string]string{}
	for _, name := range []string{"go.mod", "scripts/lint/go.mod"} {
		b := expect.Value(os.ReadFile("../../" + name))(t)
		for line := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(line, "go "); ok {
				asked[name] = strings.TrimSpace(v)
			}
		}
	}
	out := expect.Value(exec.CommandContext(t.Context(), "go", "version", "-m", release(t)).Output())(t)
	first, rest, _ := strings.Cut(string(out), "\n")
	_, asked["the binary"], _ = strings.Cut(first, ": go")
	for _, setting := range []string{"build\t-trimpath=true", "build\tCGO_ENABLED=0"} {
		expect.Has(t, rest, setting, "the binary was built without")
	}
	bad := func(asked map[string]string) (n int) {
		for _, v := range asked {
			if v == "" || semver.Compare("v"+v, "v"+least) < 0 {
				n++
			}
		}
		return n
	}
	failures := bad(asked)
	if failures > 0 || len(asked) != 3 {
		t.Errorf("older than %s: %v", least, asked)
	}
	promise.Kept(
		t,
		promise.Proof{
			Promise: "S3", Cases: len(asked), Failures: failures,
			Control: bad(map[string]string{"go.mod": "1.26.4", "scripts/lint/go.mod": "1.26", "the binary": "1.25.9"}),
			Figures: "the binary's go " + asked["the binary"],
		},
	)
}
