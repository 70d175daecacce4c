package linesearch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// besides are the tasks that are measured beside ripgrep: a pattern of each class on a text where it means something.
var besides = []struct {
	class, corpus, expr string
	fold, tell          bool // ignore case; the lines are told, and not only counted
}{
	{class: "literal", corpus: "log", expr: "connection reset by peer"},
	{class: "literal", corpus: "source", expr: "spin_lock_irqsave"},
	{class: "rare literal", corpus: "log", expr: "zzyzx-7f3a"},
	{class: "rare literal", corpus: "source", expr: "zzyzx-7f3a"},
	{class: "short literal", corpus: "source", expr: "goto"},
	{class: "alternation", corpus: "log", expr: "panic:|fatal error|segfault|connection reset"},
	{class: "alternation", corpus: "source", expr: "kmalloc|vmalloc|kzalloc|kvfree"},
	{class: "classes around", corpus: "log", expr: `err\w+ timeout`},
	{class: "classes around", corpus: "source", expr: `\w+_init\(struct \w+ \*`},
	{class: "ignore case", corpus: "log", expr: "connection reset", fold: true},
	{class: "ignore case", corpus: "source", expr: "spinlock", fold: true},
	{class: "no literal", corpus: "log", expr: `[a-z]+[0-9]{4}`},
	{class: "no literal", corpus: "source", expr: `[a-z]+[0-9]{4}`},
	{class: "no literal, rare", corpus: "log", expr: `[A-Z]{9,}[0-9]`},
	{class: "anchored", corpus: "log", expr: `^2026-11-20T1[0-9]:00:00.*ms$`},
	{class: "anchored", corpus: "source", expr: `^static \w+ \w+\(void\)$`},
	{class: "word", corpus: "log", expr: `\breset\b`},
	{class: "word", corpus: "source", expr: `\block\b`},
	{class: "non-ASCII", corpus: "log", expr: `ошибка|größe`},
	{class: "non-ASCII", corpus: "log", expr: `\pL+ß`},
	{class: "empty", corpus: "log", expr: `x*`},
	{class: "dense", corpus: "log", expr: "e"},
	{class: "dense", corpus: "source", expr: "e"},
	{class: "dense", corpus: "log", expr: "."},
	{class: "dense", corpus: "source", expr: "."},
	{class: "dense", corpus: "log", expr: "e", tell: true},
	{class: "dense", corpus: "source", expr: ".", tell: true},
	{class: "lines", corpus: "log", expr: "connection reset by peer", tell: true},
	{class: "lines", corpus: "source", expr: "goto", tell: true},
}

// BenchmarkBeside runs ripgrep and the matcher in turn and reports the median ratio of their times. Texts have 32 MB,
// or $BESIDE_MB; the source is that below $BESIDE_SOURCE, or of Go. -cpu says how many threads the matcher has.
func BenchmarkBeside(b *testing.B) {
	if _, err := exec.LookPath("rg"); err != nil {
		b.Skip(err)
	}
	dir := b.TempDir()
	corpora := map[string]func() string{
		"log":    sync.OnceValue(func() string { return corpus(b, filepath.Join(dir, "log"), writeLog) }),
		"source": sync.OnceValue(func() string { return corpus(b, filepath.Join(dir, "source"), writeSource) }),
	}
	for _, c := range besides {
		name := c.class + "/" + c.corpus + "/" + c.expr
		if c.tell {
			name += "/told"
		}
		b.Run(name, func(b *testing.B) {
			file := corpora[c.corpus]()
			args := []string{"-j1", "--no-config", "-a", "-c"}
			if c.tell {
				args = []string{"-j1", "--no-config", "-a", "-n"}
			}
			if c.fold {
				args = append(args, "-i")
			}
			args = append(args, "-e", c.expr, file)
			p := Pattern{Expr: c.expr, IgnoreCase: c.fold}
			if !c.tell { // the same answer, or the ratio means nothing
				out, _ := exec.CommandContext(b.Context(), "rg", args...).Output()
				want, _ := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
				if got := grepped(b, file, p, false); got != want {
					b.Fatalf("%d matching lines, rg counts %d", got, want)
				}
			}
			var ours, ratios []float64
			for b.Loop() {
				start := time.Now()
				_ = exec.CommandContext(b.Context(), "rg", args...).Run() // fails where nothing matches
				peer := time.Since(start)
				start = time.Now()
				grepped(b, file, p, c.tell)
				took := time.Since(start)
				ours = append(ours, took.Seconds()*1e3)
				ratios = append(ratios, took.Seconds()/peer.Seconds())
			}
			b.ReportMetric(median(ratios), "ratio")
			b.ReportMetric(median(ours), "ours-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func median(f []float64) float64 {
	slices.Sort(f)
	return f[len(f)/2]
}

// grepped searches a file as the tool does, compiling the pattern too, and says how many lines match.
func grepped(b *testing.B, file string, p Pattern, tell bool) int64 {
	m, err := Compile(p)
	if err != nil {
		b.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	fi, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	var visit func(Line) error
	if tell {
		out := bufio.NewWriterSize(io.Discard, 64<<10)
		var row []byte
		visit = func(l Line) error {
			row = append(append(strconv.AppendInt(row[:0], l.Number, 10), ':'), l.Text...)
			_, err := out.Write(append(row, '\n'))
			return err
		}
	}
	totals, err := m.Scan(context.Background(), io.NewSectionReader(f, 0, fi.Size()), Options{}, visit)
	if err != nil {
		b.Fatal(err)
	}
	return totals.Matches
}

// corpus writes a text of the wanted size, and returns its name.
func corpus(b *testing.B, name string, write func(w io.Writer, size int64) error) string {
	mb, err := strconv.ParseInt(os.Getenv("BESIDE_MB"), 10, 64)
	if err != nil {
		mb = 32
	}
	f, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if err = write(w, mb<<20); err == nil {
		err = w.Flush()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	return name
}

func writeLog(w io.Writer, size int64) error {
	r := rand.New(rand.NewPCG(1, 2))
	rare := []string{
		"ERROR connection reset by peer from 10.0.%d.7", "WARN error timeout after %d tries",
		"ERROR fatal error: segfault at %d",
		"WARN ошибка чтения файла %d", "INFO die größe ist %d", "INFO 世界 こんにちは %d", "WARN Connection Reset, code %d",
	}
	for at, n := int64(0), 0; at < size; n++ {
		stamp := fmt.Sprintf("2026-11-20T%02d:%02d:%02d.%03dZ ", n/360_000%24, n/6000%60, n/100%60, n%1000)
		line := fmt.Sprintf(
			"INFO request id=%08x served path=/api/v1/items/%d user=u%d status=200 bytes=%d took %dms\n",
			r.Uint32(),
			r.IntN(1e5),
			r.IntN(5000),
			r.IntN(1<<20),
			r.IntN(400),
		)
		if n%997 == 0 {
			line = fmt.Sprintf(rare[r.IntN(len(rare))]+"\n", r.IntN(200))
		}
		k, err := io.WriteString(w, stamp+line)
		if err != nil {
			return err
		}
		at += int64(k)
	}
	return nil
}

func writeSource(w io.Writer, size int64) error {
	dir := os.Getenv("BESIDE_SOURCE")
	if dir == "" {
		dir = filepath.Join(
			runtime.GOROOT(),
			"src",
		) //nolint:staticcheck // the toolchain that runs the test has its source
	}
	for at := int64(0); at < size; {
		before := at
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() ||
				!slices.Contains([]string{".c", ".h", ".go", ".rst"}, filepath.Ext(path)) {
				return err
			}
			if at >= size {
				return fs.SkipAll
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			n, err := w.Write(text)
			at += int64(n)
			return err
		})
		if err != nil {
			return err
		}
		if at == before {
			return fmt.Errorf("no source below %s", dir)
		}
	}
	return nil
}
