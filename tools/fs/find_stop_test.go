package fs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/toolstest"
)

// timely is an answer whose time is up once so many writes were made; what comes later is refused, as the funnel does.
type timely struct {
	answer
	left int
	ctx  context.Context
	stop context.CancelFunc
}

func (a *timely) Write(p []byte) (int, error) {
	if err := a.ctx.Err(); err != nil {
		return 0, err
	}
	if a.left--; a.left == 0 {
		defer a.stop()
	}
	return a.answer.Write(p)
}

// When the time is up, what was found stands written, its number is told, and what would help.
func TestFindThatIsStoppedKeepsWhatItFound(t *testing.T) {
	files := map[string]string{}
	for i := range 40 {
		files[fmt.Sprintf("f%02d.txt", i)] = strings.Repeat("word ", 2000)
	}
	dir := t.TempDir()
	plant(t, dir, files)
	src := toolstest.Roots(t, dir)
	for _, test := range []struct {
		args string
		rows int
		note string
	}{
		{`{"show":"stat"}`, 7, "find stopped after 7 entries; narrow it by path, glob, depth, newer or larger"},
		{`{}`, 7, "find stopped after 7 entries; narrow it by path, glob, depth, newer or larger"},
		// and the top
		{`{"show":"tree"}`, 7, "find stopped after 6 entries; narrow it by path, glob, depth, newer or larger"},
		{`{"sort":"size","show":"stat"}`, 7, "find stopped after 7 entries; narrow it by path, glob, depth, newer or larger"},
	} {
		a := &timely{answer: answer{counts: map[string]float64{}}, left: test.rows}
		a.ctx, a.stop = context.WithCancel(t.Context())
		err := Find().Run(
			a.ctx,
			tools.Input{Args: json.RawMessage(test.args), Sources: src, NewTokenCounter: weigh, ObservationTokens: weighed}, a,
		)
		if !errors.Is(err, context.Canceled) || strings.Count(a.String(), "\n") != test.rows ||
			strings.Contains(a.String(), "error") {
			t.Errorf("%s: %v, written:\n%s", test.args, err, a.String())
		}
		if len(a.notes) != 1 || a.notes[0] != test.note {
			t.Errorf("%s: notes %q", test.args, a.notes)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := &timely{answer: answer{counts: map[string]float64{}}, ctx: ctx}
	err := Find().Run(ctx, tools.Input{Args: json.RawMessage(`{"show":"count"}`), Sources: src}, a)
	if err == nil || len(a.notes) != 1 ||
		!strings.HasPrefix(a.notes[0], "find stopped before it could show an entry; narrow") {
		t.Errorf("%v: notes %q", err, a.notes)
	}
}
