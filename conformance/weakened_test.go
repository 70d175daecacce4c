package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A variant is the product with a few functions replaced by go build -overlay: for controls, which must fail, and for
// faults that no input can cause. The product itself has no code for this.
type variant struct {
	replaced map[string][]string           // file: the beginnings of the functions that are called strict… from here on
	inserted map[string][]string           // file: text, what stands in its place, …
	added    map[string]string             // file that is not there: its text
	build    func() (path string, e error) // once
}

// weak is the product without its guards: it checks only the prefix of paths and opens them unchanged, denies files by
// name only, lets anything print on standard output, and does not watch its client.
var weak = newVariant("weak", variant{
	replaced: map[string][]string{
		"system/tree/name.go":     {"func (r *Root) rel("},
		"system/tree/root.go":     {"func (r *Root) describe("},
		"system/tree/stepwise.go": {"func (r *Root) open("},
		"system/tree/denied.go": {
			"func (d denials) coversFile(", "func (d denials) identities(", "func (d folder) isStore(",
		},
		"server/stdio/lifetime.go": {"func (l Lifetime) watch("},
	},
	inserted: map[string][]string{
		"cmd/mcp-funnel/serve.go": {"stdio.Take()", "os.Stdin, os.Stdout, error(nil)"},
		"system/tree/listing.go":  {"string(name) == StoreMarker", "false"},
	},
	added: map[string]string{
		"system/tree/weak.go": `package tree

import ("fmt"; "io/fs"; "os"; "path/filepath"; "strings")

func (r *Root) rel(name string) (string, error) {
	if !filepath.IsAbs(name) { name = filepath.Join(r.dir, name) }
	clean := filepath.Clean(name)
	if !strings.HasPrefix(clean, r.dir) { return "", ErrOutside }
	rel, err := filepath.Rel(r.dir, clean)
	return filepath.ToSlash(rel), err
}

func (r *Root) open(rel string, flags int) (*os.File, error) {
	fmt.Println("a stray print")
	return os.OpenFile(filepath.Join(r.dir, rel), os.O_RDONLY|flags&^openFlags, 0)
}

func (r *Root) describe(name string, follow bool) (fs.FileInfo, error) {
	rel, err := r.relAllowed(name)
	if err != nil { return nil, r.explain("stat", name, err) }
	if follow { return os.Stat(filepath.Join(r.dir, rel)) }
	return os.Lstat(filepath.Join(r.dir, rel))
}

func (d denials) coversFile(ident) bool { return false }

func (d folder) isStore() bool { return false }

func (d denials) identities() []ident { return nil }
`,
		"server/stdio/weak.go": `package stdio

import ("context"; "os")

func (l Lifetime) watch(signals <-chan os.Signal, stopped <-chan struct{}, end context.CancelCauseFunc) {
	l.Parent, l.Out = false, nil
	l.strictwatch(signals, stopped, end)
}
`,
	},
})

// admitting is the product with a guard that admits every request, treats every body as JSON, and lets every web page
// read every answer.
var admitting = newVariant("admitting", variant{
	replaced: map[string][]string{"server/httpserver/guard.go": {"func (g *guard) check("}},
	added: map[string]string{"server/httpserver/admitting.go": `package httpserver

import ("net/http"; "github.com/mcp-funnel/mcp-funnel/observations")

func (g *guard) check(w http.ResponseWriter, r *http.Request, _ route) (caller, *refusal) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Headers", "*, Authorization")
	h.Set("Access-Control-Allow-Methods", "*")
	h.Set("Access-Control-Expose-Headers", "*")
	if r.Method == http.MethodOptions { return caller{preflight: true}, nil }
	r.Header.Set("Accept", "application/json, text/event-stream")
	if r.Method == http.MethodPost { r.Header.Set("Content-Type", "application/json") }
	return caller{owner: observations.Local}, nil
}
`},
})

// talkative is the product with a library that prints on standard output and standard error when a file is opened.
var talkative = newVariant("talkative", variant{
	replaced: map[string][]string{"system/tree/stepwise.go": {"func (r *Root) open("}},
	added: map[string]string{"system/tree/talkative.go": `package tree

import ("fmt"; "os"; "os/exec"; "sync/atomic")

var opened atomic.Int64

func (r *Root) open(rel string, flags int) (*os.File, error) {
	fmt.Println("a stray print")
	os.Stdout.WriteString("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"forged\"}\n")
	println("a stray print")
	if opened.Add(1) > 20 { return r.strictopen(rel, flags) }
	child := exec.Command("echo", "a stray child")
	child.Stdout = os.Stdout
	_ = child.Run()
	return r.strictopen(rel, flags)
}
`},
})

// greedy is the product that reads each file whole before it searches it.
var greedy = newVariant("greedy", variant{
	replaced: map[string][]string{"system/tree/stepwise.go": {"func (r *Root) open("}},
	added: map[string]string{"system/tree/greedy.go": `package tree

import ("io"; "os")

func (r *Root) open(rel string, flags int) (*os.File, error) {
	f, err := r.strictopen(rel, flags)
	if err != nil { return nil, err }
	if at, err := f.Stat(); err == nil && at.Mode().IsRegular() {
		_, _ = io.ReadAll(io.LimitReader(f, 1<<30))
		_, err = f.Seek(0, io.SeekStart)
		return f, err
	}
	return f, nil
}
`},
})

// untied is the product whose workers survive it.
var untied = newVariant("untied", variant{
	inserted: map[string][]string{"system/worker/confine_linux.go": {", Pdeathsig: syscall.SIGKILL", ""}},
})

func newVariant(name string, v variant) variant {
	v.build = sync.OnceValues(func() (string, error) { return v.compile(name) })
	return v
}

// binary builds the variant once and returns its path.
func (v variant) binary(t testing.TB) string {
	t.Helper()
	path, err := v.build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func (v variant) compile(name string) (string, error) {
	top, err := filepath.Abs("..")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(buildDir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	texts := map[string]string{}
	for file, text := range v.added {
		texts[file] = text
	}
	edit := func(file, old, new string) error {
		if texts[file] == "" {
			b, err := os.ReadFile(filepath.Join(top, file))
			if err != nil {
				return err
			}
			texts[file] = string(b)
		}
		if strings.Count(texts[file], old) != 1 {
			return fmt.Errorf("%s: %q does not stand there once: the variant %s must follow what was changed", file, old, name)
		}
		texts[file] = strings.Replace(texts[file], old, new, 1)
		return nil
	}
	for file, functions := range v.replaced {
		for _, f := range functions {
			at := strings.LastIndexByte(f, ' ') + 1
			if err := edit(file, "\n"+f, "\n"+f[:at]+"strict"+f[at:]); err != nil {
				return "", err
			}
		}
	}
	for file, pairs := range v.inserted {
		for i := 0; i < len(pairs); i += 2 {
			if err := edit(file, pairs[i], pairs[i+1]); err != nil {
				return "", err
			}
		}
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for file, text := range texts {
		path := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return "", err
		}
		overlay.Replace[filepath.Join(top, file)] = path
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o644); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "mcp-funnel")
	build := exec.Command("go", "build", "-trimpath", "-overlay", filepath.Join(dir, "overlay.json"), "-o", path, "./cmd/mcp-funnel") //nolint:noctx // once, for all tests
	build.Dir = top
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the variant %s: %w\n%s", name, err, out)
	}
	return path, nil
}
