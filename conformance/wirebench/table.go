package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// quantile sorts what it is given.
func quantile[T cmp.Ordered](of []T, q float64) T {
	if len(of) == 0 {
		var none T
		return none
	}
	slices.Sort(of)
	return of[min(int(math.Ceil(q*float64(len(of))))-1, len(of)-1)]
}

func median[T cmp.Ordered](of []T) T { return quantile(slices.Clone(of), 0.5) }

// tableOf has a row a server: medians over the rounds, and in brackets what they are to the yardstick's.
func tableOf(servers []*contestant, rounds int, machine string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Medians of %d interleaved rounds, %s. In brackets: how many times the figure of go-sdk over the same transport.\n\n", rounds, machine)
	fmt.Fprintf(&b, "| server | version | start → initialize | echo p50 / p99 | read 1 kB p50 / p99 | %d reads at once | 10 MB file asked for | idle memory |\n|---|---|---:|---:|---:|---:|---:|---:|\n", atOnce)
	for _, s := range servers {
		y := s.against
		if y == nil {
			y = &contestant{}
		}
		large := millis(s.large, y.large)
		if s.answered < bigSize {
			large = fmt.Sprintf("%s, answered by %d kB", millis(s.large, nil), s.answered>>10)
		}
		cells := []string{
			s.name, s.version, millis(s.initialize, y.initialize), pair(s.echoP50, s.echoP99, y.echoP50, y.echoP99), pair(s.readP50, s.readP99, y.readP50, y.readP99),
			fmt.Sprintf("%.1fk/s", median(s.perSecond)/1000) + ratio(s.perSecond, y.perSecond), large, fmt.Sprintf("%d MB", median(s.idle)>>20) + ratio(s.idle, y.idle),
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

// ratio is empty where there is no yardstick.
func ratio[T time.Duration | float64 | int64](a, b []T) string {
	if len(a) == 0 || len(b) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%.2f)", float64(median(a))/float64(median(b)))
}

func pair(p50, p99, y50, y99 []time.Duration) string {
	if len(p50) == 0 {
		return "–"
	}
	return fmt.Sprintf("%d / %d µs", median(p50).Microseconds(), median(p99).Microseconds()) +
		strings.Replace(ratio(p50, y50), ")", strings.Replace(ratio(p99, y99), " (", " / ", 1), 1)
}

func millis(of, against []time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(median(of).Microseconds())/1000) + ratio(of, against)
}
