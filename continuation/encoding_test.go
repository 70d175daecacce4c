package continuation

import (
	"strings"
	"testing"
)

// TestNotUTF8 has parts that are not UTF-8, and parts that are cut inside of a character or an escape.
func TestNotUTF8(t *testing.T) {
	const latin1, euro = `{"a":"caf` + "\xe9" + ` au lait"}`, "\u20ac"
	for _, tt := range []struct {
		name  string
		parts []string
		want  string // the joined text; "" if the last part is refused
		says  string
	}{
		{"Latin-1", []string{latin1}, "", "byte 9 (0xe9) is not UTF-8"},
		{"overlong", []string{"{\"a\":\"\xc0\xaf\"}"}, "", "not UTF-8"},
		{"a surrogate", []string{"{\"a\":\"\xed\xa0\x80\"}"}, "", "not UTF-8"},
		{"Latin-1 as a second part", []string{`{"a":"some words and `, "more\xe9 words\"}"}, "", "not UTF-8"},
		{"cut inside of a character", []string{`{"a":"words ` + euro[:1], euro[1:] + `"}`}, `{"a":"words ` + euro + `"}`, ""},
		{"a character that is not completed", []string{`{"a":"words ` + euro[:2], `more"}`}, "", "inside of a character"},
		{"half a character at the beginning",
			[]string{`{"a":"some words and `, euro[1:] + `"}`}, "", "inside of a character"},
		{"half a character first", []string{euro[1:] + `{"a":1}`}, "", "inside of a character"},
		{"UTF-16", []string{"\xff\xfe{\x00}\x00"}, "{}", ""},
		{"from inside of an escape", []string{`{"a":["line1\nline two is here and long","se`,
			`nline two is here and long","second"]}`}, "", "inside of an escape"},
		{"from inside of a longer escape",
			[]string{`["some words \u00e9t\u00e9 1998`, `00e9 1998 was hot"]`}, "", "inside of an escape"},
		{"after a backslash", []string{`["a path C:\\new folder of mine`, `new folder of mine 2"]`},
			`["a path C:\\new folder of mine 2"]`, ""},
		{"an escape that is cut", []string{`["some words \`, `nand more"]`}, `["some words \nand more"]`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := New(Options{})
			var r Result
			for _, part := range tt.parts {
				r = d.Add([]byte(part))
			}
			if tt.want == "" && (r.Join != "" || !strings.Contains(r.Reason, tt.says)) ||
				tt.want != "" && string(d.Text()) != tt.want {
				t.Errorf("%+v, text %q", r, d.Text())
			}
		})
	}
}
