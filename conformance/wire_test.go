package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools/jq"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// begun is the start of this run: a later time in an answer belongs to the run, an earlier one is content.
var begun = time.Now().Add(-2 * time.Second)

// TestWire plays the transcripts in testdata/wire: what a client sends, and what it gets, on the wire.
//
// A transcript is a txtar archive. Its comment tells the story. Files below root/ stand in the
// workspace; root/NAME.corpus holds the name of a corpus text, which is put at root/NAME. The file
// wire holds requests after "> " and the answers to them, indented; lines with # are remarks, and
// "! expire OBS1" and the like do something to the store in between. IDs of observations are written
// OBS1, OBS2, … in the order in which they appear, in requests too; the time of the run, durations,
// directories and what depends on their spelling are written in capitals.
//
// go test ./conformance -run TestWire -update writes the answers anew.
func TestWire(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("testdata", "wire", "*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive := expect.Value(txtar.ParseFile(name))(t)
			if len(bytes.Fields(archive.Comment)) < 8 {
				t.Error("the comment at the head must tell the story")
			}
			for i, f := range archive.Files {
				if f.Name != "wire" {
					continue
				}
				got := playWire(t, archive)
				if *update {
					archive.Files[i].Data = got
					write(t, name, string(txtar.Format(archive)))
				} else if diff := cmp.Diff(string(f.Data), string(got)); diff != "" {
					t.Errorf("the wire has changed (-want +got); if it should have, run with -update\n%s", diff)
				}
				return
			}
			t.Error("there is no file wire in it")
		})
	}
}

// wire is one transcript being played.
type wire struct {
	t      *testing.T
	conn   *server.Conn
	store  *observations.Store
	root   string
	kept   string   // where the store is
	ids    []string // of observations, as they appeared
	script string
	out    bytes.Buffer
}

func playWire(t *testing.T, archive *txtar.Archive) []byte {
	cryptotest.SetGlobalRandom(t, 1) // the same IDs each time: what they cost decides what a receipt has room for
	dir := plainDir(t)
	w := &wire{t: t, root: filepath.Join(dir, "root"), kept: filepath.Join(dir, "store")}
	var script []byte
	for _, f := range archive.Files {
		if f.Name == "wire" {
			script = f.Data
			continue
		}
		w.file(f)
	}
	w.script = string(script)
	w.open()
	lines := bufio.NewScanner(bytes.NewReader(script))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "> "):
			w.out.WriteString(line + "\n")
			w.ask(line[2:])
		case strings.HasPrefix(line, "! "):
			w.out.WriteString(line + "\n")
			w.do(strings.Fields(line[2:]))
		case strings.HasPrefix(line, "#"), line == "" && !bytes.HasSuffix(w.out.Bytes(), []byte("\n\n")):
			w.out.WriteString(line + "\n")
		}
	}
	return append(bytes.TrimSpace(w.out.Bytes()), '\n')
}

// file puts one file of the archive into the root.
func (w *wire) file(f txtar.File) {
	name, below := strings.CutPrefix(f.Name, "root/")
	if !below {
		w.t.Fatalf("the file %s is neither wire nor below root/", f.Name)
	}
	data := f.Data
	if real, is := strings.CutSuffix(name, ".corpus"); is {
		texts := map[string]func() []byte{
			"WarAndPeace": corpus.WarAndPeace, "JSON1MB": corpus.JSON1MB, "JSON1MBMinified": corpus.JSON1MBMinified,
			"PanicLog": corpus.PanicLog, "CSV20k": corpus.CSV20k, "RareKey9k": corpus.RareKey9k, "WarAndPeaceDiff": corpus.WarAndPeaceDiff,
		}
		text := texts[strings.TrimSpace(string(data))]
		if text == nil {
			w.t.Fatalf("no corpus text %q", data)
		}
		name, data = real, text()
	}
	path := filepath.Join(w.root, name)
	expect.Must(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
	expect.Must(w.t, os.WriteFile(path, data, 0o644))
	// Listings hold times, and receipts the hash of a listing.
	for ; len(path) >= len(w.root); path = filepath.Dir(path) {
		expect.Must(w.t, os.Chtimes(path, wireTime, wireTime))
	}
}

// wireTime is the modification time of everything in a transcript's workspace.
var wireTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (w *wire) open() {
	expect.Must(w.t, os.MkdirAll(w.root, 0o755))
	w.store = expect.Value(observations.OpenStore(observations.Options{Dir: w.kept, MinFree: 1}))(w.t)
	root := expect.Value(tree.Open(w.root, w.store.Dir()))(w.t)
	w.t.Cleanup(func() { _ = root.Close() })
	// In this process: the worker is another program's business, and the same answers come from both.
	catalog := server.Catalog(server.Parts{JQ: jq.Options{InProcess: true}})
	names := make([]string, len(catalog))
	for i, t := range catalog {
		names[i] = t.Name
	}
	f := expect.Value(funnel.New(funnel.Options{
		Store: w.store, Counter: tokens.New(tokens.O200k), SavedTo: true, Offered: names,
	}))(w.t)
	s := expect.Value(server.New(server.Options{
		Funnel: f, Store: w.store, Tools: catalog, Version: "test",
		Sources: func(who funnel.Session) source.Set {
			return source.Set{Roots: []*tree.Root{root}, Places: []source.NamedPlace{source.Observations(w.store, who.Owner)}}
		},
	}))(w.t)
	w.conn = s.Connect(w.t.Context())
}

var wirePlaceholder = regexp.MustCompile(`OBS([0-9]+)`)

// real replaces placeholders by IDs.
func (w *wire) real(line string) string {
	return wirePlaceholder.ReplaceAllStringFunc(line, func(p string) string {
		var n int
		if _, err := fmt.Sscanf(p, "OBS%d", &n); err != nil || n < 1 || n > len(w.ids) {
			w.t.Fatalf("%s has not appeared yet in: %s", p, line)
		}
		return w.ids[n-1]
	})
}

func (w *wire) ask(request string) {
	ctx, stop := context.WithTimeout(w.t.Context(), 5*time.Minute)
	defer stop()
	var answer json.RawMessage
	w.conn.Handle(ctx, []byte(w.real(request)), func(m []byte, last func()) error {
		if last != nil { // not a notification
			answer = bytes.TrimSpace(m)
		}
		return nil
	})
	if answer == nil {
		w.out.WriteString("  (no answer)\n")
		return
	}
	w.out.WriteString(w.readable(request, answer))
}

// do changes the store between two requests.
func (w *wire) do(words []string) {
	if len(words) == 2 && words[0] == "expire" {
		expect.Must(w.t, w.store.Remove(observations.Local, observations.ID(w.real(words[1]))))
		return
	}
	w.t.Fatalf("unknown: ! %s", strings.Join(words, " "))
}

var wireID = regexp.MustCompile(`(?:obs:|observation://|"observation_id":")([0-9a-hjkmnp-tv-z]{12})\b`)

// wireVolatile has patterns of text that differs from run to run, with their replacements. Token counts are among them:
// they depend on IDs and paths.
var wireVolatile = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\d \d\d:\d\d UTC`), "TIME"},
	{regexp.MustCompile(`_20\d{6}T\d{6}_`), "_TIME_"},
	{regexp.MustCompile(`"duration_ms":[0-9.e-]+`), `"duration_ms":MS`},
	{regexp.MustCompile(`"shown_tokens":\d+`), `"shown_tokens":TOKENS`},
	{regexp.MustCompile(`"nextCursor":"[^"]+"`), `"nextCursor":"CURSOR"`},
}

var wireStamp = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

var totalTokens = regexp.MustCompile(`"total_tokens":\d+`)

// readable formats an answer for a transcript: indented, with each line of text on a line of its own.
func (w *wire) readable(request string, answer json.RawMessage) string {
	text := string(answer)
	for _, m := range wireID.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(w.ids, m[1]) && !strings.Contains(w.script, m[1]) {
			w.ids = append(w.ids, m[1])
		}
	}
	for i, id := range w.ids {
		text = strings.ReplaceAll(text, id, fmt.Sprintf("OBS%d", i+1))
	}
	text = strings.ReplaceAll(text, w.store.Dir(), "STORE")
	text = strings.ReplaceAll(text, w.root, "ROOT")
	text = wireStamp.ReplaceAllStringFunc(text, func(stamp string) string {
		if at, err := time.Parse(time.RFC3339, stamp); err == nil && at.After(begun) && time.Since(at) > -2*time.Second {
			return "TIME" // not a time in a text
		}
		return stamp
	})
	for _, v := range wireVolatile {
		text = v.what.ReplaceAllString(text, v.as)
	}
	if strings.Contains(request, `"path":"obs:`) { // what is listed are IDs
		text = totalTokens.ReplaceAllString(text, `"total_tokens":TOKENS`)
	}
	// Numbers were made words above: they are quoted while the text is indented.
	text = strings.NewReplacer(`_ms":MS`, `_ms":"=MS"`, `_tokens":TOKENS`, `_tokens":"=TOKENS"`).Replace(text)
	var b bytes.Buffer
	expect.Must(w.t, json.Indent(&b, []byte(text), "  ", "  "), "the answer is not JSON: %s", text)
	text = strings.NewReplacer(`"=MS"`, "MS", `"=TOKENS"`, "TOKENS").Replace(b.String())
	var out strings.Builder
	for line := range strings.Lines("  " + text + "\n") {
		out.WriteString(wireBroken(line))
	}
	return out.String()
}

// wireBroken goes to a new line after each escaped newline of a string, deeper by four.
func wireBroken(line string) string {
	if !strings.Contains(line, `\n`) {
		return line
	}
	indent := "\n" + line[:len(line)-len(strings.TrimLeft(line, " "))] + "    "
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		b.WriteByte(line[i])
		if line[i] == '\\' && i+1 < len(line) {
			i++
			b.WriteByte(line[i])
			if line[i] == 'n' {
				b.WriteString(indent)
			}
		}
	}
	return b.String()
}
