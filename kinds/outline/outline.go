// Package outline makes the outline of a source file: the names that it exports, with their lines, and its summary.
//
// Go is parsed with go/parser. The other languages are read by line, without comments and strings: patterns match the
// declarations of conventionally indented code. Nothing is executed or resolved. Adjacent overloads count once, and
// constructors, fields and operators are left out. All texts take linear time.
package outline

import (
	"bytes"
	"strings"
	"unicode"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Limits in bytes, except for symbols. A summary is searched in the head of a text; patterns see the start of a line.
const maxText, maxHead, maxLine, maxName, maxDoc, maxSymbols = 1 << 20, 1 << 15, 2000, 200, 300, 2000

// Symbol is one exported name of a source file.
type Symbol struct {
	Kind string // type, func, method, const, var, class, interface, enum, trait, module, struct, record, export, …
	Name string // of a method: Type.Name; other nested names are qualified too: Outer.Inner, in Rust and Ruby A::B
	Line int    // from 1
}

// Outline is what a source file declares for others.
type Outline struct {
	Language string   // go, python, javascript, typescript, rust, java, c, c++, c#, ruby, php
	Doc      string   // first sentence of the package comment, docstring or leading comment; never a licence
	Symbols  []Symbol // in the order of the file
	Broken   bool     // symbols may be missing: the text is too large, has too many symbols, or is Go with errors
}

// Of returns the outline of a text by the language that its file name stands for; ok is false if there is none.
func Of(name string, text []byte) (o Outline, ok bool) {
	o.Language = Language(name)
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if len(text) > maxText {
		text, o.Broken = text[:maxText], true
	}
	switch o.Language {
	case "":
		return Outline{}, false
	case "go":
		o.golang(text)
		return o, true
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	o.Doc = leading(string(text))
	code, _, _ := strings.Cut(mask(o.Language, text), "\n__END__\n") // of Ruby
	switch o.Language {
	case "javascript", "typescript":
		o.script(code)
	case "c", "c++":
		o.c(code)
	default:
		o.nested(code)
	}
	return o, true
}

// Language returns the language of a file name that has an outline; "" if none.
func Language(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	language := strings.ToLower(content.LanguageOf(name))
	if strings.LastIndexByte(name, '.') <= 0 || language != "go" && tokens[language] == nil {
		return ""
	}
	return language
}

// add appends a symbol unless it repeats the one before it.
func (o *Outline) add(kind, name string, line int) {
	name = content.ClipEnd(name, maxName)
	n := len(o.Symbols)
	if n > 0 && o.Symbols[n-1].Kind == kind && o.Symbols[n-1].Name == name {
		return
	}
	if n == maxSymbols {
		o.Broken = true
		return
	}
	o.Symbols = append(o.Symbols, Symbol{kind, strings.Clone(name), line})
}

var pattern = content.Pattern

var (
	licence = pattern(`(?i)copyright|©|\(c\) *(19|20)\d\d|spdx-|licen[sc]ed (under|to)|all rights reserved|` +
		`^licen[sc]e\b|permission is hereby|free software|redistribution and use|this file is (a )?part of|` +
		`governed by|public domain|(apache|mit|bsd|isc|mozilla|public|software) licen[sc]e|` +
		`^(part of|distributed under)|do not edit|@generated`)
	// remark matches a line of a comment that has no word, or instructs a tool.
	remark = pattern(`^[^\pL\pN]*$|^[@\\]|^(vim?:|(en)?coding[:=]|frozen_string_literal|typed:|e?slint|tslint|` +
		`prettier|istanbul|pylint|mypy|ruff|type:|noqa|rubocop|clang-format|<reference|\+build|go:|usr/bin/|bin/)`)
	brief    = pattern(`^[@\\](?i:brief|fileoverview|overview|description|desc)\b:?\s*`)
	sentence = pattern(`^.*?(?:[^\s.][^\s.]|(?:^| )[^\sA-Z])[.!?](?: |$)`)
	// head matches what precedes code: a line without meaning, or else a comment or docstring as a group.
	head = pattern(`^\s*(?:(?:<\?php\b|#!|#pragma once|declare *\(.*;|` +
		`(?:package|import|using|namespace|use|global using)\s[^{(\n]*;).*|["']use \w+["'];?[ \t]*(?:\n|$)|` +
		`(?s:/\*(.*?)(?:\*/|$))|((?://!.*\s*)+)|` +
		`((?://(?:[^!\n].*)?(?:\n[ \t]*|$))+)|((?:#(?:[ #].*)?(?:\n[ \t]*|$))+)|(?s:=begin\n(.*?)(?:\n=end|$))|` +
		`(?s:[rRuU]?(?:"""(.*?)"""|'''(.*?)''')))`)
)

// leading returns the summary of the docstring of a module, or else of the first comment before code.
func leading(text string) (doc string) {
	text = text[:min(len(text), maxHead)]
	for m := head().FindStringSubmatch(text); m != nil; m = head().FindStringSubmatch(text) {
		text = text[len(m[0]):]
		if s := summary(strings.Join(m[1:], "")); s != "" && (doc == "" || m[6]+m[7] != "") {
			doc = s
		}
	}
	return doc
}

// summary returns the first sentence of a comment as one line, "" if it begins with a licence or says nothing.
func summary(comment string) (doc string) {
	for line := range strings.SplitSeq(comment, "\n") {
		line, _, _ = strings.Cut(strings.TrimSuffix(strings.TrimSpace(content.ClipEnd(line, maxLine)), "*/"), "-*-")
		line = strings.TrimRight(strings.TrimLeft(line, " \t/*!#=-~"), " \t\r*=-~#")
		line = line[len(brief().FindString(line)):]
		silent := remark().MatchString(line)
		if len(doc) > maxDoc || doc != "" && silent || licence().MatchString(line) {
			break
		} else if !silent {
			doc += line + " "
		}
	}
	doc = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(doc, "\ufffd"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if m := sentence().FindStringIndex(doc); m != nil {
		doc = doc[:m[1]]
	}
	return content.ClipEnd(strings.TrimSpace(doc), maxDoc)
}
