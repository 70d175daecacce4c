package funnel

import "fmt"

// Limits are the sizes an operator may set. Zero values mean the defaults.
type Limits struct {
	LargeLines    int // over this many lines is large: 50
	LargeChars    int // over this many chars is large: 2,000
	HeadLines     int // 10
	TailLines     int // 5
	ReceiptTokens int // ceiling of a receipt: 600, from 160 to 4,000
	PageTokens    int // of a page: 4,000, from 400 to 40,000; never over 40,000 chars
}

// MinReceipt and MaxReceipt bound Limits.ReceiptTokens. The frame of a receipt
// (first line, totals, next) takes about 100 tokens; below 160 there is no room for anything it frames.
const (
	MinReceipt = 160
	MaxReceipt = 4000
)

// maxPageChars bounds a page whatever its tokens: common clients cut above 25,000 tokens or 50,000 chars.
const maxPageChars = 40_000

// minPage leaves rows their place beside the header: a call worded in full takes up to 150 tokens.
const minPage = 400

// defaults are the sizes of DESIGN's tables: a screen of lines, a receipt of a screen, a page of five.
var defaults = Limits{LargeLines: 50, LargeChars: 2000, HeadLines: 10, TailLines: 5, ReceiptTokens: 600, PageTokens: 4000}

// bounds of each limit, both ends included.
var bounds = []struct {
	name     string
	of       func(*Limits) *int
	min, max int
}{
	{"large lines", func(l *Limits) *int { return &l.LargeLines }, 1, 10_000},
	{"large chars", func(l *Limits) *int { return &l.LargeChars }, 1, 200_000},
	{"head lines", func(l *Limits) *int { return &l.HeadLines }, 1, 100},
	{"tail lines", func(l *Limits) *int { return &l.TailLines }, 1, 100},
	{"receipt tokens", func(l *Limits) *int { return &l.ReceiptTokens }, MinReceipt, MaxReceipt},
	{"page tokens", func(l *Limits) *int { return &l.PageTokens }, minPage, maxPageChars},
}

// over gives l with what is not set taken from base, or says which limit is out of its range.
func (l Limits) over(base Limits) (Limits, error) {
	for _, b := range bounds {
		v := b.of(&l)
		if *v == 0 {
			*v = *b.of(&base)
		}
		if *v < b.min || *v > b.max {
			return Limits{}, fmt.Errorf("limits: %s must be from %d to %d, not %d", b.name, b.min, b.max, *v)
		}
	}
	return l, nil
}
