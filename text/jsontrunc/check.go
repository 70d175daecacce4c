package jsontrunc

import (
	"hash/maphash"
	"io"
)

// Check reads r to its end. Values must be on lines of their own. In contrast to a [Checker], a literal at the end of
// the text is whole, Inside says more ("after a comma in an array"), and text that is not UTF-8 is broken.
func Check(r io.Reader) (Report, error) {
	c := NewChecker()
	c.strict = &strict{seed: maphash.MakeSeed(), trailing: -1, invalid: -1}
	if _, err := io.CopyBuffer(c, struct{ io.Reader }{r}, make([]byte, 64<<10)); err != nil {
		return Report{}, err
	}
	return c.Close(), nil
}
