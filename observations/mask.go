package observations

import (
	"bytes"
	"encoding/json"
	"regexp"
	"sync"
)

// A tombstone outlives its observation by months and needs its arguments only
// so that the call can be made again: what looks like a secret is masked in it.
// Best effort, on at most 4 KiB.

const masked = "***"

var secretKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)passw|passphrase|secret|token|api[-_]?key|private[-_]?key|authorization|credential|cookie`)
})

var secretText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:bearer|basic)\s+[\w.~+/=-]{8,}` +
		`|(?:passw(?:or)?d|secret|token|api[-_]?key)\\?["']?\s*[=:]\s*\\?["']?[^\s"'&\\]{4,}` +
		`|\b(?:sk|pk|rk|ghp|gho|ghu|ghs|ghr|github_pat|glpat|npm|xox[abeprs])[-_][\w-]{10,}` +
		`|\b(?:AKIA|ASIA|AIza|eyJ)[\w.-]{12,}` +
		`|://[^/\s:@"]+:[^/\s@"]+@` +
		`|-----BEGIN [A-Z ]*PRIVATE KEY-----[^"]*`)
})

func mask(args json.RawMessage) json.RawMessage {
	if len(args) == 0 {
		return nil
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	b, err := json.Marshal(maskValue(v))
	if err != nil {
		return nil
	}
	return b
}

func maskValue(v any) any {
	switch v := v.(type) {
	case string:
		return secretText().ReplaceAllString(v, masked)
	case []any:
		for i := range v {
			v[i] = maskValue(v[i])
		}
	case map[string]any:
		for k := range v {
			if secretKey().MatchString(k) {
				v[k] = masked
			} else {
				v[k] = maskValue(v[k])
			}
		}
	}
	return v
}
