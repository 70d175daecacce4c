package logs

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
)

// benchTexts are logs of several formats; few of their lines differ from the line before only in digits.
func benchTexts() map[string][]byte {
	lines := func(format string) []byte {
		var b bytes.Buffer
		for i := range 20_000 {
			fmt.Fprintf(&b, format+"\n", i%24, i%60, strings.Repeat("x", i%7))
		}
		return b.Bytes()
	}
	return map[string][]byte{
		"panic":   corpus.PanicLog(),
		"access":  lines(`1.2.3.4 - - [20/Nov/2026:%02d:%02d:22 +0000] "GET /items/%s HTTP/1.1" 200 123 "-" "curl/8.0"`),
		"syslog":  lines("Nov 20 %02d:%02d:22 host sshd[123]: session opened for %s user=root"),
		"logfmt":  lines("time=2026-11-20T%02d:%02d:22Z level=info msg=\"request%s served\" took=12"),
		"apache":  lines("[Wed Nov 20 %02d:%02d:22.123456 2026] [core:notice] [pid 1:tid 2] AH00037: request%s served"),
		"android": lines("11-20 %02d:%02d:22.123  1234  5678 I Tag: request%s served"),
		"prose":   corpus.WarAndPeace()[:1<<20],
	}
}

func BenchmarkObjects(b *testing.B) {
	for name, text := range benchTexts() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				_ = Objects(b.Context(), bytes.NewReader(text), io.Discard)
			}
		})
	}
}

func BenchmarkSummary(b *testing.B) {
	for name, text := range benchTexts() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				l := New("")
				l.Add(text)
				l.end()
			}
		})
	}
}
