package fs

import (
	"testing"
	"time"
)

// FuzzWhen has every text read as a time that is not in the future of what it counts from, or refused in few words.
func FuzzWhen(f *testing.F) {
	for _, s := range []string{"", "24h", "7d", "1.5w", "90m", "2026-01-31T12:00:00Z", "2026-01-31", "2026-01-31 12:00:00", "-1h", "infd", "nand", "1e300w", "106751d", "9999999h", "d", " 7d "} {
		f.Add(s)
	}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		at, err := parseWhen(text, now)
		if err != nil && (!at.IsZero() || len(err.Error()) > 1000) {
			t.Errorf("%q: %v, %v", text, at, err)
		}
		if ago, ok := parseAgo(text); ok && (ago < 0 || err != nil) {
			t.Errorf("%q: %v ago, %v", text, ago, err)
		}
	})
}
