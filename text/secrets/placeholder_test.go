package secrets

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Random tokens are masked whatever words chance writes into them.
func TestRandomTokensAreMasked(t *testing.T) {
	const (
		letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
		small   = "abcdefghijklmnopqrstuvwxyz0123456789"
		hex     = "0123456789abcdef"
	)
	shapes := []struct {
		prefix, set string
		n           int
	}{
		{"gh" + "p_", letters, 36}, {"gh" + "s_", letters, 36}, {"glp" + "at-", letters, 20}, {"np" +
			"m_", letters, 36}, {"sk_" + "live_", letters, 24},
		{"sk-" + "proj-", letters + "_-", 60}, {"pn" + "u_", small, 36}, {"pu" + "l-", hex, 40}, {"shp" +
			"at_", hex, 32}, {"figd" + "_", letters + "_-", 40},
		{"Bearer ", letters, 40}, {"api_" + "key = \"", letters, 40},
	}
	n := 200_000
	if testing.Short() {
		n = 20_000
	}
	m := New()
	r := rand.New(rand.NewPCG(11, 5))
	missed := 0
	body := make([]byte, 64)
	for i := range n {
		s := shapes[i%len(shapes)]
		b := body[:s.n]
		for k := range b {
			b[k] = s.set[r.IntN(len(s.set))]
		}
		b[9] = '7' // without any digit a bearer token is taken for a word
		text := "key " + s.prefix + string(b) + "\" end"
		if got, finding := m.String(text); finding != 1 || strings.Contains(got, string(b[4:])) {
			if missed++; missed < 10 {
				t.Errorf("%q became %q", text, got)
			}
		}
	}
	if missed > 0 {
		t.Errorf("%d of %d are shown", missed, n)
	}
	for _, b := range []string{"PbmhJSUBOu7vmYOuRr86uqMvI5hE52SbbspO", "7YsQh0s1zJEulsje6dndfYOUrlT1hOcz17Vs", "utzOlguyYKkd4FnQPLoxvqzlcwoJXXXx4VxY", "OKCB0ptVBvQjaIFgzihKxxxXwFoArHfPhDRo"} {
		if got, finding := m.String("gh" + "p_" + b); finding != 1 || strings.Contains(got, b) {
			t.Errorf("%s is shown: %s", b, got)
		}
	}
}

// What somebody wrote in a token's place stays.
func TestStandInsStay(t *testing.T) {
	m := New()
	for _, in := range []string{
		"gh" + "p_yourGitHubTokenHere0123456789abcdefXYZ", "gh" + "p_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "gh" +
			"p_XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX1234",
		"sk-" + "proj-your-key-goes-here-1234567890-and-nowhere-else", "sk-" +
			"proj-insert-your-key-here-000000000000000000000000", "glp" + "at-dummy-token-12345678",
		"glp" + "at-xxxxxxxxxxxxxxxx1234", "AK" + "IAIOSFODNN7EXAMPLE", "gh" +
			"p_EXAMPLEtoken0123456789abcdefghijklmn", "Bearer your-token-goes-here-1", `token: "dummy-token-123456789"`,
	} {
		if got, n := m.String(in); n != 0 {
			t.Errorf("%q became %q", in, got)
		}
	}
}
