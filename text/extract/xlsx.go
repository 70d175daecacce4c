package extract

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/xuri/excelize/v2"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// The library makes objects of 50 to 200 bytes for each XML element outside of sheets, so their numbers are bounded.
const (
	maxSharedTags = 3 << 20 // XML tags of the shared strings: about 750,000 strings
	maxOtherPart  = 8 << 20 // bytes of a part that is no sheet and has no shared strings
)

// unused matches parts of a workbook that hold no cells. The library would read them all.
var unused = content.Pattern(`(?i)/(drawings|charts|media|pivot\w*|externalLinks|queryTables|tables|embeddings` +
	`|diagrams|theme|comments\w*|threadedComments|persons|customXml)/|calcChain\.xml$|^(docProps|customXml)/` +
	`|/worksheets/_rels/|/comments\d*\.xml$`)

func readXlsx(ctx context.Context, b *builder, r io.ReaderAt, size int64) error {
	a, err := openArchive(ctx, r, size)
	if err != nil {
		return err
	}
	if _, err := a.mainPart(); err != nil {
		return err
	}
	cells, err := a.withCells()
	if err != nil {
		return err
	}
	f, err := excelize.OpenReader(bytes.NewReader(cells), excelize.Options{
		UnzipSizeLimit:    2 * maxText, // the library adds up sizes in headers, which withCells has written
		UnzipXMLSizeLimit: 2 * maxText, // larger parts would become temporary files
		ShortDatePattern:  "yyyy-mm-dd",
	})
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	useISODates(f)
	var hidden, charts []string
	for _, sheet := range f.GetSheetList() {
		if visible, err := f.GetSheetVisible(sheet); err == nil && !visible {
			hidden = append(hidden, sheet)
		}
		err := readSheet(ctx, b, f, sheet)
		if _, missing := errors.AsType[excelize.ErrSheetNotExist](err); missing {
			charts = append(charts, sheet)
		} else if err != nil {
			return fmt.Errorf("sheet %s: %w", sheet, err)
		}
	}
	if len(hidden) > 0 {
		b.note("%s, included: %s", count(len(hidden), "hidden sheet"), list(hidden))
	}
	if len(charts) > 0 {
		b.note("%s without cells: %s", count(len(charts), "sheet"), list(charts))
	}
	a.noteObjects(b)
	return nil
}

// withCells returns a zip file of the parts of the archive that cells need. All bytes have been counted, so that the
// library can trust the sizes.
func (a *archive) withCells() ([]byte, error) {
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, f := range a.files {
		ext := strings.ToLower(path.Ext(f.Name))
		if ext != ".xml" && ext != ".rels" || unused().MatchString(f.Name) {
			continue
		}
		r, err := a.open(strings.ReplaceAll(f.Name, "\\", "/"))
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(r)
		_ = r.Close()
		if err != nil {
			return nil, fmt.Errorf("part %s: %w", f.Name, err)
		}
		switch name := strings.ToLower(f.Name); {
		case strings.HasSuffix(name, "sharedstrings.xml"):
			if n := bytes.Count(text, []byte("<")); n > maxSharedTags {
				return nil, fmt.Errorf("%w: %d tags of shared strings, the limit is %d", ErrTooLarge, n, maxSharedTags)
			}
		case !strings.Contains(name, "/worksheets/") && len(text) > maxOtherPart:
			return nil, fmt.Errorf("%w: part %s has %d bytes, the limit is %d", ErrTooLarge, f.Name, len(text), maxOtherPart)
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Store})
		if err == nil {
			_, err = w.Write(text)
		}
		if err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return buf.Bytes(), err
}

func readSheet(ctx context.Context, b *builder, f *excelize.File, sheet string) error {
	rows, err := f.Rows(sheet)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for n := 1; rows.Next(); n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		cells, err := rows.Columns()
		if err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
		for i, c := range cells {
			cells[i] = collapsed(c)
		}
		first := slices.IndexFunc(cells, func(c string) bool { return c != "" })
		if first < 0 {
			continue
		}
		place, err := excelize.CoordinatesToCellName(first+1, n)
		if err != nil {
			return err
		}
		if err := b.add(sheet+"!"+place, joined(cells[first:])); err != nil {
			return err
		}
	}
	return rows.Error()
}

// Built-in number formats: 14 and 22 use the option ShortDatePattern, 15 to 17 are dates with names of months.
const (
	numFmtDate      = 14
	numFmtFirstName = 15
	numFmtLastName  = 17
)

// useISODates replaces the date formats of the workbook by ISO formats.
func useISODates(f *excelize.File) {
	_, _ = f.GetStyle(0) // reads the styles; a workbook may have none
	if f.Styles == nil {
		return
	}
	if f.Styles.NumFmts != nil {
		for _, n := range f.Styles.NumFmts.NumFmt {
			if n == nil {
				continue
			}
			code := n.FormatCode
			if n.FormatCode16 != "" {
				code = n.FormatCode16
			}
			if iso := isoFormat(code); iso != "" {
				n.FormatCode, n.FormatCode16 = iso, ""
			}
		}
	}
	if f.Styles.CellXfs == nil {
		return
	}
	for _, xf := range f.Styles.CellXfs.Xf {
		if id := xf.NumFmtID; id != nil && *id >= numFmtFirstName && *id <= numFmtLastName {
			*id = numFmtDate
		}
	}
}

// literals matches the characters of a number format that stand for themselves, and its conditions and colors.
var literals = content.Pattern(`"[^"]*"|\\.|_.|\*.|\[[^\]]*\]|(?i:AM/PM|A/P|General)`)

// isoFormat returns the ISO format for a number format of dates; "" for others, such as times and durations.
func isoFormat(code string) string {
	code, _, _ = strings.Cut(strings.ToLower(literals().ReplaceAllString(code, "")), ";")
	clock, seconds := strings.ContainsAny(code, "hs"), strings.Contains(code, "s")
	switch {
	case !strings.ContainsAny(code, "dy") && (clock || !strings.Contains(code, "m")):
		return ""
	case seconds:
		return "yyyy-mm-dd hh:mm:ss"
	case clock:
		return "yyyy-mm-dd hh:mm"
	}
	return "yyyy-mm-dd"
}
