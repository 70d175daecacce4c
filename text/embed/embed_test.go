package embed

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

var update = flag.Bool("update", false, "rewrite "+golden)

const golden = "testdata/pieces.ndjson.zst"

func TestTable(t *testing.T) {
	const printed = "d189903d7f12d22e4fc79f321a9cac0eb2b24e21dda1da607b11fb147a9e0d42" // by scripts/embedding/table.py
	expect.Equal(t, fmt.Sprintf("%x", sha256.Sum256(packed)), printed)
	table := load()
	expect.Equal(t, len(table.scales)*Dimensions, len(table.rows))
	if most := slices.Max(table.scales); most > maxScale {
		t.Errorf("a scale is %d: the sums of a mean may overflow", most)
	}
	expect.Equal(t, table.words["[UNK]"], unknown)
	for _, piece := range []string{"[UNK]", "[CLS]", "[unused7]", "и", "の", "中"} {
		expect.Equal(t, table.scales[table.words[piece]], 0, piece)
	}
}

// row is a text with its first MaxPieces pieces by the original tokenizer, and the cosine of its vector and that of the
// row before by numpy.
type row struct {
	Text   string
	Pieces []uint16
	Cosine float64
}

func (r row) check(t *testing.T, before []float32) []float32 {
	t.Helper()
	expect.EqualList(t, load().pieces(r.Text), r.Pieces, fmt.Sprintf("%+q", r.Text))
	v := Vector(r.Text)
	var cosine float64
	for i, c := range before {
		cosine += float64(c * v[i])
	}
	if math.Abs(cosine-r.Cosine) > 0.001 {
		t.Errorf("the cosine of %+q and the text before is %.4f, by numpy it is %.4f", r.Text, cosine, r.Cosine)
	}
	return v
}

func TestGolden(t *testing.T) {
	d := expect.Value(zstd.NewReader(nil))(t)
	defer d.Close()
	b := expect.Value(d.DecodeAll(expect.Value(os.ReadFile(golden))(t), nil))(t)
	var before []float32
	n := 0
	for line := range bytes.Lines(b) {
		var r row
		expect.Must(t, json.Unmarshal(line, &r))
		before = r.check(t, before)
		n++
	}
	expect.Equal(t, n, inGolden)
}

const inGolden = 400

// TestOriginal compares with the original tokenizer on 20,000 texts, or 3,000 in ordinary runs, in a Python (PYTHON, or
// python3) that has the packages of scripts/embedding/requirements.txt.
func TestOriginal(t *testing.T) {
	const folder = "../../scripts/embedding"
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	const needed = `import numpy, safetensors, scipy, tokenizers, zstandard
from importlib.util import find_spec
find_spec("all_minilm_l6_v2").name`
	if exec.CommandContext(t.Context(), python, "-c", needed).Run() != nil {
		t.Skip("Python lacks packages of " + folder + "/requirements.txt: comparison with the original tokenizer skipped")
	}
	n := 3_000
	if promise.Full() {
		n = 20_000
	}
	texts := texts(t, n)
	var in bytes.Buffer
	for _, text := range texts {
		expect.Must(t, json.NewEncoder(&in).Encode(text))
	}
	cmd := exec.CommandContext(t.Context(), python, "-B", filepath.Join(folder, "oracle.py"))
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out := expect.Value(cmd.Output())(t)
	var before []float32
	var kept []byte
	i, pieces := 0, 0
	for line := range bytes.Lines(out) {
		r := row{Text: texts[i]}
		expect.Must(t, json.Unmarshal(line, &r))
		before = r.check(t, before)
		if i++; i <= inGolden {
			kept = append(append(kept, expect.Value(json.Marshal(r))(t)...), '\n')
		}
		pieces += len(r.Pieces)
	}
	expect.Equal(t, i, len(texts))
	t.Logf("%d texts, %d pieces", i, pieces)
	if *update {
		e := expect.Value(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression)))(t)
		expect.Must(t, os.WriteFile(golden, e.EncodeAll(kept, nil), 0o600))
	}
}

// blocks are ranges of characters of Unicode 8, whose categories the original tokenizer has. It takes newer
// characters for letters, which makes no difference to a vector: none is in the vocabulary.
var blocks = [][2]rune{
	{0, 0x7f}, {0, 0x7f}, {0x80, 0xff}, {0x100, 0x24f}, {0x250, 0x2af}, {0x300, 0x34e}, {0x370, 0x3ff}, {0x400, 0x4ff},
	{0x531, 0x58a}, {0x5d0, 0x5ea}, {0x620, 0x669}, {0x904, 0x939}, {0x93e, 0x94d}, {0xe01, 0xe3a}, {0x10d0, 0x10ff},
	{0x1100, 0x11ff}, {0x1e00, 0x1fff}, {0x2000, 0x2064}, {0x2070, 0x209c}, {0x20a0, 0x20bd}, {0x2100, 0x23fa},
	{0x2500, 0x27bf}, {0x2e80, 0x2fd5}, {0x3000, 0x30ff}, {0x3400, 0x4db5}, {0x4e00, 0x9fcc}, {0xac00, 0xd7a3},
	{0xe000, 0xe010}, {0xf900, 0xfaff}, {0xfb00, 0xfb4f}, {0xfe00, 0xfe6b}, {0xfeff, 0xfffd}, {0x1d400, 0x1d7ff},
	{0x1f300, 0x1f6ff}, {0x20000, 0x2a6d6}, {0x2f800, 0x2fa1d}, {0xe0001, 0xe007f},
}

var edges = []string{
	"", " ", "\x00", "\u0301", "e\u0301", "É", "İSTANBUL", "ΣΑΣ", "ǅ", "ß ẞ", "don't", "well-known", "##ing", "# #", "[MASK] [UNK]",
	"`a`", "≠ ≮", "a\u200db", "a\u00adb", "a\ufeffb", "\ufffd", "a\u3000b", "a\u0085b", "a\u2028b", "a\vb", "a\x7fb", "x\u0338",
	"한국어", "ㅎ", "ガ", "ｶﾞ", "Tiếng Việt", "naïve café", "🇩🇪👩‍👩‍👧‍👦", "①½²", "ﬁﬂ", "中文abc日本", "\u037e", "\u1fef", "\u212a",
	"\uff36\uffab\u065a\u064b", // norm.Iter panics on it
	strings.Repeat("a", 100), strings.Repeat("a", 101), strings.Repeat("ä", 100), strings.Repeat("ä", 101),
	strings.Repeat("한", 34), "x" + strings.Repeat("\u0301", 200), strings.Repeat("the ", 127) + "xqzt ab",
}

// texts returns n texts: edge cases, questions, and passages of manuals, source and prose with characters of blocks.
func texts(t testing.TB, n int) []string {
	t.Helper()
	all := slices.Clone(edges)
	for _, q := range corpus.Questions(t) {
		all = append(all, q.Question)
	}
	dir := t.TempDir()
	var prose []string
	for _, tree := range corpus.QuestionTrees(t, dir) {
		expect.Must(t, filepath.WalkDir(filepath.Join(dir, tree), func(path string, e os.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				b := expect.Value(os.ReadFile(path))(t)
				prose = append(prose, strings.ToValidUTF8(string(b), "\ufffd"))
			}
			return err
		}))
	}
	prose = append(prose, string(corpus.CJK()), string(corpus.WarAndPeace()[:1<<20]))
	r := rand.New(rand.NewPCG(1, 2))
	for len(all) < n {
		var b strings.Builder
		if r.IntN(2) == 0 {
			of := prose[r.IntN(len(prose))]
			from := r.IntN(len(of))
			b.WriteString(strings.ToValidUTF8(of[from:min(len(of), from+20+r.IntN(480))], ""))
		}
		for range r.IntN(20) {
			block := blocks[r.IntN(len(blocks))]
			for range 1 + r.IntN(6) {
				b.WriteRune(block[0] + r.Int32N(block[1]-block[0]+1))
			}
			b.WriteString([]string{"", " ", "the ", "Über"}[r.IntN(4)])
		}
		all = append(all, b.String())
	}
	return all
}

func TestKnown(t *testing.T) {
	below, all := map[string]int{}, map[string]int{}
	for _, q := range corpus.Questions(t) {
		all[q.Lang]++
		if Known(q.Question) < 0.5 {
			below[q.Lang]++
		}
	}
	if below["en"] > 0 || below["de"] < all["de"] || below["fr"] < all["fr"]-1 {
		t.Errorf("questions with less than half known: %v of %v", below, all)
	}
	for text, want := range map[string]float64{
		"": 0, "42 !": 0,
		"Привет, мир": 0, "日本の文字": 0, "Где файл garbage?": 1 / 3., "the collector": 1, "“Where is it?”": 1,
		strings.Repeat("a", 101): 0, "der die das": 1 / 3.,
	} {
		if got := Known(text); math.Abs(got-want) > 1e-9 {
			t.Errorf("Known(%q) is %v, not %v", text, got, want)
		}
	}
}

func TestMeaning(t *testing.T) {
	near := func(a, b string) float64 { return NewQuery(Vector(a)).Cosine(Packed(b)) }
	const question = "When does the garbage collector start a cycle?"
	right := near(question, "The pacer decides at which heap size the next collection begins.")
	wrong := near(question, "Each invoice must be paid within thirty days of its delivery.")
	if right < wrong+0.1 {
		t.Errorf("the right passage has %.2f, the wrong one %.2f", right, wrong)
	}
}

func FuzzVector(f *testing.F) {
	for _, text := range edges {
		f.Add(text)
	}
	f.Add("\xff\xfe" + strings.Repeat("x\xcc\x81", 300))
	f.Fuzz(func(t *testing.T, text string) {
		v := Vector(text)
		var square float64
		for _, c := range v {
			square += float64(c) * float64(c)
		}
		if !(square == 0 || math.Abs(square-1) < 1e-4) {
			t.Errorf("the vector has length %v", math.Sqrt(square))
		}
		if got := NewQuery(v).Cosine(Packed(text)); math.Abs(got-square) > 0.02 {
			t.Errorf("the cosine with itself is %v", got)
		}
		if k := Known(text); !(k >= 0 && k <= 1) {
			t.Errorf("known: %v", k)
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		unpack()
	}
}

func BenchmarkVector(b *testing.B) {
	const text = `A Writer buffers what is written to it, and writes it to the underlying file when the buffer is full. ` +
		`After an error no more data is accepted, and all later writes return the error. After all data has been ` +
		`written, the client should call Flush to guarantee that everything has been forwarded. func (b *Writer) ` +
		`Flush() error { if b.err != nil { return b.err }; if b.n == 0 { return nil }; n, err := b.wr.Write(b.buf[0:b.n]) ` +
		`if n < b.n && err == nil { err = io.ErrShortWrite }`
	load()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Vector(text)
	}
}

// 50,000 packed vectors are compared at a time.
func BenchmarkCosine(b *testing.B) {
	one, q := Packed("the buffer is full"), NewQuery(Vector("writes to a file"))
	all := bytes.Repeat(one, 50_000)
	for b.Loop() {
		for i := 0; i < len(all); i += Dimensions {
			q.Cosine(all[i:])
		}
	}
}
