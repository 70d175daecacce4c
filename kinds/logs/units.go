package logs

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// twin is the number in a value that has a unit.
type twin struct{ key, number string }

// twinOf returns the number of a value with a unit, so that filters can compare it: took=1.5s has took_ms 1500, and
// size=1.5MB has size_bytes 1500000. ok is false for all other values.
func twinOf(key, value string) (t twin, ok bool) {
	if value == "" || len(value) > 40 || value[0] != '-' && value[0] != '.' && (value[0] < '0' || value[0] > '9') {
		return t, false
	}
	if m := sizes().FindStringSubmatch(value); m != nil {
		n, err := strconv.ParseFloat(m[1], 64)
		base := 1000.0
		if m[3] != "" {
			base = 1024
		}
		n *= math.Pow(base, float64(strings.Index("kmgtp", strings.ToLower(m[2]))+1)*float64(len(m[2])))
		return twin{key + "_bytes", strconv.FormatFloat(math.Round(n), 'f', -1, 64)}, err == nil && n < 1<<63
	}
	if strings.HasSuffix(value, "m") && memory().MatchString(key) { // 512m is a size there, of a base that nobody says
		return t, false
	}
	d, err := time.ParseDuration(strings.Replace(value, " ", "", 1))
	if err != nil || record.IsNumber(value) {
		return t, false
	}
	return twin{key + "_ms", strconv.FormatFloat(float64(d)/1e6, 'f', -1, 64)}, true
}

var (
	sizes  = content.Pattern(`^(\d+(?:\.\d+)?) ?([kKMGTP]?)(i?)B$`)
	memory = content.Pattern(`(?i)mem|heap|size|bytes|disk|rss|buffer|quota|capacity|xm[xs]|limit`)
)

// addTwins adds the numbers of values with units, but none that replaces a field or a pair of the line.
func addTwins(o *record.Object, all []twin, seen map[string]bool, fixed []string) {
	for _, t := range all {
		if !seen[t.key] && !slices.Contains(fixed, t.key) {
			seen[t.key] = true
			o.Raw(t.key, t.number)
		}
	}
}
