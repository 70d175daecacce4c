package secrets

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// TestPartOfEscapedKeys reads parts of a JSON string that holds several keys: no line of a key is left in any of them,
// whatever line it begins with.
func TestPartOfEscapedKeys(t *testing.T) {
	key := expect.Value(rsa.GenerateKey(rand.Reader, 2048))(t)
	block := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	text := string(expect.Value(json.Marshal(map[string]string{"bundle": strings.Repeat(block, 4)}))(t))
	lines := strings.Split(strings.TrimSpace(block), "\n")
	lines = lines[1 : len(lines)-1]
	for from := 0; from < 2*len(block); from += 7 {
		part := text[from:min(len(text), from+3000)]
		shown := string(New().Middle().Text([]byte(part)))
		held := 0
		for _, line := range lines {
			if strings.Contains(part, line) {
				held++
			}
			if strings.Contains(shown, line) {
				t.Fatalf("from byte %d on, a line of %d bytes is shown: %.60s", from, len(line), shown)
			}
		}
		if held == 0 {
			t.Fatalf("from byte %d on, the part holds no line of the key", from)
		}
	}
}
