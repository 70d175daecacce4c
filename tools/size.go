package tools

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// ParseSize reads a number of bytes: 500, 10KB (1,000 each), 10KiB or 10K (1,024 each), in any case.
func ParseSize(text string) (int64, error) {
	upper := strings.ToUpper(strings.TrimSpace(text))
	number := strings.TrimRight(upper, "BIKMGT ")
	factor, ok := map[string]float64{
		"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
		"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
	}[strings.TrimSpace(upper[len(number):])]
	n, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(n >= 0) || n*factor > math.MaxInt64/2 {
		return 0, fmt.Errorf("%q: not a size such as 500, 10KB, 1.5MB, 1GiB", content.ClipBytes(text, 200))
	}
	return int64(n * factor), nil
}
