package engine

import (
	"bufio"
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// received takes a worker's answer.
type received struct {
	rows []string
	row  []byte
}

func (g *received) Part(b []byte, last bool) error {
	g.row = append(g.row, b...)
	if last {
		g.rows, g.row = append(g.rows, string(g.row)), nil
	}
	return nil
}
func (g *received) Progress(int64) {}
func (g *received) Wanted() bool   { return true }

// However the worker's answer is torn on its way, it arrives as it was.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("one\ntwo"), uint16(3))
	f.Add(bytes.Repeat([]byte("x"), 3*frameMost+7), uint16(65000))
	f.Add([]byte("\n\n"), uint16(1))
	f.Fuzz(func(t *testing.T, text []byte, step uint16) {
		var wire bytes.Buffer
		w := &frames{w: bufio.NewWriter(&wire)}
		want := strings.Split(string(text), "\n")
		for _, row := range want {
			expect.Must(t, w.Part([]byte(row), true))
		}
		expect.Must(t, w.end(Outcome{Results: int64(len(want))}))
		g := &received{}
		u := &unframe{to: g}
		for b := wire.Bytes(); len(b) > 0; {
			n := min(int(step)%1000+1, len(b))
			if _, err := u.Write(b[:n]); err != nil {
				t.Fatal(err)
			}
			b = b[n:]
		}
		if strings.Join(g.rows, "\n") != string(text) || u.outcome == nil || u.outcome.Results != int64(len(want)) {
			t.Fatalf("%d rows, outcome %+v", len(g.rows), u.outcome)
		}
		// Whatever else it might say does no harm.
		u = &unframe{to: &received{}}
		if _, err := u.Write(text); err != nil && !errors.Is(err, errFrame) {
			t.Fatal(err)
		}
		if cap(u.buf) > 4*frameMost {
			t.Fatalf("%d bytes are held", cap(u.buf))
		}
	})
}
