//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/tokens"
)

const pkoukk = "github.com/pkoukk/tiktoken-go"

func latencyRows(b *bench) []row {
	return []row{
		{family: "latency", name: "1 MB JSON added: kept, hashed, counted, exact tokens", beside: pkoukk, bar: 20, beyond: 524, unit: "ms", setup: b.adding(1 << 20)},
		{family: "latency", name: "5 MB JSON added: the same", beside: pkoukk, bar: 90, beyond: 5 * 524, unit: "ms", setup: b.adding(5 << 20)},
	}
}

// adding compares a tool call with tiktoken-go, which only counts the tokens.
func (b *bench) adding(size int64) setup {
	return func(context.Context) (*duel, error) {
		path, err := b.hits(b.scaled(size))
		if err != nil {
			return nil, err
		}
		return b.jobs("latency", "count-peer", path, float64(b.scaled(size))/(1<<20))
	}
}

func (b *bench) jobs(ours, peer, path string, work float64) (*duel, error) {
	a, err := b.job(ours, path)
	if err != nil {
		return nil, err
	}
	c, err := b.job(peer, path)
	return &duel{ours: a, peer: c, same: sameJob, work: work}, err
}

// job returns a command that runs a job in a process of its own.
func (b *bench) job(name, path string) (*command, error) {
	self, err := os.Executable()
	return &command{
		b: b, words: []string{self, "job", name, path}, env: []string{"PEERS_WORK=" + b.work}, took: tookJob,
	}, err
}

const textSize = 500_000

// writeText writes a text of one class (JSON, code, CJK …) to count tokens in.
func (b *bench) writeText(w io.Writer, class string, size int64) error {
	var text []byte
	switch class {
	case "JSON":
		return writeHits(w, size, 5)
	case "log":
		return writeLog(w, size, 5)
	case "code":
		return writeCode(w, filepath.Join(b.goroot, "src"), size, 0)
	case "prose":
		text = corpus.WarAndPeace()
	case "diff":
		text = corpus.WarAndPeaceDiff()
	case "CJK": // ToValidUTF8 removes a truncated rune at the end
		text = bytes.ToValidUTF8(bytes.Repeat(corpus.CJK(), int(size)/len(corpus.CJK())+1)[:size], nil)
		text = append(text, bytes.Repeat([]byte(" "), int(size)-len(text))...)
	case "base64":
		text = base64Lines(size)
	case "blanks":
		text = blanks(size)
	}
	for ; size > 0; size -= int64(len(text)) {
		if _, err := w.Write(text[:min(int64(len(text)), size)]); err != nil {
			return err
		}
	}
	return nil
}

// base64Lines returns base64 in lines of 76 characters, as in mail.
func base64Lines(size int64) []byte {
	var b []byte
	for line := range slices.Chunk(corpus.Random(int(size)), 57) {
		b = append(base64.StdEncoding.AppendEncode(b, line), '\n')
	}
	return b
}

// blanks returns short words separated by much white space: indentation, columns, empty lines.
func blanks(size int64) []byte {
	r := rand.New(rand.NewPCG(15, 16))
	var b []byte
	for int64(len(b)) < size {
		b = append(b, strings.Repeat([]string{" ", "\t", "\n", "\r\n"}[r.IntN(4)], 1+r.IntN(40))...)
		b = append(b, []string{"x", "{", "return", "0", "//"}[r.IntN(5)]...)
	}
	return b
}

// writeCode writes Go's source files one after the other, starting with file number from.
func writeCode(w io.Writer, dir string, size int64, from int) error {
	n := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		if n++; n <= from {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text = []byte(strings.ToValidUTF8(string(text[:min(int64(len(text)), size)]), ""))
		if len(text) == 0 {
			return fs.SkipAll
		}
		size -= int64(len(text))
		_, err = w.Write(text)
		return err
	})
	return err
}

func tokenRows(b *bench) []row {
	var rows []row
	for _, class := range []string{"JSON", "log", "prose", "code", "diff", "CJK", "base64", "blanks"} {
		rows = append(
			rows,
			row{family: "tokens", name: "counting, " + class, beside: pkoukk, bar: 0.04, setup: b.counting(class, textSize)},
		)
	}
	return append(rows,
		row{
			family: "tokens", noisy: true, name: "from nothing to the first count", beside: pkoukk, bar: 1, unit: "ms",
			setup: func(context.Context) (*duel, error) { return b.jobs("init", "init-peer", "-", 0) },
		},
		row{family: "tokens", name: "1 MB without a break", bar: 1000, unit: "ms", setup: b.unbroken},
		row{family: "tokens", name: "estimate above 16 MB, 95 % of errors", bar: 1, unit: "%", figures: b.estimates},
	)
}

func (b *bench) counting(class string, size int64) setup {
	return func(context.Context) (*duel, error) {
		if b.small {
			size /= 5
		}
		path, err := b.input(
			fmt.Sprintf("text-%s-%d", class, size), func(w io.Writer) error { return b.writeText(w, class, size) },
		)
		if err != nil {
			return nil, err
		}
		return b.jobs("count", "count-peer", path, float64(size)/(1<<20))
	}
}

// unbroken has no peer: tiktoken-go takes quadratic time on unbroken text.
func (b *bench) unbroken(context.Context) (*duel, error) {
	path, err := b.input("unbroken", func(w io.Writer) error {
		_, err := w.Write(bytes.Repeat([]byte("a"), 1<<20))
		return err
	})
	if err != nil {
		return nil, err
	}
	d, err := b.jobs("count", "count", path, 1)
	if err != nil {
		return nil, err
	}
	d.peer, d.same = nil, nil
	return d, nil
}

// estimated is the size in bytes of texts whose tokens are estimated.
const estimated = 24 << 20

// estimates compares estimated with exact counts, for each kind of text.
func (b *bench) estimates(context.Context) (got result, err error) {
	if b.small {
		return got, errSkipped{"measured at full size only: the texts are over 16 MB"}
	}
	c := tokens.New(tokens.O200k)
	var errs, margins []float64
	held := 0
	began := time.Now()
	for seed := range 5 {
		for _, class := range []string{"JSON", "log", "code", "mixed"} {
			text, err := b.longText(class, uint64(seed))
			if err != nil {
				return got, err
			}
			t := c.Tally()
			_, _ = t.Write(text) // never fails
			total, exact := t.Total(), float64(c.Count(string(text)))
			off := math.Abs(float64(total.N)-exact) / exact
			errs, margins = append(errs, 100*off), append(margins, 100*total.Margin)
			if off <= total.Margin {
				held++
			}
		}
		if time.Since(began) > time.Minute {
			break
		}
	}
	got.value = quantile(errs, 0.95)
	got.note = fmt.Sprintf(
		"%d texts of 24 MB; the interval held in %d, it is ±%.2f %% (median)", len(errs), held, median(margins),
	)
	return got, nil
}

func (b *bench) longText(class string, seed uint64) ([]byte, error) {
	var text bytes.Buffer
	text.Grow(estimated + 4096)
	var err error
	switch class {
	case "JSON":
		err = writeHits(&text, estimated, 100+seed)
	case "log":
		err = writeLog(&text, estimated, 100+seed)
	case "code":
		err = writeCode(&text, filepath.Join(b.goroot, "src"), estimated, 300*int(seed))
	default: // parts of all kinds, 1 kB to 1 MB each
		r := rand.New(rand.NewPCG(seed, 9))
		parts := [][]byte{
			corpus.WarAndPeace(), corpus.JSON5MB(), corpus.CJK(), corpus.PanicLog(), corpus.CSV20k(), corpus.WarAndPeaceDiff(),
			fmt.Appendf(nil, "%x", corpus.Random(1<<19)),
		}
		for text.Len() < estimated {
			part := parts[r.IntN(len(parts))]
			n := min(1000+r.IntN(1_000_000), len(part))
			at := r.IntN(len(part) - n + 1)
			_, _ = text.Write(bytes.ToValidUTF8(part[at:at+n], nil)) // never fails
		}
	}
	return text.Bytes(), err
}
