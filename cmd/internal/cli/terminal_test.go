package cli

import (
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestBarText(t *testing.T) {
	for want, b := range map[string]struct {
		done, total int64
		message     string
		elapsed     time.Duration
	}{
		"2.5 MiB  1.2 MiB/s  2s": {5 << 19, 0, "bytes", 2 * time.Second},
		"[######                  ]  25 %  2.5 MiB of 10.0 MiB read  1.2 MiB/s  2s": {
			5 << 19, 10 << 20, "bytes read", 2 * time.Second,
		},
		"[########################] 100 %  3 of 3 observations  1/s  3s": {3, 3, "observations", 3 * time.Second},
		// some came meanwhile
		"[########################] 100 %  5 of 3 files read  1/s  4.5s": {
			5, 3, "files read", 4500 * time.Millisecond,
		},
		"1200 files walked  1000/s  1.2s": {1200, 0, "1200 files walked", 1200 * time.Millisecond},
		"[                        ]   0 %  0 bytes of 10.0 MiB read  0 bytes/s  0s": {
			0, 10 << 20, "bytes read", 0,
		},
		"0 files searched  0/s  0s": {0, 0, "0 files searched", 0},
	} {
		expect.Equal(t, barText(b.done, b.total, b.message, b.elapsed), want)
	}
}

func TestAgeText(t *testing.T) {
	for age, want := range map[time.Duration]string{
		-time.Second:                    "0s ago",
		59 * time.Second:                "59s ago",
		time.Minute:                     "1m ago",
		59*time.Minute + 59*time.Second: "59m ago",
		time.Hour:                       "1h ago",
		47 * time.Hour:                  "47h ago",
		48 * time.Hour:                  "2d ago",
		400 * 24 * time.Hour:            "400d ago",
	} {
		expect.Equal(t, AgeText(age), want, age)
	}
}
