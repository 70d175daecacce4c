package embed

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// The sum that scripts/embedding/table.py prints.
func TestTable(t *testing.T) {
	const sum = "f1db56a2b4613fa85ce332ea29a8adf649a124c5e3cdc4dbd5e712ba92cfd275"
	expect.Equal(t, fmt.Sprintf("%x", sha256.Sum256(packed)), sum)
}

func TestMeaning(t *testing.T) {
	near := func(a, b string) float64 { return NewQuery(Vector(a)).Cosine(Packed(b)) }
	const question = "When does the garbage collector start a cycle?"
	right := near(question, "The pacer decides at which heap size the next collection begins.")
	wrong := near(question, "Each invoice must be paid within thirty days of its delivery.")
	if right < wrong+0.1 {
		t.Errorf("the right passage has %.2f, the wrong one %.2f", right, wrong)
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		unpack()
	}
}

func BenchmarkVector(b *testing.B) {
	const text = `A Writer buffers what is written to it, and writes it to the underlying file when the buffer is full. ` +
		`After an error no more data is accepted, and all later writes return the error. After all data has been ` +
		`written, the client should call Flush to guarantee that everything has been forwarded. func (b *Writer) ` +
		`Flush() error { if b.err != nil { return b.err }; if b.n == 0 { return nil }; n, err := b.wr.Write(b.buf[0:b.n]) ` +
		`if n < b.n && err == nil { err = io.ErrShortWrite }`
	load()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Vector(text)
	}
}

func BenchmarkCosine(b *testing.B) {
	one, q := Packed("the buffer is full"), NewQuery(Vector("writes to a file"))
	all := make([]byte, 0, 50_000*Dimensions)
	for range 50_000 {
		all = append(all, one...)
	}
	for b.Loop() {
		for i := 0; i < len(all); i += Dimensions {
			q.Cosine(all[i:])
		}
	}
}
