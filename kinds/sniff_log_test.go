package kinds

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// The patterns that are written out by hand.
var (
	levelFieldPattern = regexp.MustCompile(`(?:^|[ \t{,])(?:level|lvl|severity)=["']?\w`)
	foundPattern      = regexp.MustCompile(`^[^\s:]+[./\w-]*\.?\w*:\d+[:-]`)
	carriedPattern    = regexp.MustCompile(
		`^(?:\s+\S|at |Caused by|Traceback|goroutine \d|[\w./*()-]+\(.*\)$|created by |\S+Error: |\.{3} \d+ more|exit status)`,
	)
	levelWordPattern = regexp.MustCompile(
		`\b(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|CRITICAL|CRIT|FATAL|PANIC|SEVERE|trace|debug|info|notice|warn|warning|error|critical|fatal|panic)\b`,
	)
)

// stampedSieve and levelledSieve are part of the answers: what they leave out, no pattern is asked about.
func stampedSieve(l []byte) bool {
	return bytes.ContainsAny(l[:min(len(l), 56)], "0123456789") && bytes.IndexByte(l[:min(len(l), 80)], ':') > 0 ||
		bytes.IndexByte(l[:min(len(l), 24)], '.') > 0 && bytes.ContainsAny(l[:min(len(l), 2)], "[ 1")
}

func levelledSieve(l []byte) bool {
	return len(l) > 0 && bytes.IndexByte([]byte("[(<tTdDiInNwWeEcCfFpPsSaAV"), l[0]) >= 0
}

// asPatterns says which of the beginnings a line has, and fails where patterns say otherwise.
func asPatterns(t expect.TB, l []byte) (has [5]bool) {
	t.Helper()
	for i, b := range []struct {
		name      string
		got, want bool
	}{
		{"isCarried", isCarried(l), carriedPattern.Match(l)},
		{"isFound", isFound(l), foundPattern.Match(l)},
		{"stamped", stampEnd(l) > 0, stampedSieve(l) && stamped().Match(l)},
		{"hasLevel", hasLevel(l), levelledSieve(l) && levelled().Match(l) || levelFieldPattern.Match(l)},
		{"hasLevelWord", hasLevelWord(l), levelWordPattern.Match(l)},
	} {
		expect.MustEqual(t, b.got, b.want, "%s of %q, pattern says", b.name, l)
		has[i] = b.got
	}
	if end := stampEnd(l); end > 0 && end != stamped().FindIndex(l)[1] {
		t.Fatalf("the time that %q begins with ends at %d, the pattern says %v", l, end, stamped().FindIndex(l))
	}
	return has
}

var beginnings = strings.Split(`at |Caused by|Traceback|goroutine |goroutine 1|created by |Error: |xError: |... |... 3 more|more|exit status|(|)|main.f(|a/b.(*T).f(0x1)|:|:12:|:12-|a.go|=|level|level=|lvl=|severity=|level="x|{|,|'|"|[|]|<|>|<12>|<1234>|E/|V/tag|V/tag(|V/tag:`+
	`|trace|DEBUG|Info|notice|warn|warning|Error|err|crit|CRITICAL|fatal|panic|severe|fine|emerg|alert|inform|ſevere|é|`+"\xff"+`| |	|  |`+"\f|\r|\v|\u00a0"+
	`|2026-11-20 10:00:00|2026-11-20T10:00:00.123Z|2026-11-20T10:00|2026.11.20_10:00:00,123456789|2026/11/20:10:00:00| UTC|Z|+0100| +01:00|-01:0|+01|:59|.|.5|,|2026/11/20|time=|ts=|time="|time=ts=2026-11-20 10:00|ts=2026-11-20 10:00|Nov 20 10:00:00|Mon Nov 20 10:00:00|Mon, |, Nov 20 10:00:00 2026|20/Nov/2026:10:00:00 +0000|11-20 10:00:00|I1120 10:00:00.000000|E1|    0.000123|0.000000|12.345678|1700000000|1700000000.123|1700000000123|12:00:01|12:00:01,5|web_1|web_1  |db-1.x|a long name of a container that has more than forty letters|-|.|_|x|12|0`, "|")

func TestBeginningsAreThePatterns(t *testing.T) {
	part := rapid.OneOf(
		rapid.SampledFrom(append(beginnings, "|", " | ", "| ")), rapid.StringMatching(`[\x00-\x09\x0b-\x7f]{0,3}`),
		rapid.StringN(0, 2, 6),
	)
	rapid.Check(t, func(t *rapid.T) {
		l := strings.ReplaceAll(strings.Join(rapid.SliceOfN(part, 0, 6).Draw(t, "parts"), ""), "\n", "")
		asPatterns(t, []byte(l))
	})
	// Pairs and triples of them, so that nothing depends on the draw, and each beginning is there.
	var seen [5]int
	for _, a := range beginnings {
		for _, b := range beginnings {
			for _, c := range []string{"", " ", ":", "| 12:00:01 x", ")", " more", "x"} {
				for i, has := range asPatterns(t, []byte(a+b+c)) {
					if has {
						seen[i]++
					}
				}
			}
		}
	}
	for i, n := range seen {
		if n < 50 {
			t.Errorf("beginning %d was seen %d times only", i, n)
		}
	}
}

func TestBeginningsOfRealLines(t *testing.T) {
	for _, text := range [][]byte{corpus.PanicLog(), corpus.WarAndPeace(), corpus.CSV20k(), corpus.WarAndPeaceDiff()} {
		for l := range bytes.Lines(text[:min(len(text), 300_000)]) {
			asPatterns(t, bytes.TrimRight(l, "\r\n"))
		}
	}
}

func FuzzBeginnings(f *testing.F) {
	for _, b := range beginnings {
		f.Add([]byte(b))
	}
	f.Fuzz(func(t *testing.T, l []byte) {
		if len(l) <= 256 && bytes.IndexByte(l, '\n') < 0 {
			asPatterns(t, l)
		}
	})
}
