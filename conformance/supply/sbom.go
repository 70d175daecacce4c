package main

import "strings"

// The bill of materials, as CycloneDX 1.6 has it. It holds no time and no serial number: two builds have one bill.

type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	URL        string     `json:"purl"`
	Licences   []licence  `json:"licenses,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type licence struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// bill makes the bill of materials of parts that were located.
func bill(parts []part) bom {
	b := bom{Format: "CycloneDX", Spec: "1.6", Version: 1}
	for i, p := range parts {
		c := component{Type: "library", Name: p.Path, Version: p.Version, URL: "pkg:golang/" + strings.ToLower(p.Path) + "@" + p.Version}
		c.Ref = c.URL
		if p.Sum != "" {
			c.Properties = []property{{"go:sum", p.Sum}}
		}
		var ids []string
		switch {
		case i == 0:
			ids = []string{"Apache-2.0"}
		case p.Path == stdlib:
			ids = []string{"BSD-3-Clause"}
		default:
			ids, _, _ = p.licences() // check tells what is wrong with them
		}
		for _, id := range ids {
			var l licence
			l.License.ID = id
			c.Licences = append(c.Licences, l)
		}
		if i == 0 {
			c.Type = "application"
			b.Metadata.Component = c
			continue
		}
		b.Components = append(b.Components, c)
	}
	return b
}
