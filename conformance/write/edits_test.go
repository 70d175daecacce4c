package write_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// edited is a random file, the edits that one call makes of it, and what the oracle says of them (see oracle.py).
type edited struct {
	Raw   []byte `json:"raw"`
	BOM   []byte `json:"bom"`
	Codec string `json:"codec"`
	Edits []args `json:"edits"`

	want struct {
		Refused string
		Edit    int
		Lines   []int // of the places of old
		Raw     []byte
		Places  int
		Hash    string
		Plain   []string // both texts, if all line ends are alike in each
	}
}

// codecs are the encodings of the files, as Python names them.
var codecs = []struct {
	name, bom string
	encoding.Encoding
}{
	{"utf-8", "", encoding.Nop}, {"utf-8", "", encoding.Nop}, {"utf-8", "\xef\xbb\xbf", encoding.Nop},
	{"utf-16-le", "\xff\xfe", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)},
	{"utf-16-be", "\xfe\xff", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
	{"cp1252", "", charmap.Windows1252},
}

// Lines repeat, so that texts are in a file several times, and overlap.
var (
	westernLines = []string{
		"", "a", "aa", "aaa", "}", "  }", "\t}", "return nil", "foo foo", "foo", "Größe über alles", "naïve café",
	}
	anyLines   = append(slices.Clone(westernLines), "日本 語", "😀 smile", "e\u0301", "ж", "\u00a0x")
	unlikeText = "zzz not there"
)

const germanProse = "Müller wußte nicht, daß die Größe des Gebäudes für die Bürger der Stadt noch wichtiger würde."

// newEdited returns a random case.
func newEdited(rng *rand.Rand) *edited {
	pick := func(of []string) string { return of[rng.IntN(len(of))] }
	one := codecs[rng.IntN(len(codecs))]
	e := &edited{Codec: one.name, BOM: []byte(one.bom)}
	lines, from := anyLines, []string{}
	if one.name == "cp1252" {
		lines, from = westernLines, []string{germanProse}
	}
	for range rng.IntN(14) {
		from = append(from, pick(lines))
	}
	text := strings.Join(from, "\n")
	if rng.IntN(3) > 0 {
		text += "\n"
	}
	if rng.IntN(4) == 0 {
		lines = anyLines // the encoding may lack a character
	}
	for range 1 + rng.IntN(2)*rng.IntN(3) {
		e.Edits = append(e.Edits, newEdit(rng, text, func() string { return pick(lines) }))
	}
	switch rng.IntN(4) {
	case 0:
		text = strings.ReplaceAll(text, "\n", "\r\n")
	case 1:
		var mixed strings.Builder
		for _, r := range text {
			if r == '\n' && rng.IntN(2) == 0 {
				mixed.WriteByte('\r')
			}
			mixed.WriteRune(r)
		}
		text = mixed.String()
	}
	raw, err := one.NewEncoder().String(text)
	if err != nil {
		panic(err) // westernLines are in it
	}
	e.Raw = append(e.BOM, raw...)
	return e
}

// newEdit returns a random edit of a text whose lines end in \n: mostly of what is there once.
func newEdit(rng *rand.Rand, text string, line func() string) args {
	pieceOf := func() string {
		runes := []rune(text)
		from := rng.IntN(len(runes) + 1)
		return string(runes[from:min(len(runes), from+1+rng.IntN(24))])
	}
	old, by := "", ""
	switch kind := rng.IntN(24); {
	case kind < 13:
		old = pieceOf()
	case kind < 17: // whole lines
		all := strings.SplitAfter(text, "\n")
		from := rng.IntN(len(all))
		old = strings.Join(all[from:min(len(all), from+1+rng.IntN(3))], "")
	case kind == 17:
		old = text
	case kind == 18: // the start and the end
		old = text[:min(len(text), strings.IndexByte(text+"\n", '\n')+1)]
	case kind == 19:
		old = text[strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n')+1:]
	case kind == 20:
		old = " " + pieceOf() + unlikeText
	default:
		old = line()
	}
	switch kind := rng.IntN(8); {
	case kind < 3:
		by = line()
	case kind == 3:
		by = old + "\n" + line()
	case kind == 4:
		by = line() + "\n" + line() + "\n"
	case kind == 5:
		by = strings.ToUpper(old)
	case kind == 6:
		by = pieceOf()
	}
	if old == "" && rng.IntN(8) > 0 {
		old = "foo"
	}
	if rng.IntN(12) == 0 && !strings.HasPrefix(old, "\n") {
		old = strings.ReplaceAll(old, "\n", "\r\n")
	}
	if rng.IntN(12) == 0 {
		by = strings.ReplaceAll(by, "\n", "\r\n")
	}
	e := args{"old": old, "new": by}
	if rng.IntN(3) == 0 {
		e["all"] = true
	}
	return e
}

// askOracle has Python say what is to be made of all cases.
func askOracle(t *testing.T, all []*edited) {
	t.Helper()
	var in, errs bytes.Buffer
	for _, e := range all {
		in.Write(append(expect.Value(json.Marshal(e))(t), '\n'))
	}
	cmd := exec.CommandContext(t.Context(), peer.Find(t, "python3"), "oracle.py")
	cmd.Stdin, cmd.Stderr = &in, &errs
	out := expect.Value(cmd.Output())(t, errs.String())
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for _, e := range all {
		if !lines.Scan() {
			t.Fatalf("the oracle says too little: %s", errs.String())
		}
		expect.Must(t, json.Unmarshal(lines.Bytes(), &e.want), lines.Text())
	}
}

// TestEditsAgreeWithPython makes random edits of random files. Each must leave what Python's str.replace makes of the
// text, in the file's encoding and with its line ends, mode and last line end; or it must be refused as Python's
// str.count says, with the file as it was, byte for byte.
func TestEditsAgreeWithPython(t *testing.T) {
	t.Parallel()
	promise.WithoutRace(t)
	seed := promise.Size(uint64(1), rand.Uint64()) // the small form meets all outcomes
	rng := rand.New(rand.NewPCG(seed, 1))
	all := make([]*edited, promise.Size(400, 20_000))
	for i := range all {
		all[i] = newEdited(rng)
	}
	askOracle(t, all)
	c := newCaller(t)
	said, diffs := map[string]int{}, &patches{t: t, dir: t.TempDir()}
	for i, e := range all {
		why, diff := e.try(c, rng)
		if said[why]++; t.Failed() {
			t.Fatalf("case %d, seed %d", i, seed)
		}
		if diff != "" {
			diffs.add(e.want.Plain, diff)
		}
	}
	t.Logf("seed %d: %v; %d diffs", seed, said, len(diffs.want))
	for _, why := range []string{"done", "missing", "several", "pointless", "encoding", "dry run", "expect"} {
		if said[why] == 0 {
			t.Errorf("there was no case %q", why)
		}
	}
	if said["uncertain"] > len(all)/50 {
		t.Errorf("the encoding of %d files was uncertain", said["uncertain"])
	}
	diffs.check()
}

var (
	namedLines  = regexp.MustCompile(`at lines ([0-9, ]+)`)
	namedPlaces = regexp.MustCompile(`: (\d+) places? replaced`)
	namedHash   = regexp.MustCompile(`hash ([0-9a-f]{8})`)
)

// try makes the edits of a case in one call, and checks what is left. It returns what became of it, and the diff shown,
// if that shows two texts whose line ends are alike.
func (e *edited) try(c *caller, rng *rand.Rand) (why, diff string) {
	c.t.Helper()
	const name = "file.txt"
	path := filepath.Join(c.dir, name)
	mode := []os.FileMode{0o600, 0o640, 0o644, 0o755}[rng.IntN(4)]
	expect.Must(c.t, os.WriteFile(path, e.Raw, 0o600))
	expect.Must(c.t, os.Chmod(path, mode))
	long := time.Now().Add(-time.Hour)
	expect.Must(c.t, os.Chtimes(path, long, long))
	before := expect.Value(os.Stat(path))(c.t)
	of := args{"path": name, "edits": e.Edits, "keep": rng.IntN(8) == 0}
	refused := e.want.Refused
	if refused == "" {
		switch rng.IntN(8) {
		case 0:
			refused, of["expect"] = "expect", "0123abcd"
		case 1:
			refused, of["dry_run"] = "dry run", true
		}
	}
	text, failed := c.call("edit", of)
	after := expect.Value(os.Stat(path))(c.t)
	now := expect.Value(os.ReadFile(path))(c.t)
	report := func(format string, about ...any) {
		c.t.Errorf("%s: %q\nedits %q\nanswer: %s\nwant %q\ngot  %q", fmt.Sprintf(format, about...), e.Raw, e.Edits, text,
			e.want.Raw, now)
	}
	if names := expect.Value(os.ReadDir(c.dir))(c.t); len(names) != 1 {
		report("files are left: %v", names)
	}
	if after.Mode() != mode {
		report("its mode was %v, and is %v", mode, after.Mode())
	}
	if failed && e.Codec == "cp1252" && strings.Contains(text,
		"encoding") && refused != "encoding" && refused != "pointless" {
		refused = "uncertain"
	}
	if refused != "" {
		if !bytes.Equal(now, e.Raw) || !os.SameFile(before, after) || !after.ModTime().Equal(long) {
			report("%s: the file was changed", refused)
		}
		if failed != (refused != "dry run") {
			report("%s: failed=%t", refused, failed)
		}
		e.checkRefusal(refused, text, report)
		return refused, ""
	}
	if failed || !bytes.Equal(now, e.want.Raw) {
		report("failed=%t", failed)
	}
	if time.Since(after.ModTime()) > time.Minute || os.SameFile(before, after) {
		report("it was written in place, or its time is %v", after.ModTime())
	}
	if m := namedPlaces.FindStringSubmatch(text); m == nil || m[1] != strconv.Itoa(e.want.Places) {
		report("want %d places", e.want.Places)
	}
	if m := namedHash.FindStringSubmatch(text); m == nil || m[1] != e.want.Hash {
		report("want hash %s", e.want.Hash)
	}
	first, diff, _ := strings.Cut(text, "\n")
	same := bytes.Equal(e.Raw, e.want.Raw)
	if same != strings.Contains(first, "nothing differs") || same != (diff == "") {
		report("the file is the same: %t", same)
	}
	if e.want.Plain == nil || strings.ContainsFunc(e.want.Plain[0]+e.want.Plain[1], changesShape) {
		diff = ""
	}
	return "done", diff
}

// changesShape reports whether an answer shows a character in another way than it is in the file.
func changesShape(r rune) bool { return r == '\u00a0' || r == '\r' || r == utf8.RuneError }

// checkRefusal checks that an error says what the oracle says.
func (e *edited) checkRefusal(refused, text string, report func(string, ...any)) {
	says := map[string]string{
		"missing": "old is not in the file", "encoding": "lacks a character", "expect": "it has changed: its hash is",
		"dry run": "nothing is written (dry_run)", "uncertain": "", "pointless": "",
		"several": fmt.Sprintf("old is in the file %d times, at lines", len(e.want.Lines)),
	}[refused]
	if !strings.Contains(text, says) {
		report("the error of %s does not say %q", refused, says)
	}
	if which := fmt.Sprintf("edits[%d]", e.want.Edit); len(e.Edits) > 1 && says != "" && e.want.Refused != "" &&
		!strings.Contains(text, which) {
		report("the error does not name %s", which)
	}
	if refused != "several" {
		return
	}
	var want []string
	for _, line := range e.want.Lines[:min(len(e.want.Lines), 10)] {
		want = append(want, strconv.Itoa(line))
	}
	if m := namedLines.FindStringSubmatch(text); m == nil || strings.Trim(m[1], ", ") != strings.Join(want, ", ") {
		report("want lines %v", want)
	}
}

// patches are diffs that must make one text of another.
type patches struct {
	t    *testing.T
	dir  string
	all  strings.Builder
	want []string
}

func (p *patches) add(plain []string, diff string) {
	name := strconv.Itoa(len(p.want))
	expect.Must(p.t, os.WriteFile(filepath.Join(p.dir, name), []byte(plain[0]), 0o600))
	p.want = append(p.want, plain[1])
	fmt.Fprintf(&p.all, "--- %s\n+++ %[1]s\n%s\n", name, strings.TrimSuffix(diff, "\n"))
}

// check applies all diffs.
func (p *patches) check() {
	if len(p.want) == 0 {
		p.t.Error("no diff was shown")
	}
	cmd := exec.CommandContext(p.t.Context(), peer.Find(p.t, "patch"), "-p0", "-s", "-f", "--no-backup-if-mismatch", "-F0")
	cmd.Dir, cmd.Stdin = p.dir, strings.NewReader(p.all.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Errorf("%v: %s", err, cmp.Or(string(out), "(nothing)"))
	}
	for i, want := range p.want {
		got, err := os.ReadFile(filepath.Join(p.dir, strconv.Itoa(i)))
		if err != nil && want == "" { // patch removes a file of which nothing is left
			continue
		}
		expect.Equal(p.t, string(got), want, "diff %d", i)
	}
}

// TestDiffsOfLongLines edits files whose lines around the change are long: the diff has lines as they are, none is cut.
func TestDiffsOfLongLines(t *testing.T) {
	t.Parallel()
	c := newCaller(t)
	diffs := &patches{t: t, dir: t.TempDir()}
	for _, wide := range []int{500, 1500, 7500} {
		var before strings.Builder
		for i := range 30 {
			fmt.Fprintf(&before, "%d %s\n", i, strings.Repeat("x", wide))
		}
		c.file("f", before.String())
		var whole bytes.Buffer
		answer, failed := c.callTo(&whole, "edit", args{"path": "f", "edits": one("\n15 x", "\nmore\n15 y")})
		expect.Equal(t, failed, false, answer)
		_, diff, _ := strings.Cut(whole.String(), "\n")
		diffs.add([]string{before.String(), c.text("f")}, diff)
	}
	diffs.check()
}
