package secrets

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// An error repeats a part of an argument, in which the masker alone would see no secret any more.
func TestEchoesAreMasked(t *testing.T) {
	m := New()
	control := 0
	for _, s := range corpus.Secrets(13) {
		if len(s.Hidden) < 40 {
			continue
		}
		args, err := json.Marshal(map[string]any{"pattern": "(v " + s.Line, "n": []any{1, "x"}})
		expect.Must(t, err)
		for _, part := range []string{s.Hidden[:20], s.Hidden[5:30], s.Hidden[len(s.Hidden)-20:]} {
			for _, text := range []string{`missing ) in "` + part + `"`, "x…" + part, part, "né" + part + "é(\n^"} {
				got, n := m.Echo(text, args)
				for i := 0; i+minEcho <= len(part); i++ {
					if strings.Contains(got, part[i:i+minEcho]) && !strings.Contains(publicOf(m, s.Line), part[i:i+minEcho]) {
						t.Errorf("%s: %q became %q", s.Format, text, got)
						break
					}
				}
				if n == 0 {
					t.Errorf("%s: %q: none is counted", s.Format, text)
				}
				if _, n := m.String(text); n == 0 {
					control++
				}
			}
		}
		const plain = "error: an ordinary text, with nothing of it"
		if got, n := m.Echo(plain, args); got != plain || n != 0 {
			t.Errorf("%s: %q, %d", s.Format, got, n)
		}
	}
	if control < 100 {
		t.Errorf("the masker alone misses only %d", control)
	}
	if got, n := m.Echo("no secret: pattern", json.RawMessage(`{"pattern":`)); got != "no secret: pattern" || n != 0 {
		t.Errorf("%q, %d", got, n)
	}
	if got, _ := (*Masker)(nil).Echo("as it is"); got != "as it is" {
		t.Error(got)
	}
}

// publicOf is what a line's mask shows of it.
func publicOf(m *Masker, line string) string {
	shown, _ := m.String(line)
	return shown
}
