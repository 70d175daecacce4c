package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestDeliverSecrets delivers documents with a secret whose mask is longer than it: they are stored exactly, or masked
// where the operator wants that.
func TestDeliverSecrets(t *testing.T) {
	const bob = "https://bob:secretpw12@host.org/"
	for _, flags := range [][]string{nil, {"--redact-store"}, {"--no-mask"}} {
		c := serveStdio(t, plainDir(t), append([]string{"--toolsets", "core,documents"}, flags...)...)
		for _, secret := range []string{
			bob, "password=hunter2secret", "AKIA" + "IOSFODNN7EXAMPLX", "sk_" + "live_4eC39HqLyjWDarjtT1zdp7dc",
		} {
			for _, words := range []string{"", longPart(10_000), longPart(200_000)} {
				doc := fmt.Sprintf(`{"words":%q,"note":"see %s","n":1}`, words, secret)
				if a, _ := c.deliver(t, object{"part": doc}); !strings.HasPrefix(a.text(), "WHOLE") {
					t.Errorf("%v, %s in %d bytes: %s", flags, secret[:4], len(doc), a.text())
				}
			}
		}
		a, _ := c.deliver(t, object{"part": `{"a": 1 "` + bob + `"}`})
		shows := len(flags) > 0 && flags[0] == "--no-mask"
		if !strings.HasPrefix(a.text(), "BROKEN") || strings.Contains(string(a.result), "secretpw12") != shows {
			t.Errorf("%v: the reason of a broken part: %s", flags, a.result)
		}
	}
}

// TestDeliverShowsWhatToRepeat cuts a document at each byte near its secrets: what the answer shows to begin with is
// the exact restart text, or the element has to be begun again.
func TestDeliverShowsWhatToRepeat(t *testing.T) {
	c := serveStdio(t, plainDir(t), "--toolsets", "core,documents")
	doc := `{"items":["some words before it","see https://bob:secretpw12@host.org/ for more","` +
		longPart(300) + `password=hunter2secret` + strings.Repeat(" and so on", 4) + `","and the last words of it"]}`
	shows, again := 0, 0
	for cut := 60; cut < len(doc)-2; cut += 3 {
		a, d := c.deliver(t, object{"part": doc[:cut]})
		_, shown, ok := strings.Cut(a.text(), "\n```\n")
		if !ok {
			again++
			expect.Has(t, a.text(), "Begin with the whole cut-off element", "cut at %d", cut)
			continue
		}
		shows++
		if shown, _, _ = strings.Cut(shown, "\n```"); shown != d.Restart || !strings.HasSuffix(doc[:cut], shown) &&
			!strings.HasSuffix(strings.TrimSpace(doc[:cut]), shown) {
			t.Errorf("cut at %d: %q is shown for %q", cut, shown, d.Restart)
		}
	}
	if shows == 0 || again == 0 {
		t.Errorf("%d restart texts, %d elements from their beginning", shows, again)
	}
}
