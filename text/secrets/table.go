package secrets

import (
	_ "embed" // the table
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// formatTable has the formats that a shape defines, one a line.
//
//go:embed formats.tsv
var formatTable string

// Formats returns all known kinds of secrets, in the order of docs/SECRETS.md.
var Formats = sync.OnceValue(func() []*Format {
	list := make([]*Format, 0, 128)
	for line := range strings.Lines(formatTable) {
		if line = strings.TrimRight(line, "\r\n"); line != "" && line[0] != '#' {
			list = append(list, parseFormat(line))
		}
	}
	for _, h := range []struct {
		f     *Format
		match matcher
	}{
		{&privateKey, matchKeyBlock}, {&keyLine, nil}, {&jwt, matchJWT}, {&urlPassword, matchURL}, {&authorization, matchAuthorization},
		{&bearer, matchBearer}, {&basic, matchBasic}, {&userFlag, matchUser}, {&assigned, matchAssigned}, {&assignedToken, matchAssigned},
	} {
		h.f.match = h.match
		list = append(list, h.f)
	}
	return list
})

// parseFormat parses a line of the table. It panics if the line is invalid, because the table is part of the program.
func parseFormat(line string) *Format {
	c := strings.Split(line, "\t")
	if len(c) != 8 {
		panic(fmt.Sprintf("secrets: a format of %d columns: %q", len(c), line))
	}
	bits, err := strconv.ParseFloat(c[4], 64)
	if err != nil {
		panic(fmt.Sprintf("secrets: %q is no entropy: %q", c[4], line))
	}
	return &Format{
		Name: c[0], Keywords: c[1], Before: c[2], Shape: c[3], bits: bits, inWord: c[5] == "yes", Of: c[6], Source: c[7],
		match: matchToken, shape: lazyShape(c[3], c[2]),
	}
}

var defaultFilter = sync.OnceValue(func() *filter { return newFilter(Formats()) })
