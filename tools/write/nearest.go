package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Limits of errors on a text that is not found once.
const (
	maxNearest  = 4 << 20 // bytes of a file in which the nearest lines are looked for
	maxShown    = 12      // lines of a file that an error shows
	maxLine     = 160     // bytes of each
	maxPlaces   = 10      // places whose lines are named
	telling     = 16      // bytes of a new text that are not in the file by chance
	maxVotes    = 100     // beginnings that a word of a line votes for
	fewestVotes = 0.2     // of all words of the text, in the same order of lines
)

// mask matches what answers show in place of a secret; see docs/SECRETS.md.
var mask = content.Pattern(`\[masked(: [a-z0-9-]+( \S+ \d+ chars)?)?\]`)

// maskedIn returns an error if a text to be written has a mask that was not in the text before: the secret would be lost.
func maskedIn(text, before string) error {
	had := map[string]bool{}
	for _, m := range mask().FindAllString(before, -1) {
		had[m] = true
	}
	for _, m := range mask().FindAllString(text, -1) {
		if !had[m] {
			return fmt.Errorf("the new text has %s, which is shown in place of a secret, and would replace it: leave this part "+
				"out of the edit", m)
		}
	}
	return nil
}

// explainSeveral returns the error for an old text that is at several places: their lines.
func (p *pieces) explainSeveral(ctx context.Context, places []place) error {
	var lines []string
	line, from := 1, int64(0)
	for _, one := range places[:min(len(places), maxPlaces)] {
		_, n, err := p.part(from, one.at).find(ctx, "\n", 0)
		if err != nil {
			return err
		}
		line, from = line+n, one.at
		lines = append(lines, fmt.Sprint(line))
	}
	more := ""
	if len(places) > maxPlaces {
		more = ", …"
	}
	return fmt.Errorf("old is in the file %d times, at lines %s%s: give more lines of one place, or all=true",
		len(places), strings.Join(lines, ", "), more)
}

// explainMissing returns the error for an old text that is not in the file: the nearest lines and what differs.
func (p *pieces) explainMissing(ctx context.Context, one Edit) error {
	if mask().MatchString(one.Old) {
		return errors.New("old has a mask, shown in place of a secret, and the file has the secret: choose a text without it")
	}
	if p.size() > maxNearest {
		return fmt.Errorf("old is not in the file, which has over %d MiB, too many to look for what is nearest: grep finds it",
			maxNearest>>20)
	}
	if len(strings.TrimSpace(one.New)) >= telling {
		if at, n, _ := p.find(ctx, one.New, 1); n > 0 {
			_, line, _ := p.part(0, at[0].at).find(ctx, "\n", 0)
			return fmt.Errorf("old is not in the file, but new is, at line %d: the edit seems to be made already", line+1)
		}
	}
	all, err := io.ReadAll(p.enc.Reader(content.WithContext(ctx, p.reader())))
	if err != nil {
		return err
	}
	lines, want := splitLines(string(all)), splitLines(one.Old)
	from := nearest(lines, want)
	if from < 0 {
		return errors.New("old is not in the file, and no lines are like it: read or grep shows what is there")
	}
	to := min(from+len(want), len(lines))
	var diff strings.Builder
	hunks(&diff, asText(want), asText(lines[from:to]), int64(from))
	rows := strings.Split(strings.TrimSuffix(diff.String(), "\n"), "\n")[1:]
	what := ""
	if slices.Equal(want, lines[from:to]) {
		what = `, which differ in line ends alone: give \r\n where a line ends so, no end where the last has none`
	} else if squeezed(strings.Join(want, "\n")) == squeezed(strings.Join(lines[from:to], "\n")) {
		what = ", which differ in white space or case alone"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "old is not in the file; nearest are lines %d-%d%s (- old, + the file):\n", from+1, to, what)
	for _, row := range rows[:min(len(rows), maxShown)] {
		b.WriteString(content.ClipBytes(row, maxLine) + "\n")
	}
	if more := len(rows) - maxShown; more > 0 {
		b.WriteString("(" + content.Plural(int64(more), "more line", "more lines") + ")\n")
	}
	return errors.New(b.String())
}

func asText(lines []string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }

// splitLines returns the lines of a text, without their ends.
func splitLines(text string) []string {
	text = strings.TrimSuffix(text, "\n")
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	return lines
}

// nearest returns the index of the line at which the wanted lines most likely begin; -1 if none is like them. Each word
// that a line shares with a wanted one votes, with its length, for the beginning that it means.
func nearest(lines, want []string) int {
	meant, all := map[string][]int{}, 0
	for i, line := range want {
		for word := range wordsOf(line) {
			if len(meant[word]) < maxVotes {
				meant[word] = append(meant[word], i)
				all += len(word)
			}
		}
	}
	votes, best := make([]int, len(lines)), 0
	for at, line := range lines {
		for word := range wordsOf(line) {
			for _, i := range meant[word] {
				votes[max(at-i, 0)] += len(word)
			}
		}
	}
	for from, n := range votes {
		if n > votes[best] {
			best = from
		}
	}
	if float64(votes[best]) <= fewestVotes*float64(all) {
		return -1
	}
	return best
}

// squeezed returns a line without white space, in lower case.
func squeezed(line string) string {
	return strings.ToLower(strings.Join(strings.Fields(line), ""))
}

// wordsOf returns the names and numbers in a line, in lower case.
func wordsOf(line string) map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsFuncSeq(strings.ToLower(line), func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsNumber(r)
	}) {
		words[word] = true
	}
	return words
}
