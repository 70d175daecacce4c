package logs

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// twinOf returns the number of a value with a unit, and the name of its field, so that filters can compare it: took=1.5s
// has took_ms 1500, and size=1.5MB size_bytes 1500000. A single m means minutes only if the key says that it is a
// duration. The name of all other values is "".
func twinOf(key, value string) (name, number string) {
	if m := sizes().FindStringSubmatch(value); m != nil {
		n, err := strconv.ParseFloat(m[1], 64)
		n *= math.Pow(map[string]float64{"": 1000, "i": 1024}[m[3]], float64(strings.Index(" KMGTP", strings.ToUpper(m[2]))))
		if err != nil || n >= 1<<63 {
			return "", ""
		}
		return key + "_bytes", strconv.FormatFloat(math.Round(n), 'f', -1, 64)
	}
	d, err := time.ParseDuration(strings.Replace(value, " ", "", 1))
	minutes := strings.HasSuffix(value, "m") && !strings.ContainsAny(value, "hs") // or MiB, or thousandths
	if err != nil || value[len(value)-1] == '0' || minutes && !duration().MatchString(key) {
		return "", ""
	}
	return key + "_ms", strconv.FormatFloat(float64(d)/1e6, 'f', -1, 64)
}

var (
	sizes = content.Pattern(`^(\d+(?:\.\d+)?) ?([kKMGTP]?)(i?)B$`)
	// duration matches keys of durations, by their last word.
	duration = content.Pattern(`(?i)(took|time|timeout|duration|elapsed|latency|ttl|interval|wait|delay|period|deadline|` +
		`backoff|expiry|(^|[_.-])(lat|age|dur|expires|since|every))$`)
)
