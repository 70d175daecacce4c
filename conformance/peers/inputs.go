//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// input returns the path of a generated file in the cache. The same name must always give the same bytes.
func (b *bench) input(name string, write func(io.Writer) error) (string, error) {
	path := filepath.Join(b.cache, "inputs", name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(b.work, "input-")
	if err != nil {
		return "", err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	err = write(w)
	if e := w.Flush(); err == nil {
		err = e
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return "", err
	}
	return path, os.Rename(f.Name(), path)
}

// hits returns the path of a JSON array of search hits, one per line, of about size bytes.
func (b *bench) hits(size int64) (string, error) {
	return b.input(fmt.Sprintf("hits-%d.json", size), func(w io.Writer) error { return writeHits(w, size, 1) })
}

func writeHits(w io.Writer, size int64, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 2))
	texts := []string{ // escaped for JSON
		`return nil, fmt.Errorf(\"open: %w\", err)`, `\tif err := f.Close(); err != nil {`, `// a comment that says why, at some length`,
		`func (s *Store) Open(owner string) (Reader, error) {`, `größer als 16 KiB – 大きい`, `x := map[string]int{\"a\": 1}`,
	}
	n, err := io.WriteString(w, "[\n")
	done := int64(n)
	for i := 0; err == nil && done < size-200; i++ {
		comma := ","
		if i == 0 {
			comma = ""
		}
		n, err = fmt.Fprintf(w, "%s{\"file\":\"src/part%d/file%d.go\",\"line\":%d,\"column\":%d,\"text\":\"%s\",\"score\":%.4f,\"owner\":{\"name\":\"user%d\",\"active\":%t}}\n",
			comma, r.IntN(40), r.IntN(400), r.IntN(5000), r.IntN(120), texts[r.IntN(len(texts))], r.Float64(), r.IntN(900), r.IntN(2) == 0)
		done += int64(n)
	}
	if err == nil {
		_, err = io.WriteString(w, "]\n")
	}
	return err
}

// log returns the path of a log file of about size bytes.
func (b *bench) log(size int64) (string, error) {
	return b.input(fmt.Sprintf("log-%d.log", size), func(w io.Writer) error { return writeLog(w, size, 3) })
}

func writeLog(w io.Writer, size int64, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 4))
	levels := []string{"INFO ", "INFO ", "INFO ", "DEBUG", "DEBUG", "WARN "}
	modules := []string{"http.server", "cart.store", "billing.worker", "cache", "auth.session", "search.index"}
	var done int64
	for i := 0; done < size; i++ {
		at := fmt.Sprintf("2026-11-%02dT%02d:%02d:%02d.%03dZ", 1+i/90_000%28, i/3600%24, i/60%60, i%60, r.IntN(1000))
		module := modules[r.IntN(len(modules))]
		var n int
		var err error
		switch k := r.IntN(20_000); {
		case k < 2:
			n, err = fmt.Fprintf(
				w, "%s ERROR %s deadline exceeded while flushing batch %d after %dms\n", at, module, r.IntN(100_000), r.IntN(9000),
			)
		case k < 6:
			n, err = fmt.Fprintf(
				w, "%s ERROR %s TimeoutError: peer 10.0.%d.%d refused connection\n", at, module, r.IntN(256), r.IntN(256),
			)
		case k < 8:
			n, err = fmt.Fprintf(w, "%s WARN  %s пользователь user%d не найден\n", at, module, r.IntN(900))
		case k < 400:
			n, err = fmt.Fprintf(
				w, "%s WARN  %s slow request id=%016x status=5%02d took=%dms\n", at, module, r.Uint64(), r.IntN(5),
				1000+r.IntN(9000),
			)
		case k < 14_000:
			n, err = fmt.Fprintf(
				w, "%s %s %s request served method=GET path=/v1/items/%d status=200 took=%dms id=%016x\n", at,
				levels[r.IntN(len(levels))], module, r.IntN(10_000), r.IntN(300), r.Uint64(),
			)
		default:
			n, err = fmt.Fprintf(
				w, "%s %s %s lookup key=item:%d hit=%t shard=%d\n", at, levels[r.IntN(len(levels))], module, r.IntN(10_000),
				r.IntN(2) == 0, r.IntN(64),
			)
		}
		if err != nil {
			return err
		}
		done += int64(n)
	}
	return nil
}
