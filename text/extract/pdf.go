package extract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	pdferrors "github.com/klippa-app/go-pdfium/errors"
)

// pdfErrors are the errors by which PDFium refuses a document, by their codes; the last one is for others.
var pdfErrors = []error{
	pdferrors.ErrSuccess, pdferrors.ErrUnknown, pdferrors.ErrFile, pdferrors.ErrFormat, pdferrors.ErrPassword,
	pdferrors.ErrSecurity, pdferrors.ErrPage, pdferrors.ErrUnexpected,
}

// readPDF uses a new instance for each document, which takes 2 to 9 ms: a document that damages the memory of PDFium
// cannot affect the next one.
func readPDF(ctx context.Context, b *builder, r io.ReaderAt, size int64) error {
	p, err := newPDFium(ctx, r)
	if err != nil {
		return err
	}
	defer p.close()
	file := p.call("FPDF_FILEACCESS_Create", uint64(size), 0)
	f := pdfFile{pdfium: p, doc: p.call("FPDF_LoadCustomDocument", file, 0), b: b, on: map[string]bool{}}
	if f.doc == 0 {
		code := p.call("FPDF_GetLastError")
		err := cmp.Or(p.failed(), pdfErrors[min(code, uint64(len(pdfErrors)-1))])
		if errors.Is(err, pdferrors.ErrPassword) || errors.Is(err, pdferrors.ErrSecurity) {
			return encrypted("PDF with a user password")
		}
		return err
	}
	pages := int(p.call("FPDF_GetPageCount", f.doc))
	if err := p.failed(); err != nil {
		return err
	}
	blank, broken := 0, 0
	texts := make([]string, pages)
	extras := make([][]extraLine, pages)
	for i := range texts {
		texts[i], extras[i], err = f.page(i)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case errors.Is(err, pdferrors.ErrPage):
			broken++
		case err != nil:
			return fmt.Errorf("page %d: %w", i+1, err)
		case collapsed(texts[i]) == "" && len(extras[i]) == 0:
			blank++
		}
		if f.size += len(texts[i]); f.size > maxText {
			return fmt.Errorf("%w: more than %d bytes of text", ErrTooLarge, maxText)
		}
	}
	b.missed("attached file", int(p.call("FPDFDoc_GetAttachmentCount", f.doc)))
	d := newDivided(texts)
	for i, text := range texts {
		text, other := d.words(text)
		if len(other) > 0 {
			extras[i] = append(extras[i], extraLine{"other spellings", "spelled also: " + strings.Join(other, ", ")})
		}
		place := fmt.Sprintf("page %d", i+1)
		for line := range strings.Lines(text) {
			b.add(place, collapsed(line))
		}
		for _, x := range extras[i] {
			b.add(place+", "+x.place, collapsed(x.text))
		}
	}
	if blank+broken == pages && broken < max(blank, 1) {
		return fmt.Errorf("%w (%s)", ErrNoText, count(blank, "page"))
	}
	if blank > 0 {
		b.note("%d of %s have no text", blank, count(pages, "page"))
	}
	if broken > 0 {
		b.note("%d of %s cannot be read", broken, count(pages, "page"))
	}
	return nil
}
