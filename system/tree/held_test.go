package tree

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// held walks and passes each file with its held directory to take.
func held(t testing.TB, r *Root, take func(Entry)) {
	t.Helper()
	expect.Value(r.Walk(t.Context(), Options{Hold: true}, func(e Entry) error {
		switch {
		case e.Type == File:
			take(e)
		case e.In != nil:
			t.Errorf("%s, a %s, is handed out", e.Path, e.Type)
		}
		return nil
	}))(t)
}

// Held directories can be used after the walk has ended, by any number of holders.
func TestHeldFilesOutliveTheWalk(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, "a/b", "a/c/d", "a/c/e", "f", "link -> f")
	r := open(t, dir)
	var all []Entry
	held(t, r, func(e Entry) { all = append(all, e) })
	expect.MustEqual(t, len(all), 4, "files")
	for _, e := range all {
		want, at, err := r.OpenFile(e.Path)
		expect.Must(t, err)
		text, _ := io.ReadAll(want)
		_ = want.Close()
		got := expect.Value(e.In.Open(e.Path))(t)
		e.In.Release()
		b, err := io.ReadAll(&got)
		if err != nil || string(b) != string(text) || len(b) == 0 || got.Size() != at.Size() {
			t.Errorf("%s: %q, %d bytes, want %q: %v", e.Path, b, got.Size(), text, err)
		}
		part := make([]byte, len(text)+1)
		if n, err := got.ReadAt(part, 1); !errors.Is(err, io.EOF) || string(part[:n]) != string(text[1:]) {
			t.Errorf("%s from 1: %q, %v", e.Path, part[:n], err)
		}
		expect.OK(t, got.Close())
		if _, err := got.Read(part); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: read when closed: %v", e.Path, err)
		}
	}
}

// A walk holds no more directories than the limit, and released ones can be held again.
func TestHeldDirectoriesAreBounded(t *testing.T) {
	dir := t.TempDir()
	const over = 20
	for i := range maxHeld + over {
		plant(t, dir, fmt.Sprintf("%04d/f", i))
	}
	r := open(t, dir)
	var kept []*Held
	none := 0
	held(t, r, func(e Entry) {
		if e.In == nil {
			none++
			return
		}
		kept = append(kept, e.In)
	})
	if len(kept) != maxHeld || none != over {
		t.Errorf("%d held, %d not", len(kept), none)
	}
	for _, h := range kept {
		h.Release()
	}
	none = 0
	held(t, r, func(e Entry) {
		if e.In == nil {
			none++
		} else {
			e.In.Release()
		}
	})
	if none != 0 {
		t.Errorf("%d not held though all were released", none)
	}
}
