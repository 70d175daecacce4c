package viewer

import (
	"fmt"
	"html/template"
	"strings"
)

// bar returns a bar that is filled by a share from 0 to 1.
func bar(share float64) template.HTML {
	const svg = `<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">` +
		`<rect width="100" height="8" class="rest"/><rect width="%.1f" height="8"/></svg>`
	return template.HTML(fmt.Sprintf(svg, 100*min(max(share, 0), 1))) //nolint:gosec // a number only
}

// chart draws series of as many values as lines of steps: the first one solid, others dashed.
func chart(label string, series ...[]int64) markup {
	var s strings.Builder
	most := int64(1)
	for _, values := range series {
		for _, v := range values {
			most = max(most, v)
		}
	}
	const svg = `<svg class="chart" viewBox="0 -2 1000 104" preserveAspectRatio="none" role="img" aria-label="%s">`
	fmt.Fprintf(&s, svg, label)
	for _, values := range series {
		s.WriteString(`<path d="M0,100`)
		for i, v := range values {
			fmt.Fprintf(&s, "V%d H%d", 100-100*v/most, 1000*(i+1)/len(values))
		}
		s.WriteString(`"/>`)
	}
	return markup(s.String() + "</svg>")
}
