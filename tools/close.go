package tools

import "github.com/mcp-funnel/mcp-funnel/tools/source"

// CloseSource adds the notes of a source to the answer and closes it. A tool defers it after opening its source.
func CloseSource(src *source.Source, out Output) {
	for _, note := range src.Notes() {
		out.Note(note)
	}
	_ = src.Close()
}
