package table

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// read returns the cells of all rows, joined by _, and what is damaged.
func read(t expect.TB, r io.Reader) (rows, damage []string) {
	err := Read(context.Background(), r, Limits{}, func(r *Row) bool {
		rows = append(rows, string(bytes.Join(r.Cells, []byte("_"))))
		return true
	})
	if d, ok := errors.AsType[*content.Remarks](err); ok {
		return rows, d.Notes
	}
	expect.Must(t, err)
	return rows, nil
}

func TestRows(t *testing.T) {
	for _, c := range expect.Table[struct{ Name, Text, Want, Damage string }](t, "testdata/rows.tsv") {
		rows, damage := read(t, strings.NewReader(c.Text))
		if got := strings.Join(rows[min(1, len(rows)):], "|"); got != c.Want || strings.Join(damage, "; ") != c.Damage {
			t.Errorf("%s: %q, %q", c.Name, got, damage)
		}
	}
}

// TestReadErrors passes on any error of the source, also one that looks like the end of the text.
func TestReadErrors(t *testing.T) {
	for _, failed := range []error{io.ErrUnexpectedEOF, errors.New("disk")} {
		for _, text := range []string{"", "a,b\n1,2\n", "a,b\n" + strings.Repeat("1,2\n", HeadSize)} {
			r := io.MultiReader(strings.NewReader(text), iotest.ErrReader(failed))
			err := Rows(t.Context(), r, func(*Row) bool { return true })
			expect.ErrorIs(t, err, failed, "%d bytes", len(text))
		}
	}
}

// TestWritten reads what a writer wrote, in each dialect: four delimiters, three line ends, and quotes where they are
// needed or around all cells.
func TestWritten(t *testing.T) {
	for _, delimiter := range []byte(",;\t|") {
		for _, end := range []string{"\n", "\r\n", "\r"} {
			for _, always := range []bool{false, true} {
				t.Run(fmt.Sprintf("%q %q %t", delimiter, end, always), func(t *testing.T) {
					rapid.Check(t, func(t *rapid.T) { written(t, delimiter, end, always) })
				})
			}
		}
	}
}

func written(t *rapid.T, delimiter byte, end string, always bool) {
	chars := "ab\" 0189.-é中,;|"
	if delimiter != '\t' {
		chars += "\t\n"
	} else if rapid.Bool().Draw(t, "breaks") { // a tab and a line break in one cell may look like rows
		chars += "\n"
	} else {
		chars += "\t"
	}
	cell := rapid.StringOf(rapid.RuneFrom([]rune(chars)))
	width := rapid.IntRange(2, 5).Draw(t, "width")
	var in strings.Builder
	var want []string
	for n := range rapid.IntRange(1, 8).Draw(t, "rows") {
		row := make([]string, width)
		for i := range row {
			if row[i] = fmt.Sprintf("c%d", i); n > 0 && i > 0 {
				row[i] = cell.Draw(t, "cell")
			}
			quoted := always && delimiter != '\t' || strings.ContainsAny(row[i], "\"\r\n"+string(delimiter)) ||
				strings.HasPrefix(row[i], " ")
			if i > 0 {
				in.WriteByte(delimiter)
			}
			if quoted {
				in.WriteString(`"` + strings.ReplaceAll(strings.ReplaceAll(row[i], "\n", end), `"`, `""`) + `"`)
			} else {
				in.WriteString(row[i])
			}
			row[i] = strings.ReplaceAll(row[i], "\n", end)
		}
		in.WriteString(end)
		want = append(want, strings.Join(row, "_"))
	}
	got, damage := read(t, strings.NewReader(in.String()))
	if !slices.Equal(got, want) || damage != nil {
		t.Fatalf("%q\n%q, want\n%q\n%q", in.String(), got, want, damage)
	}
}

// TestAgreesWithEncodingCSV compares with the standard library, which reads commas and semicolons.
func TestAgreesWithEncodingCSV(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		w.UseCRLF = rapid.Bool().Draw(t, "crlf")
		_ = w.Write([]string{"a", "b", "c", "d"})
		cell := rapid.StringOf(rapid.RuneFrom([]rune("ab\",;\n ")))
		for range rapid.IntRange(1, 6).Draw(t, "rows") {
			_ = w.Write([]string{"x", cell.Draw(t, "cell"), cell.Draw(t, "cell"), "y,"})
		}
		w.Flush()
		r := csv.NewReader(bytes.NewReader(b.Bytes()))
		all, err := r.ReadAll()
		expect.Must(t, err)
		got, _ := read(t, bytes.NewReader(b.Bytes()))
		for i, row := range all {
			// The library turns CR LF in a cell into LF.
			if want := strings.Join(row, "_"); i >= len(got) || strings.ReplaceAll(got[i], "\r\n", "\n") != want {
				t.Fatalf("%q: row %d: %q, want %q", b.String(), i, got, want)
			}
		}
	})
}

// FuzzRows has the rows of any text found in order, the same whatever pieces the text comes in, and every byte of a
// cell in it.
func FuzzRows(f *testing.F) {
	for _, s := range []string{
		"a,b\n\"1\n2\",3\r\n\r\n4,5", "a\tb\n1\t\"2\n", "a;b\n\"\"\"\";\n", "\"\n", "\xff,\x00\n\r\r\n", "sep=;\r\na;b",
		"a,b\n1,\"x\n3,4\n",
		"a|b\r1|\"2\"x\r", "a,b\n1,\"x\ny\"z,\"w\"\n", "a\tb\n\"x\t1\ny\"\t2\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		scan := func(in io.Reader) (all []string, damage string) {
			last := int64(0)
			err := Read(t.Context(), in, Limits{}, func(r *Row) bool {
				if r.At.Start < last || r.At.End <= r.At.Start || r.At.End > int64(len(text)) || r.N != len(r.Cells) {
					t.Errorf("row %d at %v, after %d of %d bytes", r.Index, r.At, last, len(text))
				}
				last = r.At.End
				all = append(all, fmt.Sprintf("%v %d %q", r.At, r.Line, r.Cells))
				return true
			})
			return all, fmt.Sprint(err)
		}
		whole, damage := scan(bytes.NewReader(text))
		for name, in := range map[string]io.Reader{
			"bytes": iotest.OneByteReader(bytes.NewReader(text)), "halves": iotest.HalfReader(bytes.NewReader(text)),
		} {
			if pieces, d := scan(in); !slices.Equal(whole, pieces) || d != damage {
				t.Errorf("%v %s\nin %s %v %s", whole, damage, name, pieces, d)
			}
		}
		var few []string
		err := Rows(t.Context(), bytes.NewReader(text), func(r *Row) bool {
			few = append(few, fmt.Sprint(r.At, r.Line))
			return true
		})
		if len(few) != len(whole) || fmt.Sprint(err) != damage {
			t.Errorf("%d rows without cells, %d with; %v, %s", len(few), len(whole), err, damage)
		}
	})
}
