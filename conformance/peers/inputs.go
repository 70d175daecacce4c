//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// textInput generates a file of about size bytes, or a twentieth of that in the small form, and returns its path and
// its size in MB.
type textInput func(size int64) (path string, megabytes float64, err error)

// input returns a textInput. name is a format for the size. The same name and size must always give the same bytes:
// files of earlier runs are used again.
func (b *bench) input(name string, write func(w io.Writer, size int64) error) textInput {
	return func(size int64) (path string, megabytes float64, err error) {
		if b.small {
			size /= 20
		}
		path, megabytes = filepath.Join(b.cache, "inputs", fmt.Sprintf(name, size)), float64(size)/(1<<20)
		if _, err := os.Stat(path); err == nil {
			return path, megabytes, nil
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return "", 0, err
		}
		f, err := os.CreateTemp(b.work, "input-")
		if err != nil {
			return "", 0, err
		}
		w := bufio.NewWriterSize(f, 1<<20)
		if err := errors.Join(write(w, size), w.Flush(), f.Close()); err != nil {
			return "", 0, err
		}
		return path, megabytes, os.Rename(f.Name(), path)
	}
}

// on returns a setup that makes a pair for an input.
func on(in textInput, size int64, pairOf func(path string, megabytes float64) (*pair, error)) setup {
	return func(context.Context) (*pair, error) {
		path, megabytes, err := in(size)
		if err != nil {
			return nil, err
		}
		return pairOf(path, megabytes)
	}
}

// hits generates a JSON array of search hits, one per line.
func (b *bench) hits(size int64) (path string, megabytes float64, err error) {
	return b.input("hits-%d.json", func(w io.Writer, size int64) error { return writeHits(w, size, 1) })(size)
}

// kept generates a text of a kind of [kept].
func (b *bench) kept(kind string) textInput {
	k := slices.IndexFunc(kept, func(k keptKind) bool { return k.name == kind })
	return b.input(strings.ReplaceAll(kind, " ", "-")+"-%d", kept[k].write)
}

// log generates a log file.
func (b *bench) log(size int64) (path string, megabytes float64, err error) {
	return b.input("log-%d.log", func(w io.Writer, size int64) error { return writeLog(w, size, 3) })(size)
}

// longLine generates the log in one line.
func (b *bench) longLine(size int64) (path string, megabytes float64, err error) {
	return b.input("line-%d.log", func(w io.Writer, size int64) error { return writeLog(joined{w}, size, 3) })(size)
}

// maxList is the length of the longest list of words or IDs.
const maxList = 5000

// listOf returns words of 6 to 11 letters, the last two of which are QQ, or IDs of 8 letters and digits.
func listOf(kind string, n int) []string {
	r := rand.New(rand.NewPCG(8, 8))
	letters, least, most, last := "abcdefghijklmnopqrstuvwxyz", 4, 9, "QQ"
	if kind == "IDs" {
		letters, least, most, last = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 8, 8, ""
	}
	list := make([]string, n)
	for i := range list {
		word := make([]byte, least+r.IntN(most-least+1))
		for k := range word {
			word[k] = letters[r.IntN(len(letters))]
		}
		list[i] = string(word) + last
	}
	return list
}

// beginnings generates a text of the beginnings of the first 200 words of a list: one that needs many states.
func (b *bench) beginnings(kind, end string) textInput {
	name := kind + "-%d.log"
	if end != "\n" {
		name = kind + "-line-%d.log"
	}
	return b.input(name, func(w io.Writer, size int64) error {
		r, list := rand.New(rand.NewPCG(9, 9)), listOf(kind, 200)
		return writeLines(w, size, func(int) string {
			line := make([]string, 12)
			for i := range line {
				word := list[r.IntN(len(list))]
				line[i] = word[:1+r.IntN(len(word)-1)]
			}
			return strings.Join(line, " ") + end
		})
	})
}

// session generates a session file of Claude Code: calls whose results are parts of a log, of about 100 kB each.
func (b *bench) session(size int64) (path string, megabytes float64, err error) {
	return b.input("session-%d.jsonl", func(w io.Writer, size int64) error {
		lines := json.NewEncoder(w)
		for n, written := uint64(0), int64(0); written < size; n++ {
			var output strings.Builder
			if err := writeLog(&output, 1000+int64(n*7919%200_000), n); err != nil {
				return err
			}
			written += int64(output.Len())
			id := fmt.Sprint("toolu_", n)
			for i, message := range []map[string]any{
				{"role": "assistant", "content": []any{map[string]any{
					"type": "tool_use", "id": id, "name": "Bash",
					"input": map[string]any{"command": fmt.Sprint("cat ", n)},
				}}},
				{"role": "user", "content": []any{map[string]any{
					"type": "tool_result", "tool_use_id": id, "content": output.String(),
				}}},
			} {
				if err := lines.Encode(map[string]any{
					"type": message["role"], "uuid": fmt.Sprint(n, "-", i), "sessionId": "bench", "message": message,
				}); err != nil {
					return err
				}
			}
		}
		return nil
	})(size)
}

// kept are the kinds of large texts that are stored, with the function that writes one.
var kept = []keptKind{
	{"random bytes", func(w io.Writer, size int64) error {
		_, err := io.CopyN(w, rand.NewChaCha8([32]byte{1}), size)
		return err
	}},
	{"random words", writeWords},
	{"git log", writeCommits},
	{"base64", func(w io.Writer, size int64) error {
		random, line := rand.NewChaCha8([32]byte{2}), make([]byte, 57)
		return writeLines(w, size, func(int) string {
			_, _ = random.Read(line) // it never fails
			return base64.StdEncoding.EncodeToString(line) + "\n"
		})
	}},
	{"pretty JSON", writePretty},
}

type keptKind struct {
	name  string
	write func(w io.Writer, size int64) error
}

// joined writes lines in a row, with blanks for their ends.
type joined struct{ io.Writer }

func (j joined) WriteString(line string) (int, error) {
	return io.WriteString(j.Writer, strings.TrimSuffix(line, "\n")+" ")
}

// writeLines writes lines until they have at least size bytes.
func writeLines(w io.Writer, size int64, line func(i int) string) error {
	for i := 0; size > 0; i++ {
		n, err := io.WriteString(w, line(i))
		if err != nil {
			return err
		}
		size -= int64(n)
	}
	return nil
}

// Formats of generated records.
const (
	ndjson    = "ndjson"
	jsonArray = "json"
	csvTable  = "csv"
)

// recordSize is the size of a record of NDJSON in bytes.
const recordSize = 35

// records generates a number of records, or a twentieth of it in the small form; in the two formats of JSON each has
// recordSize bytes. It returns their number in thousands.
func (b *bench) records(format string) textInput {
	write := func(w io.Writer, size int64) error { return writeRecords(w, format, size/recordSize) }
	return func(records int64) (path string, thousands float64, err error) {
		path, megabytes, err := b.input("records-%d."+format, write)(records * recordSize)
		return path, megabytes * (1 << 20) / recordSize / 1000, err
	}
}

func writeRecords(w io.Writer, format string, records int64) error {
	r := rand.New(rand.NewPCG(5, 6))
	levels := []string{"error", "debug", "fatal", "trace"}
	line := map[string]string{
		ndjson: `{"id":%d,"a":"%s","v":%d}` + "\n", jsonArray: `,{"id":%d,"a":"%s","v":%d}`, csvTable: "%d,%s,%d\n",
	}[format]
	begin := map[string]string{jsonArray: `[{"id":0,"a":"none","v":0}`, csvTable: "id,a,v\n"}[format]
	if _, err := io.WriteString(w, begin); err != nil {
		return err
	}
	for i := range records {
		if _, err := fmt.Fprintf(w, line, 1_000_000+i, levels[r.IntN(len(levels))], 100+r.IntN(900)); err != nil {
			return err
		}
	}
	if format == jsonArray {
		_, err := io.WriteString(w, "]\n")
		return err
	}
	return nil
}

func writeHits(w io.Writer, size int64, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 2))
	texts := []string{ // escaped for JSON
		`return nil, fmt.Errorf(\"open: %w\", err)`, `\tif err := f.Close(); err != nil {`,
		`// a comment that says why, at some length`, `func (s *Store) Open(owner string) (Reader, error) {`,
		`größer als 16 KiB – 大きい`, `x := map[string]int{\"a\": 1}`,
	}
	const format = `%s{"file":"src/part%d/file%d.go","line":%d,"column":%d,"text":"%s","score":%.4f,` +
		`"owner":{"name":"user%d","active":%t}}` + "\n"
	if _, err := io.WriteString(w, "[\n"); err != nil {
		return err
	}
	err := writeLines(w, size-202, func(i int) string {
		comma := ","
		if i == 0 {
			comma = ""
		}
		return fmt.Sprintf(format, comma, r.IntN(40), r.IntN(400), r.IntN(5000), r.IntN(120), texts[r.IntN(len(texts))],
			r.Float64(), r.IntN(900), r.IntN(2) == 0)
	})
	_, e := io.WriteString(w, "]\n")
	return errors.Join(err, e)
}

// randomWords returns a function that returns words in a row, of a vocabulary of 20,000.
func randomWords(seed uint64) func(n int) string {
	r := rand.New(rand.NewPCG(seed, 5))
	all := make([]string, 20_000)
	for i := range all {
		word := make([]byte, 3+r.IntN(7))
		for k := range word {
			word[k] = 'a' + byte(r.IntN(26))
		}
		all[i] = string(word)
	}
	return func(n int) string {
		words := make([]string, n)
		for i := range words {
			words[i] = all[r.IntN(len(all))]
		}
		return strings.Join(words, " ")
	}
}

func writeWords(w io.Writer, size int64) error {
	words := randomWords(1)
	return writeLines(w, size, func(int) string { return words(10) + "\n" })
}

func writeCommits(w io.Writer, size int64) error {
	r, words := rand.New(rand.NewPCG(6, 6)), randomWords(2)
	at := time.Date(2026, 11, 20, 14, 30, 22, 0, time.UTC)
	return writeLines(w, size, func(int) string {
		at = at.Add(-time.Duration(r.IntN(9000)) * time.Second)
		author := r.IntN(800)
		const format = "commit %016x%016x%08x\nAuthor: Ada Lovelace %d <ada%d@example.com>\nDate:   %s\n\n    %s\n\n"
		text := fmt.Sprintf(format, r.Uint64(), r.Uint64(), r.Uint32(), author, author,
			at.Format("Mon Jan 2 15:04:05 2006 -0700"), words(8))
		for range r.IntN(5) {
			text += "    " + words(12) + "\n"
		}
		return text + "\n"
	})
}

func writePretty(w io.Writer, size int64) error {
	r, words := rand.New(rand.NewPCG(7, 7)), randomWords(3)
	const format = `%s
  {
    "id": %d,
    "name": "%s",
    "score": %.6f,
    "owner": {
      "name": "%s",
      "active": %t
    },
    "tags": [
      "%s",
      "%s"
    ]
  }`
	err := writeLines(w, size, func(i int) string {
		begin := ","
		if i == 0 {
			begin = "["
		}
		return fmt.Sprintf(format, begin, i, words(2), r.Float64(), words(1), r.IntN(2) == 0, words(1), words(1))
	})
	_, e := io.WriteString(w, "\n]\n")
	return errors.Join(err, e)
}

func writeLog(w io.Writer, size int64, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 4))
	levels := []string{"INFO ", "INFO ", "INFO ", "DEBUG", "DEBUG", "WARN "}
	modules := []string{"http.server", "cart.store", "billing.worker", "cache", "auth.session", "search.index"}
	return writeLines(w, size, func(i int) string {
		at := fmt.Sprintf("2026-11-%02dT%02d:%02d:%02d.%03dZ", 1+i/90_000%28, i/3600%24, i/60%60, i%60, r.IntN(1000))
		module := modules[r.IntN(len(modules))]
		switch k := r.IntN(20_000); {
		case k < 2:
			return fmt.Sprintf("%s ERROR %s deadline exceeded while flushing batch %d after %dms\n",
				at, module, r.IntN(100_000), r.IntN(9000))
		case k < 6:
			return fmt.Sprintf("%s ERROR %s TimeoutError: peer 10.0.%d.%d refused connection\n",
				at, module, r.IntN(256), r.IntN(256))
		case k < 8:
			return fmt.Sprintf("%s WARN  %s пользователь user%d не найден\n", at, module, r.IntN(900))
		case k < 400:
			return fmt.Sprintf("%s WARN  %s slow request id=%016x status=5%02d took=%dms\n",
				at, module, r.Uint64(), r.IntN(5), 1000+r.IntN(9000))
		case k < 14_000:
			return fmt.Sprintf("%s %s %s request served method=GET path=/v1/items/%d status=200 took=%dms id=%016x\n",
				at, levels[r.IntN(len(levels))], module, r.IntN(10_000), r.IntN(300), r.Uint64())
		}
		return fmt.Sprintf("%s %s %s lookup key=item:%d hit=%t shard=%d\n",
			at, levels[r.IntN(len(levels))], module, r.IntN(10_000), r.IntN(2) == 0, r.IntN(64))
	})
}
