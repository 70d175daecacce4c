package channels

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// unpublished are the files of a release's directory that are not uploaded, or that name the others.
var unpublished = []string{"artifacts.json", "metadata.json", "config.yaml", "checksums.txt"}

// checksums returns the sums of checksums.txt by file.
func checksums(t *testing.T, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	for line := range strings.Lines(string(read(t, filepath.Join(dir, "checksums.txt")))) {
		m := regexp.MustCompile(`^([0-9a-f]{64})  (\S+)\n$`).FindStringSubmatch(line)
		if m == nil || sums[m[2]] != "" {
			t.Fatalf("a line of no form, or a second one of a file: %q", line)
		}
		sums[m[2]] = m[1]
	}
	return sums
}

// released returns the version of a release.
func released(t *testing.T, dir string) string {
	t.Helper()
	var about struct{ Version string }
	expect.Must(t, json.Unmarshal(read(t, filepath.Join(dir, "metadata.json")), &about))
	return about.Version
}

// commitTime returns the time of the commit of a release, by its version: in digits, or "" where that is a tag.
func commitTime(t *testing.T, dir string) string {
	t.Helper()
	return regexp.MustCompile(`\d{14}`).FindString(released(t, dir))
}

func TestChecksums(t *testing.T) {
	dir := dist(t)
	got := map[string]string{}
	for _, file := range append(all(t, dir, "*"), all(t, dir, "npm/*")...) {
		info := expect.Value(os.Stat(file))(t)
		if name := filepath.Base(file); info.Mode().IsRegular() && !slices.Contains(unpublished, name) {
			got[name] = fmt.Sprintf("%x", sha256.Sum256(read(t, file)))
			expect.Equal(t, name == "server.json" || strings.Contains(name, released(t, dir)), true, "%s: no version", name)
		}
	}
	if len(got) < 5 {
		t.Errorf("only %d files", len(got))
	}
	expect.Same(t, checksums(t, dir), got)
}

// Each archive has a bill of materials that names the version of the program in it.
func TestBillsOfMaterials(t *testing.T) {
	dir := dist(t)
	one(t, dir, "*_windows_amd64.cdx.json")
	for _, archive := range append(all(t, dir, "*.tar.gz"), all(t, dir, "*.zip")...) {
		file := strings.TrimSuffix(strings.TrimSuffix(archive, ".zip"), ".tar.gz") + ".cdx.json"
		var bill struct {
			BOMFormat string
			Metadata  struct {
				Component struct{ Name, Version string }
			}
			Components []struct{ Name, Version, PURL string }
		}
		expect.Must(t, json.Unmarshal(read(t, file), &bill))
		expect.Equal(t, bill.BOMFormat, "CycloneDX", file)
		expect.Equal(t, bill.Metadata.Component.Name, "github.com/mcp-funnel/mcp-funnel", file)
		expect.Equal(t, bill.Metadata.Component.Version, "v"+released(t, dir), file)
		if len(bill.Components) < 30 {
			t.Errorf("%s names %d components", file, len(bill.Components))
		}
		for _, c := range bill.Components {
			if c.Name == "" || c.Version == "" || c.PURL == "" {
				t.Errorf("%s: a component without a name or version: %+v", file, c)
			}
		}
	}
}

const winget = "winget/manifests/m/mcp-funnel/mcp-funnel/*/mcp-funnel.mcp-funnel"

// managed are the files of package managers, with how many archives each names.
var managed = map[string]int{
	"homebrew/Casks/mcp-funnel.rb": 4, "scoop/mcp-funnel.json": 2, winget + ".installer.yaml": 2,
	"aur/mcp-funnel-bin.pkgbuild": 2, "aur/mcp-funnel-bin.srcinfo": 2,
}

// Each file of a package manager names archives of this release, with the sums of these.
func TestPackageManagers(t *testing.T) {
	dir := dist(t)
	sums, version := checksums(t, dir), released(t, dir)
	for pattern, archives := range managed {
		t.Run(path.Base(pattern), func(t *testing.T) {
			text := string(read(t, one(t, dir, pattern)))
			text = strings.ReplaceAll(text, "#{version}", version)
			urls := regexp.MustCompile(`https://\S+/releases/[^\s"')]+`).FindAllString(text, -1)
			found := regexp.MustCompile(`\b[0-9a-f]{64}\b`).FindAllString(text, -1)
			expect.MustEqual(t, len(urls), archives, "archives: %q", urls)
			expect.MustEqual(t, len(found), archives, "sums")
			for i, url := range urls {
				name, ok := strings.CutPrefix(url, "https://github.com/mcp-funnel/mcp-funnel/releases/download/v"+version+"/")
				expect.Equal(t, ok, true, url)
				expect.Equal(t, found[i], sums[name], url)
			}
		})
	}
}

// checkDescribed checks fields of a file of a package manager.
func checkDescribed(t *testing.T, got map[string]any, want map[string]any) {
	t.Helper()
	for name, value := range want {
		expect.Same(t, got[name], value, name)
	}
}

func TestScoop(t *testing.T) {
	dir := dist(t)
	var app map[string]any
	expect.Must(t, json.Unmarshal(read(t, one(t, dir, "scoop/mcp-funnel.json")), &app))
	checkDescribed(t, app, map[string]any{
		"version": released(t, dir), "license": "Apache-2.0", "homepage": "https://github.com/mcp-funnel/mcp-funnel",
	})
	for _, arch := range []string{"64bit", "arm64"} {
		one := app["architecture"].(map[string]any)[arch].(map[string]any) //nolint:forcetypeassert // else it fails here
		expect.Same(t, one["bin"], []any{"mcp-funnel.exe"}, arch)
	}
}

func TestWinget(t *testing.T) {
	dir := dist(t)
	for kind, want := range map[string]map[string]any{
		".":              {"ManifestType": "version", "DefaultLocale": "en-US"},
		".installer.":    {"ManifestType": "installer", "InstallerType": "zip"},
		".locale.en-US.": {"ManifestType": "defaultLocale", "PackageLocale": "en-US", "License": "Apache-2.0"},
	} {
		var manifest map[string]any
		expect.Must(t, yaml.Unmarshal(read(t, one(t, dir, winget+kind+"yaml")), &manifest))
		want["PackageIdentifier"], want["PackageVersion"] = "mcp-funnel.mcp-funnel", released(t, dir)
		checkDescribed(t, manifest, want)
		if kind != ".installer." {
			continue
		}
		if at := commitTime(t, dir); at != "" {
			expect.Same(t, manifest["ReleaseDate"], any(at[:4]+"-"+at[4:6]+"-"+at[6:8]))
		}
		for i, installer := range manifest["Installers"].([]any) { //nolint:forcetypeassert // else it fails here
			checkDescribed(t, installer.(map[string]any), map[string]any{ //nolint:forcetypeassert // as above
				"Architecture":        []string{"arm64", "x64"}[i],
				"NestedInstallerType": "portable",
				"NestedInstallerFiles": []any{
					map[string]any{"RelativeFilePath": "mcp-funnel.exe", "PortableCommandAlias": "mcp-funnel"},
				},
			})
		}
	}
}

// The file of the AUR installs an unpacked archive.
func TestAUR(t *testing.T) {
	dir, to := dist(t), t.TempDir()
	build := one(t, dir, "aur/mcp-funnel-bin.pkgbuild")
	from := t.TempDir()
	command(t, from, nil, "tar", "xzf", one(t, dir, "*_linux_amd64.tar.gz"))
	said := command(t, from, []string{"pkgdir=" + to},
		"bash", "-euc", `. "$0"; package >&2; echo "$pkgname $pkgver ${arch[*]}"`, build)
	expect.Equal(t, said, "mcp-funnel-bin "+strings.ReplaceAll(released(t, dir), "-", "_")+" aarch64 x86_64")
	for name, mode := range map[string]os.FileMode{
		"bin/mcp-funnel": 0o755, "share/licenses/mcp-funnel/LICENSE": 0o644, "share/man/man1/mcp-funnel.1": 0o644,
		"share/bash-completion/completions/mcp-funnel": 0o644, "share/zsh/site-functions/_mcp-funnel": 0o644,
		"share/fish/vendor_completions.d/mcp-funnel.fish": 0o644,
	} {
		expect.Equal(t, expect.Value(os.Stat(filepath.Join(to, "usr", name)))(t).Mode(), mode, name)
	}
}

// Ruby accepts the cask, where it is installed.
func TestCask(t *testing.T) {
	cask := one(t, dist(t), "homebrew/Casks/mcp-funnel.rb")
	text := string(read(t, cask))
	expect.Contains(t, text, `binary "mcp-funnel"`, `manpage "man/mcp-funnel.1"`,
		`zsh_completion "completions/_mcp-funnel"`, `if OS.mac?`)
	ruby, err := exec.LookPath("ruby")
	if err != nil {
		t.Skip("no ruby: its syntax is not checked")
	}
	expect.Equal(t, command(t, ".", nil, ruby, "-c", cask), "Syntax OK")
}
