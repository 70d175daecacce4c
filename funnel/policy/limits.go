package policy

import (
	"fmt"
	"strings"
)

// Limits are the sizes an operator may set. A zero field means its default.
type Limits struct {
	LargeLines    int // an output of more lines is large: 50
	LargeChars    int // an output of more chars is large: 2,000
	HeadLines     int // maximum number of head lines in a receipt; default 10
	TailLines     int // lines of the tail in a receipt, at most: 5
	ReceiptTokens int // of a receipt, at most: 600, from 160 to 4,000
	MinSaving     int // percentage of an output's tokens that its receipt must save: 40, from 1 to 90
	PageTokens    int // of a page, at most: 4,000, from 400 to 40,000; never over 40,000 chars
}

// MinReceipt and MaxReceipt bound Limits.ReceiptTokens. The first line, the totals and the next step of a receipt take
// about 100 tokens; below 160 there is no room for anything else.
const (
	MinReceipt = 160
	MaxReceipt = 4000
)

// MaxPageChars bounds a page whatever its tokens: common clients cut above 25,000 tokens or 50,000 chars.
const MaxPageChars = 40_000

// minPageTokens leaves room for rows after the header, in which a call with all its arguments takes up to 150 tokens.
const minPageTokens = 400

// Defaults are a screen of lines before an output counts as large, a receipt of one screen, and a page of five.
var Defaults = Limits{
	LargeLines: 50, LargeChars: 2000, HeadLines: 10, TailLines: 5, ReceiptTokens: 600, MinSaving: 40, PageTokens: 4000,
}

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
	{"min saving", func(l *Limits) *int { return &l.MinSaving }, 1, 90},
	{"page tokens", func(l *Limits) *int { return &l.PageTokens }, minPageTokens, MaxPageChars},
}

// Set sets the limit of a name, such as page_tokens or page-tokens. It does not check the range: WithDefaults does.
func (l *Limits) Set(name string, n int) error {
	words := strings.NewReplacer("_", " ", "-", " ").Replace(name)
	names := make([]string, 0, len(bounds))
	for _, b := range bounds {
		if b.name == words {
			if n == 0 {
				return fmt.Errorf("limits: %s must be from %d to %d, not 0", b.name, b.min, b.max)
			}
			*b.of(l) = n
			return nil
		}
		names = append(names, strings.ReplaceAll(b.name, " ", "_"))
	}
	return fmt.Errorf("limits: unknown limit %.40q; limits: %s", name, strings.Join(names, ", "))
}

// WithDefaults returns l with its zero fields taken from base, or an error that names the limit out of range.
func (l Limits) WithDefaults(base Limits) (Limits, error) {
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
