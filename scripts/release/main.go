// Command release makes all that is published of a commit into dist/: what goreleaser makes (goreleaser.yaml), the
// packages of npm, the bundles for Claude Desktop, the container image and the entry of the MCP registry. Two runs on one
// commit are equal byte for byte. Nothing is uploaded.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	serverName = "io.github.mcp-funnel/mcp-funnel" // in the MCP registry
	project    = "https://github.com/mcp-funnel/mcp-funnel"
	image      = "ghcr.io/mcp-funnel/mcp-funnel"
)

// release is what all parts know of the commit.
type release struct {
	dist     string
	version  string // without v
	revision string
	when     time.Time // of the commit, in UTC
	programs []program
}

// program is one that goreleaser has built.
type program struct {
	Type   string `json:"type"`
	Path   string `json:"path"`
	GOOS   string `json:"goos"`
	GOARCH string `json:"goarch"` // or "all"
}

func main() {
	small := flag.Bool("small", false, "only linux on the processor of this machine: archive, npm, bundle, image")
	dist := flag.String("dist", "dist", "the directory to make it in, which is emptied first")
	flag.Parse()
	if err := run(*small, *dist); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(small bool, dist string) error {
	if _, err := os.Stat("scripts/release/goreleaser.yaml"); err != nil {
		return errors.New("it must be started at the top of the checkout, as make release does")
	}
	if err := command("scripts/release/before"); err != nil {
		return err
	}
	r, err := describe(small, dist)
	if err != nil {
		return err
	}
	if err := r.goreleaser(small); err != nil {
		return err
	}
	for _, step := range []func() error{r.winget, r.npm, r.bundles, r.image, r.registry, r.checksums} {
		if err := step(); err != nil {
			return err
		}
	}
	fmt.Println("made:", r.dist, r.version)
	return nil
}

// describe returns what the checkout is: its version is what go has written into a program of it.
func describe(small bool, dist string) (*release, error) {
	info, err := buildinfo.ReadFile("bin/release/mcp-funnel")
	if err != nil {
		return nil, err
	}
	r := &release{dist: dist, version: strings.TrimPrefix(info.Main.Version, "v")}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			r.revision = s.Value
		case s.Key == "vcs.time":
			if r.when, err = time.Parse(time.RFC3339, s.Value); err != nil {
				return nil, err
			}
		case s.Key == "vcs.modified" && s.Value == "true" && !small:
			return nil, errors.New("the checkout has changes: commit or remove them (git status), so that the release is that of a commit")
		}
	}
	if r.revision == "" {
		return nil, errors.New("this is no git checkout: a release is made of a commit")
	}
	r.version = strings.ReplaceAll(r.version, "+", ".") // +dirty: not allowed in tags of images
	return r, nil
}

// goreleaser runs it, and reads which programs it has built.
func (r *release) goreleaser(small bool) error {
	text, err := os.ReadFile("scripts/release/goreleaser.yaml")
	if err != nil {
		return err
	}
	config := strings.Replace(string(text), "dist: dist\n", "dist: "+strconv.Quote(r.dist)+"\n", 1)
	// One at a time: the universal program has those of both processors in the order in which they were built.
	args := []string{"release", "--snapshot", "--clean", "--config", "bin/release/goreleaser.yaml", "--parallelism", "1"}
	if small {
		config = strings.NewReplacer("[linux, darwin, windows]", "[linux]", "[amd64, arm64]", "["+runtime.GOARCH+"]").
			Replace(config)
		args = append(args, "--skip=nfpm,sbom,homebrew,scoop,winget,aur")
	}
	if err := os.WriteFile("bin/release/goreleaser.yaml", []byte(config), 0o644); err != nil {
		return err
	}
	bin, err := filepath.Abs("bin")
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"RELEASE_VERSION": r.version, "RELEASE_BIN": bin} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	if err := command(os.Getenv("GORELEASER"), args...); err != nil {
		return err
	}
	if text, err = os.ReadFile(filepath.Join(r.dist, "artifacts.json")); err != nil {
		return err
	}
	if err := json.Unmarshal(text, &r.programs); err != nil {
		return err
	}
	r.programs = slices.DeleteFunc(r.programs, func(p program) bool {
		return p.Type != "Binary"
	})
	return nil
}

// winget makes the file of winget one of the commit: goreleaser writes today's date, and archives in any order.
func (r *release) winget() error {
	files, err := filepath.Glob(filepath.Join(r.dist, "winget/manifests/*/*/*/*/*.installer.yaml"))
	if err != nil || len(files) == 0 { // a small release
		return err
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		return err
	}
	date := "ReleaseDate: " + strconv.Quote(r.when.Format(time.DateOnly))
	text = regexp.MustCompile("(?m)^ReleaseDate: .*").ReplaceAll(text, []byte(date))
	text = regexp.MustCompile(`(?m)(^  .*\n)+`).ReplaceAllFunc(text, func(list []byte) []byte {
		items := strings.Split("\n"+strings.TrimSuffix(string(list), "\n"), "\n  - ")
		slices.Sort(items[1:])
		return []byte(strings.TrimPrefix(strings.Join(items, "\n  - "), "\n") + "\n")
	})
	return os.WriteFile(files[0], text, 0o644)
}

// checksums adds what goreleaser did not make to its list.
func (r *release) checksums() error {
	list, err := os.OpenFile(filepath.Join(r.dist, "checksums.txt"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer list.Close()
	for _, pattern := range []string{"*.mcpb", "npm/*.tgz", "server.json"} {
		files, err := filepath.Glob(filepath.Join(r.dist, pattern))
		if err != nil {
			return err
		}
		for _, file := range files {
			sum, err := sha256Of(file)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(list, "%s  %s\n", sum, filepath.Base(file)); err != nil {
				return err
			}
		}
	}
	return list.Close()
}

func sha256Of(file string) (string, error) {
	text, err := os.ReadFile(file)
	return fmt.Sprintf("%x", sha256.Sum256(text)), err
}

// readJSON reads a JSON object of packaging.
func readJSON(file string) (object map[string]any, err error) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &object)
	}
	return object, err
}

// indented returns JSON with its keys in order.
func indented(v any) []byte {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // it is made of maps, lists and strings
	}
	return append(text, '\n')
}

// command runs a program; what it prints is ours.
func command(name string, args ...string) error {
	c := exec.Command(name, args...)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strconv.Quote(strings.Join(args, " ")), err)
	}
	return nil
}
