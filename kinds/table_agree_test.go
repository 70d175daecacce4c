package kinds

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// TestTablesAgree reads random tables, broken ones too: filters, slices and receipts find the same rows, and say the
// same of what is damaged.
func TestTablesAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.StringOfN(rapid.RuneFrom([]rune("ab\" 01,;|\t\n\r")), 0, 6, -1)
		delimiter := rapid.SampledFrom([]string{",", ";", "\t", "|"}).Draw(t, "delimiter")
		end := rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "end")
		text := "a" + delimiter + "b" + delimiter + "c" + end
		for range rapid.IntRange(0, 6).Draw(t, "rows") {
			text += strings.Join(rapid.SliceOfN(cell, 1, 4).Draw(t, "cells"), delimiter) + end
		}
		damage := func(err error) string {
			if d, ok := errors.AsType[*content.Remarks](err); ok {
				return strings.Join(d.Notes, "; ")
			}
			expect.Must(t, err)
			return ""
		}
		rows := int64(0)
		bySlice := damage(Records(t.Context(), strings.NewReader(text), content.Table, func(int64, content.Span) bool {
			rows++
			return true
		}))
		var objects bytes.Buffer
		byFilter := damage(record.TableRows(t.Context(), strings.NewReader(text), &objects))
		var s digest.Summary
		sum := Table.Summarizer("", []byte(text))
		sum.Add([]byte(text))
		sum.Finish(&s)
		if n := int64(bytes.Count(objects.Bytes(), []byte{'\n'})); n != rows || s.Records != rows {
			t.Errorf("%q: a filter has %d rows, a receipt %d, a slice %d", text, n, s.Records, rows)
		}
		if byReceipt := strings.Join(s.Damage, "; "); byFilter != bySlice || byReceipt != bySlice {
			t.Errorf("%q: a filter says %q, a receipt %q, a slice %q", text, byFilter, byReceipt, bySlice)
		}
	})
}
