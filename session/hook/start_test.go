package hook

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
)

// id returns the ID of a letter.
func id(of byte) string { return fmt.Sprintf("00000000000%c", of) }

// TestRank: more uses count more, and later ones; a use is a call that makes or reads an output, and the order of
// processes in the trace does not matter.
func TestRank(t *testing.T) {
	at := time.Now()
	uses := func(names string) (calls []trace.Call) {
		for i, name := range []byte(names) {
			c := trace.Call{At: at.Add(time.Duration(i) * time.Second)}
			switch {
			case name == '-':
			case i%3 == 0:
				c.Observation = id(name)
			case i%3 == 1:
				c.Source = "a.go, obs:" + id(name)
			default:
				c.Origin = []string{"observation://" + id(name)}
			}
			calls = append([]trace.Call{c}, calls...)
		}
		return calls
	}
	old := "aaa---------------------------------------------------------------------------------------b"
	for names, want := range map[string]string{
		"": "", "---": "", "ab": "ba", "aab": "ab", "abab": "ba", "aaabbc": "abc", "a" + "bcbcbcbc": "cba", old: "ba",
	} {
		got := ""
		for _, one := range Rank(uses(names)) {
			got += string(one[len(one)-1:])
		}
		expect.Equal(t, got, want, "%s", names)
	}
	// Two lists of one session are merged: what one of them lacks counts as in the other, and nothing counts twice.
	got := ""
	for _, one := range Rank(uses("aab"), uses("bccc")) {
		got += string(one[len(one)-1:])
	}
	expect.Equal(t, got, "cab")
}

func TestMentions(t *testing.T) {
	text := "obs:" + id('a') + " xobs:" + id('b') + "\nnone\nobs:" + id('c') + "d obs:" + id('e') + "."
	var got []string
	for _, c := range Mentions([]byte(text)) {
		got = append(got, c.Origin...)
	}
	expect.EqualList(t, got, []string{observations.Prefix + id('a'), observations.Prefix + id('e')})
}
