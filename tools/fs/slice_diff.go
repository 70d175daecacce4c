package fs

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/diff"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// findInDiff returns the place of a file of a diff, /N, or of a hunk, /N/hunks/M, as numbered in the objects that jq
// reads. It adds a note that names the file of a hunk.
func (s *slicer) findInDiff(pointer string) (at content.Span, err error) {
	parts := strings.Split(pointer, "/")
	file, hunk := int64(-1), -1
	if len(parts) > 1 && parts[0] == "" {
		file = index(parts[1])
	}
	if len(parts) == 4 && parts[2] == "hunks" {
		hunk = int(index(parts[3]))
	}
	if file < 0 || len(parts) != 2 && hunk < 0 {
		return at, &diff.PointError{Pointer: pointer, Reason: "this is neither"}
	}
	seen, reason := int64(0), ""
	err = diff.Files(s.ctx, s.text.reader(0), func(i int64, f *diff.File) bool {
		if seen = i + 1; i < file {
			return true
		}
		if damage := f.Damage(); damage != "" {
			s.out.Note(content.ClipBytes(f.Name(), 200) + " is truncated: " + damage)
		}
		switch {
		case len(parts) == 2:
			at = f.At
		case hunk < len(f.Hunks):
			at = f.Hunks[hunk].At
			s.out.Note(fmt.Sprintf("hunk %d of %d of %s", hunk, len(f.Hunks), content.ClipBytes(f.Name(), 200)))
		default:
			reason = content.ClipBytes(f.Name(), 200) + " has " + content.Plural(int64(len(f.Hunks)), "hunk", "hunks")
		}
		return false
	})
	if d, ok := errors.AsType[*content.Remarks](err); ok {
		s.noteDamage(d)
		err = nil
	}
	switch {
	case err != nil:
		return at, err
	case seen <= file:
		reason = s.src.Name + " has " + content.Plural(seen, "file", "files")
	}
	if reason != "" {
		return at, &diff.PointError{Pointer: content.ClipBytes(content.VisibleLine(pointer), 100), Reason: reason}
	}
	return at, nil
}

// index returns the number that a token of a pointer names, -1 if it names none.
func index(token string) int64 {
	n, err := strconv.ParseInt(token, 10, 32)
	if err != nil || token != strconv.FormatInt(n, 10) {
		return -1
	}
	return n
}
