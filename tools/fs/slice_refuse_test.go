package fs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestSliceRefuses(t *testing.T) {
	src, ids := shelf(t, map[string]string{"t.txt": "one\ntwo\nthree", "empty.txt": "", "n.txt": "one\n"})
	forms := "valid ranges are 4, 4-8, 4- and -9 (the last 9)"
	for args, want := range map[string]string{
		`{"source":"t.txt"}`:                                                    `no range given: give exactly one of lines, chars, bytes, records, at, as in lines="1-50"`,
		`{"source":"t.txt","lines":"1","bytes":"2"}`:                            "lines and bytes were given: give exactly one of lines, chars, bytes, records, at",
		`{"source":"t.txt","chars":"1","at":""}`:                                "chars and at were given: give exactly one of lines, chars, bytes, records, at",
		`{"source":"","lines":"1"}`:                                             "source is empty: name a file or obs:ID",
		`{"source":"t.txt","lines":"4-5"}`:                                      "lines 4-5: past the end: t.txt has 3 lines (1-3)",
		`{"source":"n.txt","lines":"2"}`:                                        "lines 2: past the end: n.txt has 1 lines (1-1)",
		`{"source":"t.txt","chars":"13-"}`:                                      "chars 13-: past the end: t.txt has 13 chars (0-12)",
		`{"source":"t.txt","chars":"99999"}`:                                    "chars 99999: past the end: t.txt has 13 chars (0-12)",
		`{"source":"t.txt","bytes":"13"}`:                                       "bytes 13: past the end: t.txt has 13 bytes (0-12)",
		`{"source":"t.txt","bytes":"9007199254740993-99999999999999999999999"}`: "bytes 9007199254740993-: past the end: t.txt has 13 bytes (0-12)",
		`{"source":"empty.txt","lines":"1"}`:                                    "lines 1: empty.txt has no lines",
		`{"source":"empty.txt","lines":"-3"}`:                                   "lines -3: empty.txt has no lines",
		`{"source":"empty.txt","bytes":"0"}`:                                    "bytes 0: empty.txt has no bytes",
		`{"source":"empty.txt","chars":"-1"}`:                                   "chars -1: empty.txt has no chars",
		`{"source":"t.txt","records":"3"}`:                                      "records 3: past the end: t.txt has 3 records (0-2)",
		`{"source":"t.txt","lines":"0-5"}`: `lines "0-5": lines count from 1; ` +
			strings.ReplaceAll(strings.ReplaceAll(forms, "4", "5"), "8", "9"),
		`{"source":"t.txt","bytes":"5-3"}`: `bytes "5-3": it ends before it begins; ` +
			forms,
		`{"source":"t.txt","bytes":"x"}`:     `bytes "x": not a range; ` + forms,
		`{"source":"t.txt","bytes":"-"}`:     `bytes "-": not a range; ` + forms,
		`{"source":"t.txt","bytes":"--5"}`:   `bytes "--5": not a range; ` + forms,
		`{"source":"t.txt","bytes":"1-2-3"}`: `bytes "1-2-3": not a range; ` + forms,
		`{"source":"t.txt","bytes":"-0"}`:    `bytes "-0": an empty range; ` + forms,
		`{"source":"t.txt","bytes":"1e3"}`:   `bytes "1e3": not a range; ` + forms,
	} {
		err := (&sheet{room: wide}).run(src, args)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", args, err, want)
		}
	}
	for _, args := range []string{`{"source":"nothing.txt","lines":"1"}`, `{"source":"../x","lines":"1"}`, `{"source":".","lines":"1"}`,
		`{"source":"obs:000000000000","lines":"1"}`, `{"lines":"1"}`, `{"source":"t.txt","line":"1"}`, `{"source":"t.txt","lines":[1]}`} {
		if err := (&sheet{room: wide}).run(src, args); err == nil || len(err.Error()) > 500 {
			t.Errorf("%s: %v", args, err)
		}
	}
	long := strings.Repeat("9x", 5000)
	if err := (&sheet{room: wide}).run(src, arguments(t, "source", "t.txt", "lines", long)); err == nil ||
		len(err.Error()) > 300 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := (&sheet{room: wide}).runIn(
		ctx, src, fmt.Sprintf(`{"source":%q,"lines":"1"}`, ids["t.txt"]),
	); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// What shows nothing says what it is.
func TestSliceOfLineEndsSaysSo(t *testing.T) {
	src, _ := shelf(t, map[string]string{"one.txt": "\n", "crlf.txt": "\r\n\r\n", "mid.txt": "a\n\nb\n"})
	for args, want := range map[string]bool{
		`"source":"one.txt","lines":"1"`: true, `"source":"one.txt","bytes":"0-"`: true, `"source":"one.txt","chars":"0"`: true,
		`"source":"crlf.txt","lines":"1-2"`: true, `"source":"crlf.txt","bytes":"0-"`: true, `"source":"mid.txt","lines":"2"`: true,
		`"source":"mid.txt","chars":"2-"`: false, `"source":"mid.txt","lines":"1-2"`: false,
	} {
		if s := cut(t, src, "{"+args+"}"); slices.Contains(s.notes, "the range has only line ends, no text") != want {
			t.Errorf("%s: %q, rows %q", args, s.notes, s.rows)
		}
	}
	src, _ = shelf(t, map[string]string{"b.bin": "\x00\x01\x02"})
	for args, want := range map[string]string{`"bytes":"0-1"`: "bytes 0-1 of 3", `"bytes":"1-2"`: "bytes 1-2 of 3"} {
		if s := cut(t, src, `{"source":"b.bin",`+args+`}`); s.reach != want || s.notes != nil {
			t.Errorf("%s of a binary source: %s %q", args, s.reach, s.notes)
		}
	}
}

func TestSliceTellsWhereTheSourceEnds(t *testing.T) {
	src, _ := shelf(t, map[string]string{"t.txt": "one\ntwo\n", "a.ndjson": "{}\n{}\n"})
	for args, want := range map[string]string{
		`"lines":"2-9"`: "the source ends at line 2", `"chars":"6-99"`: "the source ends at char 7", `"bytes":"0-8"`: "the source ends at byte 7",
	} {
		if s := cut(t, src, `{"source":"t.txt",`+args+`}`); len(s.notes) != 1 || s.notes[0] != want {
			t.Errorf("%s: %q", args, s.notes)
		}
	}
	if s := cut(t, src, `{"source":"a.ndjson","records":"1-2"}`); len(s.notes) != 1 ||
		s.notes[0] != "the source ends at record 1" {
		t.Errorf("%q", s.notes)
	}
	for args, want := range map[string]string{
		`"bytes":"2-4"`: "bytes 2-4 of 8", `"chars":"0-6"`: "chars 0-6 of 8", `"bytes":"3"`: "bytes 3-3 of 8",
		`"bytes":"-3"`: "bytes 5-7 of 8", `"chars":"-3"`: "chars 5-7 of 8", `"chars":"6-99"`: "chars 6-7 of 8", `"bytes":"0-"`: "bytes 0-7 of 8",
	} {
		if s := cut(t, src, `{"source":"t.txt",`+args+`}`); s.reach != want {
			t.Errorf("%s: %s", args, s.reach)
		}
	}
	for _, unit := range []string{"lines", "chars", "bytes"} { // what no source reaches is no end
		s := &sheet{room: 4}
		if err := s.run(src, arguments(t, "source", "t.txt", unit, "1-99999999999999999999")); err != nil || s.next == nil {
			t.Fatalf("%s: %v, next %v", unit, err, s.next)
		}
		if a := s.next.Args.(sliceArgs); !strings.HasSuffix(a.Lines+a.Chars+a.Bytes, "-") {
			t.Errorf("%s: next %+v", unit, a)
		}
	}
	for _, args := range []string{`"lines":"1-2"`, `"lines":"1-"`, `"chars":"0-7"`, `"chars":"0-"`, `"bytes":"0-7"`, `"lines":"-9"`} {
		if s := cut(t, src, `{"source":"t.txt",`+args+`}`); len(s.notes) != 0 {
			t.Errorf("%s: %q", args, s.notes)
		}
	}
}
