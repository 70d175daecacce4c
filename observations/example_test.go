package observations_test

import (
	"fmt"
	"io"
	"log"
	"os"

	"github.com/mcp-funnel/mcp-funnel/observations"
)

// An output is recorded while it is written, committed, and read again by its ID.
func ExampleStore_Record() {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := observations.OpenStore(observations.Options{Dir: dir, MinFree: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = store.Close() }()

	r, err := store.Record(
		observations.Provenance{Owner: observations.Local, Tool: "run", Args: []byte(`{"command":"date"}`)},
	)
	if err != nil {
		log.Fatal(err)
	}
	_, _ = io.WriteString(r, "Sun Nov 22\n")
	o, err := r.Commit(observations.Stats{Kind: "text", Ext: "txt", Lines: 1, Status: "success"})
	if err != nil {
		log.Fatal(err)
	}

	text, err := store.Open(observations.Local, o.ID)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = text.Close() }()
	_, _ = io.Copy(os.Stdout, io.NewSectionReader(text, 0, text.Size()))
	fmt.Println(o.Tool, o.Bytes, "bytes")
	// Output:
	// Sun Nov 22
	// run 11 bytes
}
