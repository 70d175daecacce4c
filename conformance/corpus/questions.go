package corpus

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Question is one that a user has, with the places that answer it, any of which is right.
type Question struct {
	ID       string
	Tree     string // go (Go's own source) or a directory of [QuestionTrees]
	Kind     string // natural; paraphrase: it shares no word, nor a word of the same stem, with its answers
	Lang     string // en, de, fr
	Question string
	Gold     []Answer
}

// Answer is a place of a tree: lines from 1, both included, and the longest of them.
type Answer struct {
	File     string
	From, To int
	Has      string
}

var questionFiles = unpacked("questions.tar")

// Questions are 200 questions over seven trees. SOURCES.md among [QuestionTrees] says where these are from, and under
// which licences.
func Questions(t testing.TB) (all []Question) {
	t.Helper()
	for line := range bytes.Lines(questionFile(t, "questions.ndjson")) {
		var q Question
		if err := json.Unmarshal(line, &q); err != nil {
			t.Fatal(err)
		}
		all = append(all, q)
	}
	return all
}

func questionFile(t testing.TB, name string) (text []byte) {
	t.Helper()
	eachQuestionFile(t, func(at string, b []byte) {
		if at == name {
			text = b
		}
	})
	return text
}

func eachQuestionFile(t testing.TB, use func(name string, text []byte)) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(questionFiles())); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			use(strings.TrimPrefix(h.Name, "./"), text)
		}
	}
}

// QuestionTrees writes the trees of the questions but Go's to a directory, and returns their names.
func QuestionTrees(t testing.TB, dir string) (trees []string) {
	t.Helper()
	eachQuestionFile(t, func(name string, text []byte) {
		tree, _, below := strings.Cut(name, "/")
		if !below || tree == "licences" {
			return
		}
		if !slices.Contains(trees, tree) {
			trees = append(trees, tree)
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	})
	return trees
}
