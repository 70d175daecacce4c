//go:build linux

package main

import (
	"strings"
	"testing"
)

func TestWireTable(t *testing.T) {
	const milli, mega = 1e6, 1 << 20
	reference := &wireServer{name: "go-sdk", answerSize: bigSize}
	reference.figures = [figureCount][]float64{
		starting: {4 * milli, 2 * milli, 9 * milli}, echo50: {milli}, echo99: {2 * milli},
		read50: {2 * milli}, read99: {4 * milli},
		rate: {2000}, large: {100 * milli}, idle: {10 * mega},
	}
	one := &wireServer{name: "one", version: "v1", answerSize: 2048}
	one.figures = [figureCount][]float64{
		starting: {8 * milli, 8 * milli, milli}, read50: {milli}, read99: {8 * milli},
		rate: {1000, 3000, 500}, large: {7 * milli}, idle: {5 * mega},
	}
	got := wireTable([]*wireServer{one, reference}, 3, "a machine")
	for _, want := range []string{
		"Medians of 3 interleaved rounds, a machine.",
		"| one | v1 | 8.0 ms (2.00) | – | 1000 / 8000 µs (0.50 / 2.00) | 1.0k/s (0.50) | 7.0 ms, answered by 2 kB | 5 MB (0.50) |",
		"| go-sdk |  | 4.0 ms | 1000 / 2000 µs | 2000 / 4000 µs | 2.0k/s | 100.0 ms | 10 MB |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing:\n%s", want, got)
		}
	}
}

func TestQuantile(t *testing.T) {
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = 100 - i
	}
	for q, want := range map[float64]int{0.01: 1, 0.5: 50, 0.99: 99, 1: 100} {
		if got := quantile(hundred, q); got != want {
			t.Errorf("quantile %g of 1 … 100 is %d, want %d", q, got, want)
		}
	}
	if got := median([]int{7}); got != 7 {
		t.Errorf("the median of 7 is %d", got)
	}
}

func TestFailed(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for answer, want := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`:                                       false,
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"` + long + `"}]}}`:                false,
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"` + long + `"}],"isError":true}}`: true,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"` + long + `"}}`:              true,
		`{"jsonrpc":"2.0","id":1,"result":`:                                                      true,
		``:                                                                                       true,
	} {
		if got := failed([]byte(answer)) != nil; got != want {
			t.Errorf("%.80s: failed %t, want %t", answer, got, want)
		}
	}
}
