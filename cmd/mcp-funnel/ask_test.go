package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// A question in a script waits for the whole index, whatever the time of a call; --timeout answers from a part of it.
func TestAskFinishesTheIndex(t *testing.T) {
	c := newCommandLine(t)
	for i := range 20 {
		write(t, filepath.Join(c.root, fmt.Sprintf("%02d.txt", i)), "The lease of house "+fmt.Sprint(i)+" ends in May.\n")
	}
	question := strings.Fields("--slice 1ms ask when does the lease end")
	c.expect(failed, "not indexed yet 20 (the index covers 0 %; ask again)", "", append(question, "--timeout", "1ms")...)
	c.expect(done, "coverage: 20 files searched, ", "", question...)
	c.in = "when does the lease end\n"
	c.expect(done, "", "", "index", "rm")
	c.expect(done, "coverage: 20 files searched, ", "", "--slice", "1ms", "chat")
	c.in = ""
	c.expect(done, "", "", "index", "rm")
	c.expect(failed, "no indexed file has its words", "", append(question, "--timeout", "1ms")...)
}
