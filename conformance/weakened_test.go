package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// A variant is a weakened product, by the name of its program: for controls, which must fail, and for faults that no input
// can cause. All variants are one program that is built with go build -overlay, and acts by the name that it is called
// by. The product itself has no code for this.
type variant string

const (
	// weak is without its guards: it checks only the prefix of paths and opens them unchanged, to read and to write,
	// denies files by name only, lets anything print on standard output, and does not watch its client.
	weak variant = "weak"
	// torn writes files in their place, in two steps and without a lock.
	torn variant = "torn"
	// admitting admits every request, treats every body as JSON, and lets every web page read every answer.
	admitting variant = "admitting"
	// talkative has a library that prints on standard output and standard error when a file is opened.
	talkative variant = "talkative"
	// greedy reads each file whole before it searches it.
	greedy variant = "greedy"
	// untied has workers that survive it.
	untied variant = "untied"
	// hasty acknowledges an observation before it is renamed into place.
	hasty variant = "hasty"
)

// replaced maps a file to the beginnings of the functions that are called strict… from here on.
var replaced = map[string][]string{
	"system/tree/name.go":            {"func (r *Root) rel("},
	"system/tree/root.go":            {"func (r *Root) describe("},
	"system/tree/stepwise.go":        {"func (r *Root) open("},
	"system/tree/denied.go":          {"func (d denials) coversFile(", "func (d denials) identities(", "func (d folder) isStore("},
	"system/tree/write.go":           {"func (r *Root) Parent("},
	"tools/write/write.go":           {"func (w *Writer) put(", "func (c *call) lockAll("},
	"server/stdio/lifetime.go":       {"func (l Lifetime) watch("},
	"server/httpserver/guard.go":     {"func (g *guard) check("},
	"observations/files/writer.go":   {"func (w *Writer) renameIntoPlace("},
	"system/worker/confine_linux.go": {"func attributes("},
	"server/stdio/process_unix.go":   {"func Take("},
}

// inserted maps a file to a text and what stands in its place.
var inserted = map[string][2]string{
	"system/tree/listing.go": {"string(name) == StoreMarker", `weakness != "weak" && string(name) == StoreMarker`},
}

// weakness is the name that the program is called by: each weakened package has it.
const weakness = `
import "path/filepath"

var weakness = func() string { path, _ := os.Executable(); return filepath.Base(path) }()
`

// added maps a file that is not there to its text: its imports, and what follows [weakness].
var added = map[string][2]string{
	"system/tree/weak.go": {`package tree

import ("fmt"; "io"; "io/fs"; "os"; "os/exec"; "strings"; "sync/atomic")
`, `
func (r *Root) rel(name string) (string, error) {
	if weakness != "weak" { return r.strictrel(name) }
	if !filepath.IsAbs(name) { name = filepath.Join(r.dir, name) }
	clean := filepath.Clean(name)
	if !strings.HasPrefix(clean, r.dir) { return "", ErrOutside }
	rel, err := filepath.Rel(r.dir, clean)
	return filepath.ToSlash(rel), err
}

var opened atomic.Int64

func (r *Root) open(rel string, flags int) (*os.File, error) {
	switch weakness {
	case "weak":
		fmt.Println("a stray print")
		return os.OpenFile(filepath.Join(r.dir, rel), os.O_RDONLY|flags&^openFlags, 0)
	case "talkative":
		fmt.Println("a stray print")
		os.Stdout.WriteString("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"forged\"}\n")
		println("a stray print")
		if opened.Add(1) > 20 { break }
		child := exec.Command("echo", "a stray child")
		child.Stdout = os.Stdout
		_ = child.Run()
	case "greedy":
		f, err := r.strictopen(rel, flags)
		if err != nil { return nil, err }
		if at, err := f.Stat(); err == nil && at.Mode().IsRegular() {
			_, _ = io.ReadAll(io.LimitReader(f, 1<<30))
			_, err = f.Seek(0, io.SeekStart)
			return f, err
		}
		return f, nil
	}
	return r.strictopen(rel, flags)
}

func (r *Root) describe(name string, follow bool) (fs.FileInfo, error) {
	if weakness != "weak" { return r.strictdescribe(name, follow) }
	rel, err := r.relAllowed(name)
	if err != nil { return nil, r.explain("stat", name, err) }
	if follow { return os.Stat(filepath.Join(r.dir, rel)) }
	return os.Lstat(filepath.Join(r.dir, rel))
}

func (r *Root) Parent(name string, made func(string)) (*Root, string, error) {
	if weakness != "weak" { return r.strictParent(name, made) }
	rel, err := r.relAllowed(name)
	if err != nil { return nil, "", err }
	path := filepath.Join(r.dir, rel)
	if made != nil { _ = os.MkdirAll(filepath.Dir(path), 0o755) }
	dir, err := openRoot(filepath.Dir(path), nil)
	return dir, filepath.Base(path), err
}

func (d denials) coversFile(i ident) bool { return weakness != "weak" && d.strictcoversFile(i) }

func (d folder) isStore() bool { return weakness != "weak" && d.strictisStore() }

func (d denials) identities() []ident {
	if weakness == "weak" { return nil }
	return d.strictidentities()
}
`},
	"server/stdio/weak.go": {`package stdio

import ("context"; "os")
`, `
func (l Lifetime) watch(signals <-chan os.Signal, stopped <-chan struct{}, end context.CancelCauseFunc) {
	if weakness == "weak" { l.Parent, l.Out = false, nil }
	l.strictwatch(signals, stopped, end)
}

func Take() (in, out *os.File, err error) {
	if weakness == "weak" { return os.Stdin, os.Stdout, nil }
	return strictTake()
}
`},
	"server/httpserver/weak.go": {`package httpserver

import ("net/http"; "os"; "github.com/mcp-funnel/mcp-funnel/observations")
`, `
func (g *guard) check(w http.ResponseWriter, r *http.Request, to route) (caller, *refusal) {
	if weakness != "admitting" { return g.strictcheck(w, r, to) }
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
	"tools/write/weak.go": {`package write

import ("context"; "crypto/sha256"; "encoding/hex"; "io"; "os"; "time")
`, `
func (w *Writer) put(
	ctx context.Context, t *target, old *before, to newContent, j *journal, keep func(after string) error,
) error {
	if weakness != "torn" { return w.strictput(ctx, t, old, to, j, keep) }
	text, err := io.ReadAll(to.text)
	sum := sha256.Sum256(text)
	if err == nil { err = keep(hex.EncodeToString(sum[:])) }
	if err == nil { err = os.WriteFile(t.path, text[:len(text)/2], 0o666) }
	time.Sleep(5 * time.Millisecond)
	if err == nil { err = os.WriteFile(t.path, text, 0o666) }
	return err
}

func (c *call) lockAll(ctx context.Context) (func(), error) {
	if weakness == "torn" { return func() {}, nil }
	return c.strictlockAll(ctx)
}
`},
	"system/worker/weak.go": {`package worker

import ("os"; "syscall")
`, `
func attributes(isolated bool) *syscall.SysProcAttr {
	a := strictattributes(isolated)
	if weakness == "untied" { a.Pdeathsig = 0 }
	return a
}
`},
	"observations/files/weak.go": {`package files

import ("os"; "time")
`, `
func (w *Writer) renameIntoPlace(data string, lines, side []byte, used time.Time) error {
	if weakness != "hasty" { return w.strictrenameIntoPlace(data, lines, side, used) }
	go func() {
		time.Sleep(time.Minute)
		_ = w.strictrenameIntoPlace(data, lines, side, used)
	}()
	return nil
}
`},
}

// binary returns the path of the variant; all are built once.
func (v variant) binary(t testing.TB) string {
	t.Helper()
	weakened := expect.Value(buildWeakened())(t)
	path := filepath.Join(filepath.Dir(weakened), string(v))
	if err := os.Link(weakened, path); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	return path
}

var buildWeakened = sync.OnceValues(compileWeakened)

func compileWeakened() (string, error) {
	top, err := filepath.Abs("..")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(buildDir, "weakened")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	texts := map[string]string{}
	for file, text := range added {
		texts[file] = text[0] + weakness + text[1]
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
			return fmt.Errorf("%s: %q does not stand there once: the variants must follow what was changed", file, old)
		}
		texts[file] = strings.Replace(texts[file], old, new, 1)
		return nil
	}
	for file, functions := range replaced {
		for _, f := range functions {
			at := strings.LastIndexByte(f, ' ') + 1
			if err := edit(file, "\n"+f, "\n"+f[:at]+"strict"+f[at:]); err != nil {
				return "", err
			}
		}
	}
	for file, pair := range inserted {
		if err := edit(file, pair[0], pair[1]); err != nil {
			return "", err
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
	path := filepath.Join(dir, "all")
	build := exec.CommandContext(context.Background(),
		"go", "build", "-trimpath", "-ldflags=-w", "-overlay", filepath.Join(dir, "overlay.json"), "-o", path, "./cmd/mcp-funnel")
	build.Dir = top
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the variants: %w\n%s", err, out)
	}
	return path, nil
}
