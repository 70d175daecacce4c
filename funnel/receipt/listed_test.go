package receipt

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var (
	listedFiles = regexp.MustCompile(`(?m)^largest files \(added \+ deleted\), (\d+ of \d+):$`)
	fileLine    = regexp.MustCompile(`(?m)^\d+: .*\.go .*\+\d+ −\d+$`)
)

// TestListOfFilesNamesItsLength: a receipt of a diff that names some of the files says how many of how many; one that
// names all has no such line.
func TestListOfFilesNamesItsLength(t *testing.T) {
	for _, files := range []int{1, 7, 30, 220, 9000} {
		var b strings.Builder
		for i := range files {
			fmt.Fprintf(&b, "diff --git a/src/f%d.go b/src/f%d.go\nindex 1111111..2222222 100644\n--- a/src/f%d.go\n"+
				"+++ b/src/f%d.go\n@@ -1,3 +1,%d @@\n one\n-two\n", i, i, i, i, 3+i%7)
			b.WriteString(strings.Repeat("+zwei\n", 1+i%7) + " three\n")
		}
		for _, cut := range []int{0, 7} { // the second breaks off inside a hunk
			c := captureOf(b.String()[:b.Len()-cut])
			for ceiling := 60; ceiling <= 1500; ceiling += 90 {
				receipt, tokens := draftOf(c, "").Fit(ceiling)
				named, said := len(fileLine.FindAllString(receipt, -1)), listedFiles.FindStringSubmatch(receipt)
				switch {
				case ceiling > 100 && tokens > ceiling:
					t.Errorf("%d tokens at a ceiling of %d", tokens, ceiling)
				case named == 0 || named == files:
					if said != nil {
						t.Errorf("%s, but %d of %d files are named", said[0], named, files)
					}
				case said == nil || said[1] != fmt.Sprintf("%d of %d", named, files):
					t.Errorf("%d of %d files are named: %q in\n%s", named, files, said, receipt)
				}
			}
		}
	}
}
