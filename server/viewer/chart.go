package viewer

import (
	"fmt"
	"html/template"
)

// bar returns a bar that is filled by a share from 0 to 1.
func bar(share float64) template.HTML {
	return template.HTML(fmt.Sprintf(`<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">`+ //nolint:gosec // numbers only
		`<rect width="100" height="8" class="rest"/><rect width="%.1f" height="8"/></svg>`, 100*min(max(share, 0), 1)))
}
