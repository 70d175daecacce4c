package tokens

import (
	"regexp"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestATotalIsTold(t *testing.T) {
	for _, c := range []struct {
		total Total
		want  string
	}{
		{Total{N: 24611}, "24611"},
		{Total{N: 0}, "0"},
		{Total{N: 24611, Margin: 0.01}, "~24600 ±1 %"},
		{Total{N: 8403, Margin: 0.35, Estimated: true}, "≈8400 ±35 %"},
		{Total{N: 1125007, Margin: 0.0004}, "~1125000 ±0.1 %"},
		{Total{N: 1125007, Margin: 0.0022}, "~1125000 ±0.3 %"},
		{Total{N: 999, Margin: 0.001}, "~999 ±0.1 %"},
		{Total{N: 0, Margin: 0.01}, "~0 ±1 %"},
	} {
		expect.Equal(t, c.total.String(), c.want, c.total.N)
	}
}

// Rounding changes an estimate by at most half of the printed margin, so the printed interval contains the estimate.
func TestATotalIsWithinItsOwnMargin(t *testing.T) {
	told := regexp.MustCompile(`^[~≈](\d+) ±([\d.]+) %$`)
	rapid.Check(t, func(t *rapid.T) {
		total := Total{
			N:         rapid.Int64Range(0, 1<<40).Draw(t, "tokens"),
			Margin:    rapid.Float64Range(1e-6, 0.5).Draw(t, "margin"),
			Estimated: rapid.Bool().Draw(t, "by factor"),
		}
		m := told.FindStringSubmatch(total.String())
		if m == nil {
			t.Fatalf("%+v is told as %s", total.N, total)
		}
		n, _ := strconv.ParseInt(m[1], 10, 64)
		percent, _ := strconv.ParseFloat(m[2], 64)
		if off := float64(max(n-total.N, total.N-n)); off > float64(total.N)*percent/200 ||
			percent/100 < total.Margin*(1-1e-9) {
			t.Errorf("%d ±%v is told as %s", total.N, total.Margin, total)
		}
	})
}
