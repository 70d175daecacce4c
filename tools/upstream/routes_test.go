package upstream

import "testing"

func TestTemplates(t *testing.T) {
	for template, uris := range map[string]map[string]bool{
		"note://{id}":          {"note://7": true, "note://": true, "notes://7": false},
		"repo://{o}/{r}/x{?q}": {"repo://a/b/x?q=1": true, "repo://a/x": false, "repo://a/b/y": false},
		"file:///{+path}.md":   {"file:///a/b.md": true, "file:///a.txt": false},
		"config://app":         {"config://app": true, "config://app/2": false},
	} {
		for uri, want := range uris {
			if got := matches(template, uri); got != want {
				t.Errorf("%s of %s: %v", uri, template, got)
			}
		}
	}
}

func TestPrefix(t *testing.T) {
	for name, want := range map[string]string{"alpha": "alpha+", "my_server-2": "my.server-2+", "7z": "s7z+", "": "s+"} {
		if got := (Options{Name: name}).prefix("resources/list"); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
