package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// allowed lists the licences a part may have: those that require their text to be passed on, and put no condition on
// our own code.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// chosen maps parts whose files have several licences to the one that we use them under.
var chosen = map[string]string{
	"kernel.org/pub/linux/libs/security/libcap/psx": "BSD-3-Clause", // its text offers GPL-2.0 first
	// LICENSE-3RD-PARTY.md quotes those of modules that are in no build, too; what is linked is a part itself.
	"modernc.org/sqlite": "BSD-3-Clause",
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)([-._].*)?$`)

// phrases identify a licence in a text that is in lower case with single spaces.
var phrases = []struct{ id, phrase string }{
	{"AGPL-3.0", "gnu affero general public license"},
	{"LGPL", "gnu lesser general public license"},
	{"GPL", "gnu general public license"},
	{"MPL-2.0", "mozilla public license"},
	{"EPL", "eclipse public license"},
	{"CDDL", "common development and distribution license"},
	{"SSPL", "server side public license"},
	{"BUSL", "business source license"},
	{"CC", "creative commons"},
	{"Commons-Clause", "commons clause"},
	{"Apache-2.0", "apache license version 2.0"},
	{"Apache-2.0", "apache license, version 2.0"},
	{"ISC", "permission to use, copy, modify, and distribute this software for any purpose with or without fee"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose with or without fee"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"BSD-3-Clause", "endorse or promote products derived from"},
	{"BSD-2-Clause", "redistribution and use in source and binary forms"},
}

// classify returns the identifiers of the licences in a text.
func classify(text string) (ids []string) {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	for _, p := range phrases {
		if !strings.Contains(text, p.phrase) || slices.Contains(ids, p.id) || p.id == "BSD-2-Clause" &&
			slices.Contains(ids, "BSD-3-Clause") {
			continue
		}
		ids = append(ids, p.id)
	}
	return ids
}

// licences returns the identifiers and texts of the licence files at the top of a part's source.
func (p part) licences() (ids []string, texts []string, err error) {
	entries, err := os.ReadDir(p.Dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenceFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(p.Dir, e.Name()))
		if err != nil {
			return nil, nil, err
		}
		texts = append(texts, string(b))
		ids = append(ids, classify(string(b))...)
	}
	if id := chosen[p.Path]; slices.Contains(ids, id) {
		ids = []string{id}
	}
	slices.Sort(ids)
	return slices.Compact(ids), texts, nil
}

// check returns a message for each part, except our own module and Go's library, whose licence is missing or not
// allowed.
func check(parts []part) (found []string) {
	for _, p := range parts[2:] {
		ids, texts, err := p.licences()
		wrong := ""
		switch {
		case err != nil:
			wrong = err.Error()
		case len(texts) == 0:
			wrong = "has no licence"
		case len(ids) == 0:
			wrong = "has a licence that is not known"
		case slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(allowed, id) }):
			wrong = fmt.Sprintf("is under %s, of which not all is allowed (allowed: %s)",
				strings.Join(ids, ", "), strings.Join(allowed, ", "))
		default:
			continue
		}
		found = append(found, fmt.Sprintf("%s %s %s", p.Path, p.Version, wrong))
	}
	return found
}

// tableNotice is about what the binary holds that is of no module.
const tableNotice = `
## all-MiniLM-L6-v2

Apache-2.0, whose text is in LICENSE

    Copyright 2019 Ubiquitous Knowledge Processing (UKP) Lab, Technische Universität Darmstadt

    The table of vectors of text/embed was made from this model of sentence-transformers by scripts/embedding, which
    shortens, weights and quantizes the model's vectors of single pieces of text.
`

// notices writes the licence texts that must be distributed with a binary.
func notices(out io.Writer, parts []part) error {
	var b strings.Builder
	b.WriteString("# Notices\n\nmcp-funnel is under the Apache License 2.0 (LICENSE). Its binary holds the modules " +
		"below, and Go's standard\nlibrary, which is under the licence of golang.org/x/sys. Written by `make supply`.\n")
	for _, p := range parts[2:] {
		ids, texts, err := p.licences()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "\n## %s %s\n\n%s\n", p.Path, p.Version, strings.Join(ids, ", "))
		for _, text := range texts {
			b.WriteString("\n")
			for line := range strings.Lines(strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\n")) {
				b.WriteString(strings.TrimRight("    "+strings.TrimRight(line, "\n"), " \t") + "\n")
			}
		}
	}
	b.WriteString(tableNotice)
	_, err := io.WriteString(out, b.String())
	return err
}
