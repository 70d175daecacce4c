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

// allowed are the licences a part may have: those that ask for their text to be passed on, and for nothing of ours.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// chosen are parts that offer a choice of licences, and the one taken.
var chosen = map[string]string{
	"kernel.org/pub/linux/libs/security/libcap/psx": "BSD-3-Clause", // or GPL-2.0, as its text says first
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)([-._].*)?$`)

// phrases by which a licence is known, in a text of small letters and single blanks.
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

// classify names the licences of a text.
func classify(text string) (ids []string) {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	for _, p := range phrases {
		if !strings.Contains(text, p.phrase) || slices.Contains(ids, p.id) || p.id == "BSD-2-Clause" && slices.Contains(ids, "BSD-3-Clause") {
			continue
		}
		ids = append(ids, p.id)
	}
	return ids
}

// maxLicence bounds a licence's text, in bytes.
const maxLicence = 1 << 20

// licences are the names and texts at the top of a part's source.
func (p part) licences() (ids []string, texts []string, err error) {
	entries, err := os.ReadDir(p.Dir)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenceFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		f, err := os.Open(filepath.Join(p.Dir, e.Name()))
		if err != nil {
			return nil, nil, err
		}
		b, err := io.ReadAll(io.LimitReader(f, maxLicence))
		_ = f.Close()
		if err != nil {
			return nil, nil, err
		}
		texts = append(texts, string(b))
		for _, id := range classify(string(b)) {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	if id := chosen[p.Path]; slices.Contains(ids, id) {
		ids = []string{id}
	}
	slices.Sort(ids)
	return ids, texts, nil
}

// check says of each part but our own and Go's what is wrong with its licence.
func check(parts []part) (found []string) {
	for _, p := range parts[2:] {
		ids, texts, err := p.licences()
		switch {
		case err != nil:
			found = append(found, fmt.Sprintf("%s %s: %v", p.Path, p.Version, err))
			continue
		case len(texts) == 0:
			found = append(found, fmt.Sprintf("%s %s has no licence", p.Path, p.Version))
			continue
		case len(ids) == 0:
			found = append(found, fmt.Sprintf("%s %s has a licence that is not known", p.Path, p.Version))
		}
		for _, id := range ids {
			if !slices.Contains(allowed, id) {
				found = append(found, fmt.Sprintf("%s %s is under %s, which is not allowed (allowed: %s)", p.Path, p.Version, id, strings.Join(allowed, ", ")))
			}
		}
	}
	return found
}

// notices writes the texts that must go with a binary.
func notices(out io.Writer, parts []part) error {
	var b strings.Builder
	b.WriteString("# Notices\n\nmcp-funnel is under the Apache License 2.0 (LICENSE). Its binary holds the modules below, and Go's standard\nlibrary, which is under the licence of golang.org/x/sys. Written by `make supply`.\n")
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
	_, err := io.WriteString(out, b.String())
	return err
}
