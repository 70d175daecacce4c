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
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// adding compares a tool call with tiktoken-go, which only counts the tokens.
func (b *bench) adding(size int64) setup {
	return on(b.hits, size, func(path string, megabytes float64) (*pair, error) {
		return b.jobs("latency", "count-peer", path, megabytes)
	})
}

func (b *bench) counting(class string, size int64) setup {
	if b.small {
		size *= 4 // a fifth: a twentieth is too little to measure
	}
	write := func(w io.Writer, size int64) error { return b.writeText(w, class, size, 0) }
	return on(b.input("text-"+class+"-%d", write), size, func(path string, megabytes float64) (*pair, error) {
		return b.jobs("count", "count-peer", path, megabytes)
	})
}

// unbroken has no peer: tiktoken-go takes quadratic time on unbroken text.
func (b *bench) unbroken(context.Context) (*pair, error) {
	path, megabytes, err := b.input("unbroken-%d", func(w io.Writer, size int64) error {
		_, err := w.Write(bytes.Repeat([]byte("a"), int(size)))
		return err
	})(1 << 20)
	if err != nil {
		return nil, err
	}
	p, err := b.jobs("count", "", path, megabytes)
	p.peer, p.same = nil, nil
	return p, err
}

// writeText writes a text of one class (JSON, code, CJK …) to count tokens in; another seed gives another text of the
// classes JSON, log, code and mixed.
func (b *bench) writeText(w io.Writer, class string, size int64, seed uint64) error {
	var text []byte
	switch class {
	case "JSON":
		return writeHits(w, size, 5+seed)
	case "log":
		return writeLog(w, size, 5+seed)
	case "code":
		return writeCode(w, filepath.Join(b.goroot, "src"), size, 300*int(seed))
	case "prose":
		text = corpus.WarAndPeace()
	case "diff":
		text = corpus.WarAndPeaceDiff()
	case "CJK": // ToValidUTF8 removes a truncated rune at the end
		text = bytes.ToValidUTF8(bytes.Repeat(corpus.CJK(), int(size)/len(corpus.CJK())+1)[:size], nil)
		text = append(text, bytes.Repeat([]byte(" "), int(size)-len(text))...)
	case "base64": // in lines of 76 characters, as in mail
		for line := range slices.Chunk(corpus.Random(int(size)), 57) {
			text = append(base64.StdEncoding.AppendEncode(text, line), '\n')
		}
	case "blanks": // short words separated by much white space: indentation, columns, empty lines
		r := rand.New(rand.NewPCG(15, 16))
		for int64(len(text)) < size {
			text = append(text, strings.Repeat([]string{" ", "\t", "\n", "\r\n"}[r.IntN(4)], 1+r.IntN(40))...)
			text = append(text, []string{"x", "{", "return", "0", "//"}[r.IntN(5)]...)
		}
	case "mixed": // parts of all kinds, 1 kB to 1 MB each
		r := rand.New(rand.NewPCG(seed, 9))
		parts := [][]byte{
			corpus.WarAndPeace(), corpus.JSON5MB(), corpus.CJK(), corpus.PanicLog(), corpus.CSV20k(),
			corpus.WarAndPeaceDiff(), fmt.Appendf(nil, "%x", corpus.Random(1<<19)),
		}
		for int64(len(text)) < size {
			part := parts[r.IntN(len(parts))]
			n := min(1000+r.IntN(1_000_000), len(part))
			at := r.IntN(len(part) - n + 1)
			text = append(text, bytes.ToValidUTF8(part[at:at+n], nil)...)
		}
		_, err := w.Write(text)
		return err
	}
	for ; size > 0; size -= int64(len(text)) {
		if _, err := w.Write(text[:min(int64(len(text)), size)]); err != nil {
			return err
		}
	}
	return nil
}

// writeCode writes Go's source files one after the other, without the first skip of them.
func writeCode(w io.Writer, dir string, size int64, skip int) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		if skip > 0 {
			skip--
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text = bytes.ToValidUTF8(text[:min(int64(len(text)), size)], nil)
		if len(text) == 0 {
			return fs.SkipAll
		}
		size -= int64(len(text))
		_, err = w.Write(text)
		return err
	})
}

// estimates compares estimated with exact counts, of up to 20 texts of 24 MB within about a minute.
func (b *bench) estimates(context.Context) (got result, err error) {
	if b.small {
		return got, errSkipped{"measured at full size only: the texts are over 16 MB"}
	}
	c := tokens.New(tokens.O200k)
	var errs, margins []float64
	within := 0
	began := time.Now()
	for seed := uint64(0); seed < 5 && time.Since(began) < time.Minute; seed++ {
		for _, class := range []string{"JSON", "log", "code", "mixed"} {
			var text bytes.Buffer
			if err := b.writeText(&text, class, 24<<20, seed); err != nil {
				return got, err
			}
			t := c.Tally()
			_, _ = t.Write(text.Bytes()) // never fails
			total, exact := t.Total(), float64(c.Count(text.String()))
			off := math.Abs(float64(total.N)-exact) / exact
			errs, margins = append(errs, 100*off), append(margins, 100*total.Margin)
			if off <= total.Margin {
				within++
			}
		}
	}
	got.value = quantile(errs, 0.95)
	got.note = fmt.Sprintf("%d texts of 24 MB; the interval held in %d, it is ±%.2f %% (median)",
		len(errs), within, median(margins))
	return got, nil
}
