package fs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// parseWhen parses an age (90m, 24h, 7d, 2w) or a time (RFC 3339, or only its date, in UTC). "" is the zero time.
func parseWhen(s string, now time.Time) (time.Time, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	if ago, ok := parseAgo(s); ok {
		return now.Add(-ago), nil
	}
	return time.Time{}, fmt.Errorf("newer %q: not a duration (90m, 24h, 7d, 2w) nor an RFC 3339 time (2026-01-31T12:00:00Z)",
		content.ClipBytes(s, 200))
}

func parseAgo(s string) (time.Duration, bool) {
	for unit, hours := range map[string]float64{"d": 24, "w": 7 * 24} {
		if number, ok := strings.CutSuffix(s, unit); ok {
			n, err := strconv.ParseFloat(number, 64)
			if err != nil || !(n >= 0) || n*hours > float64(math.MaxInt64/time.Hour) {
				return 0, false
			}
			return time.Duration(n * hours * float64(time.Hour)), true
		}
	}
	d, err := time.ParseDuration(s)
	return d, err == nil && d >= 0
}

// parseSize is tools.ParseSize, with 0 for "".
func parseSize(s string) (int64, error) {
	if strings.TrimSpace(s) == "" {
		return 0, nil
	}
	n, err := tools.ParseSize(s)
	if err != nil {
		return 0, fmt.Errorf("larger %w", err)
	}
	return n, nil
}
