package main

import (
	"strings"
	"testing"
	"time"
)

func TestTable(t *testing.T) {
	ms := func(of ...int) (all []time.Duration) {
		for _, n := range of {
			all = append(all, time.Duration(n)*time.Millisecond)
		}
		return all
	}
	yard := &contestant{
		name: "yard", initialize: ms(4, 2, 9), echoP50: ms(1), echoP99: ms(2), readP50: ms(2), readP99: ms(4), perSecond: []float64{2000}, large: ms(100), answered: bigSize, idle: []int64{10 << 20},
	}
	one := &contestant{
		name: "one", version: "v1", against: yard, initialize: ms(8, 8, 1), readP50: ms(1), readP99: ms(8), perSecond: []float64{1000, 3000, 500}, large: ms(7), answered: 2048, idle: []int64{5 << 20},
	}
	got := tableOf([]*contestant{one, yard}, 3, "a machine")
	for _, want := range []string{
		"Medians of 3 interleaved rounds, a machine.",
		"| one | v1 | 8.0 ms (2.00) | – | 1000 / 8000 µs (0.50 / 2.00) | 1.0k/s (0.50) | 7.0 ms, answered by 2 kB | 5 MB (0.50) |",
		"| yard |  | 4.0 ms | 1000 / 2000 µs | 2000 / 4000 µs | 2.0k/s | 100.0 ms | 10 MB |",
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
