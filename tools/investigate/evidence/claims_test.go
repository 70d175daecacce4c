package evidence

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// claim is a generated citation and what is true of it.
type claim struct {
	kind       string
	text       string
	file       string
	line, want int // as cited; where the quote begins
	quote      string
}

// trusting is the control: a checker that accepts each citation whose lines exist.
func trusting(one claim, files *tree) bool {
	return one.line >= 1 && one.line <= strings.Count(files.files[one.file], "\n")
}

func TestThousandCitations(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 2026))
	words := strings.Fields("open close read write pool session limit token retry error " +
		"line page store cache lock chunk range")
	files := newTree(map[string]string{})
	for f := range 30 {
		var b strings.Builder
		for n := range 60 + r.IntN(400) {
			b.WriteString(strings.Repeat("\t", r.IntN(4)))
			for range 2 + r.IntN(4) {
				b.WriteString(words[r.IntN(len(words))] + strings.Repeat(" ", 1+r.IntN(2)))
			}
			fmt.Fprintf(&b, "= %d_%d;\n", f, n*n)
		}
		files.files[fmt.Sprintf("dir%d/file%d.go", f%4, f)] = b.String()
	}
	names := slices.Sorted(maps.Keys(files.files)) // without the binary file
	files.files["dir0/image.png"] = "PNG\x00" + strings.Repeat("\n", 500)
	lineOf := func(file string, n int) string {
		return strings.Join(strings.Fields(strings.Split(files.files[file], "\n")[n-1]), " ")
	}
	kinds := []string{"true", "shifted", "out of range", "altered", "other file", "binary"}
	var claims []claim
	for i := range 1000 {
		one := claim{kind: kinds[i%len(kinds)], file: names[r.IntN(len(names))]}
		count := strings.Count(files.files[one.file], "\n")
		one.want = 1 + r.IntN(count)
		one.line, one.quote = one.want, lineOf(one.file, one.want)
		switch one.kind {
		case "shifted":
			for one.line == one.want || one.line < 1 || one.line > count {
				one.line = one.want + r.IntN(41) - 20
			}
		case "out of range":
			one.line, one.quote = count+1+r.IntN(100), "" // a quote would be found elsewhere
		case "altered":
			at := r.IntN(len(one.quote))
			for one.quote[at] == ' ' {
				at = r.IntN(len(one.quote))
			}
			one.quote = one.quote[:at] + "#" + one.quote[at+1:]
		case "other file":
			other := one.file
			for other == one.file {
				other = names[r.IntN(len(names))]
			}
			one.quote = lineOf(other, 1+r.IntN(strings.Count(files.files[other], "\n")))
		case "binary":
			one.file, one.line = "dir0/image.png", 1+r.IntN(400)
		}
		quoted := [][2]string{{`"`, `"`}, {"“", "”"}, {"`", "`"}}[r.IntN(3)]
		if one.text = fmt.Sprintf("It does so (%s:%d).", one.file, one.line); one.quote != "" {
			one.text = fmt.Sprintf("It has %s%s%s in %s:%d. ", quoted[0], one.quote, quoted[1], one.file, one.line)
		}
		claims = append(claims, one)
	}
	good, shifted, repaired, fooled := 0, 0, 0, 0
	for part := range slices.Chunk(claims, 250) { // one note each, below the limit of 500
		var note strings.Builder
		for _, one := range part {
			note.WriteString(one.text + []string{" ", "\n", "\n\n"}[r.IntN(3)])
		}
		all := Check(note.String(), "dir0", files)
		expect.MustEqual(t, len(all), len(part), "citations found")
		again := Check(Repair(note.String(), all), "dir0", files)
		for i, one := range part {
			got := all[i]
			stands := got.Line > 0 && strings.Contains(lineOf(one.file, got.Line), one.quote)
			evident := got.Verdict == Holds || got.Verdict == Moved
			switch one.kind {
			case "true":
				good++
				if got.Verdict != Holds || got.Line != one.want {
					t.Errorf("true: %+v", got)
				}
			case "shifted":
				shifted++
				if got.Verdict == Holds || evident && !stands {
					t.Errorf("shifted: %+v", got)
				}
				if got.Verdict == Moved && got.Line == one.want && again[i].Verdict == Holds && again[i].From == one.want {
					repaired++
				}
			case "binary":
				expect.Equal(t, got.Verdict, Unknown, "binary: %+v", got)
			default:
				if evident {
					t.Errorf("%s: %+v", one.kind, got)
				}
				if trusting(one, files) {
					fooled++
				}
			}
		}
	}
	if repaired*100 < shifted*99 {
		t.Errorf("%d of %d shifted citations are repaired", repaired, shifted)
	}
	if fooled == 0 {
		t.Error("the control accepts no false citation: the test cannot fail")
	}
	t.Logf("%d true hold, %d of %d shifted repaired, the control accepts %d false ones", good, repaired, shifted, fooled)
}
