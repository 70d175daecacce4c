package secrets

import (
	_ "embed" // the table
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// formatTable has one format a line.
//
//go:embed formats.tsv
var formatTable string

// Formats with a matcher. [Formats] fills them.
var (
	privateKey, keyLine, jwt, urlPassword, authorization, bearer, basic, userFlag, assigned, assignedToken Format

	matchers = map[string]struct {
		*Format
		match matcher
		next  string // bytes after a keyword of less than four bytes
	}{
		"private-key": {&privateKey, matchKeyBlock, ""}, "key-line": {&keyLine, nil, ""},
		"jwt": {&jwt, matchJWT, "[h-z0-6]"}, "url-password": {&urlPassword, matchURL, "[A-Za-z0-9%$_~*:-]"},
		"authorization": {&authorization, matchAuthorization, ""}, "bearer-token": {&bearer, matchBearer, ""},
		"basic-auth": {&basic, matchBasic, ""}, "user-flag": {&userFlag, matchUser, ""},
		"password": {&assigned, matchAssigned, ""}, "token": {&assignedToken, matchAssigned, ""},
	}
)

// Formats returns all known kinds of secrets, in the order of docs/SECRETS.md.
var Formats = sync.OnceValue(func() []*Format {
	list := make([]*Format, 0, 128)
	for line := range strings.Lines(formatTable) {
		if line = strings.TrimRight(line, "\r\n"); line != "" && line[0] != '#' {
			list = append(list, parseFormat(line))
		}
	}
	return list
})

// parseFormat parses a line of the table. It panics if the line is invalid, because the table is part of the program.
func parseFormat(line string) *Format {
	c := strings.Split(line, "\t")
	if len(c) != 8 {
		panic(fmt.Sprintf("secrets: a format of %d columns: %q", len(c), line))
	}
	f := &Format{Name: c[0], Keywords: c[1], Before: c[2], Shape: c[3], Of: c[6], Source: c[7]}
	if own, ok := matchers[f.Name]; ok {
		f.Check, f.fold, f.match = c[4], c[5] == "any case", own.match
		if own.next != "" {
			f.shape = lazyShape(own.next, "")
		}
		*own.Format = *f
		return own.Format
	}
	var err error
	if f.bits, err = strconv.ParseFloat(c[4], 64); err != nil {
		panic(fmt.Sprintf("secrets: %q is no entropy: %q", c[4], line))
	}
	f.inWord, f.match, f.shape = c[5] == "yes", matchToken, lazyShape(f.Shape, f.Before)
	return f
}

var defaultFilter = sync.OnceValue(func() *filter { return newFilter(Formats()) })
