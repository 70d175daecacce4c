package cases

import "testing"

// TestScan has languages by content and by "#!", and a last line without a newline.
func TestScan(t *testing.T) {
	try(t, []one{
		{dir: "scan", args: []string{"scan", "--json"}, has: []string{
			`"Python":2`, `"JavaScript":2`, `"XML":2`, `"MATLAB":4`, `"C++":2`, `"C":2`,
		}, lacks: []string{`"TypeScript"`, `"Objective-C"`}},
		{dir: "scan", args: []string{"scan"}, has: []string{
			"languages (lines):\n             4  MATLAB\n", "\nkinds (files):\n", "\ndirectories (files, bytes, on the disk):\n",
		}},
		{dir: "scan", args: call("find", "show=stat", "glob=*"), has: []string{
			"\tPython\n", "\tJavaScript\n", "\tXML\n", "\tMATLAB\n", "\tC++\n",
		}, lacks: []string{"TypeScript", "Objective-C"}},
	})
}

// TestNotes drives an investigation: citations, whose order it is, and a survey that forges a line.
func TestNotes(t *testing.T) { script(t, "investigate/notes.py") }
