package backend

import (
	"encoding/json"
	"testing"
	"time"
)

func TestMask(t *testing.T) {
	for in, want := range map[string]string{
		`{"pattern":"token_count","path":"."}`:       `{"path":".","pattern":"token_count"}`,
		`{"api_key":"abc","n":12345678901234567890}`: `{"api_key":"[masked: password]","n":12345678901234567890}`,
		`{"a":[{"Authorization":"x"},"npm` +
			`_0f1E2d3C4b5A6978efGH0f1E2d3C4b5A6978"]}`: `{"a":[{"Authorization":"[masked: authorization]"},"[masked: npm-token npm_… 40 chars]"]}`,
		`"psql postgres://u:s3` +
			`cr3t@h/db"`: `"psql postgres://u:[masked: url-password 6 chars]@h/db"`,
		`{"command":"deploy --password=hunt` +
			`er22 now"}`: `{"command":"deploy --password=[masked: password 8 chars] now"}`,
		`not json`: ``,
	} {
		if got := string(Observation{Args: json.RawMessage(in)}.Tombstone(WhyAge, time.Time{}).Args); got != want {
			t.Errorf("tombstone of %s has arguments %s, want %s", in, got, want)
		}
	}
}

func TestAmounts(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1023: "1023 bytes", 1024: "1 KiB", 256 << 20: "256 MiB", 1 << 30: "1 GiB", 3 << 29: "1.5 GiB"} {
		if got := FormatBytes(n); got != want {
			t.Errorf("amount(%d) = %q, want %q", n, got, want)
		}
	}
}
