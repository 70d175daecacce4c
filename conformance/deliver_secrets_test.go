package conformance

import (
	"fmt"
	"strings"
	"testing"
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
				a, err := c.call("deliver", object{"part": doc})
				if err != nil {
					t.Fatal(err)
				}
				if !strings.HasPrefix(a.text(), "WHOLE") {
					t.Errorf("%v, %s in %d bytes: %s", flags, secret[:4], len(doc), a.text())
				}
			}
		}
		a, err := c.call("deliver", object{"part": `{"a": 1 "` + bob + `"}`})
		if err != nil {
			t.Fatal(err)
		}
		shows := len(flags) > 0 && flags[0] == "--no-mask"
		if !strings.HasPrefix(a.text(), "BROKEN") || strings.Contains(string(a.result), "secretpw12") != shows {
			t.Errorf("%v: the reason of a broken part: %s", flags, a.result)
		}
	}
}
