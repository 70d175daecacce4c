package intent

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// extensions are those by which a word is taken for a file name. A list is needed: "z.B.", "v1.2" and "Node.NET" have
// dots too. Single letters count only after a stem of two letters or more.
const extensions = `7z|ascii|aac|aiff?|apk|avi|avif|bak|bat|bib|bin|bmp|bz2|cc|cfg|cmd|conf|cpp|crt|cs|css|csv|dat|` +
	`db|deb|dll|dmg|docx?|dot|dwg|dxf|eml|eps|epub|exe|feather|flac|geojson|gif|go|gpx|gz|hpp|heic|html?|hs|ico|ics|` +
	`ini|ipynb|iso|jar|java|jpe?g|jsx?|json5?|jsonl|key|kml|kt|kts|less|lock|log|lua|m4a|md|mdx|mkv|mod|mov|mp3|mp4|` +
	`mpe?g|msg|ndjson|numbers|odp|ods|odt|ogg|orc|otf|pages|parquet|patch|pcap|pdf|pem|php|pickle|pkl|pl|png|pptx?|` +
	`properties|proto|ps1|psd|py|rar|rb|rpm|rs|rst|rtf|scala|scss|sh|sqlite3?|sql|srt|sum|svg|swift|tar|tex|tgz|tiff?|` +
	`toml|tsv|tsx?|ttf|txt|vcf|vue|wav|webm|webp|wmv|woff2?|wsdl|xhtml|xlsx?|xlsm|xml|xsd|xsl|xz|yaml|yml|zip|zst`

var (
	// An address ends at a space, a quotation mark, punctuation of East Asian scripts, or a letter of a script without
	// spaces between words.
	address = content.Pattern(`(?i)\b(?:[a-z][a-z0-9+.-]{1,15}://|www\.)` +
		"[^\\s<>\"`{}|\\\\^«»“”„‘’‹›\\p{Han}\\p{Hiragana}\\p{Katakana}\\p{Thai}\u3000-\u303f\uff00-\uffef]+")
	// A name with a known extension; what follows must not continue it (checked in fileNames).
	withExtension = longest(`(?i)(?:[a-z]:[\\/]|~/|\.{0,2}/)?[\pL\pN_][\pL\pM\pN_.~%+#=/\\-]*\.(?:` + extensions + `)`)
	oneLetter     = content.Pattern(`[\pL\pN_./\\-]*[\pL\pN_-]{2,}\.[chrm]`)
	rooted        = content.Pattern(
		`(?:~|\.{1,2}|/(?:bin|data|dev|etc|home|mnt|opt|proc|root|srv|sys|tmp|usr|var|Applications|` +
			`Library|Users|Volumes))/[\pL\pM\pN_.~%+#=/-]+|[A-Za-z]:\\[\pL\pM\pN_.~%+#=\\-]+`,
	)
	bareNames = content.Pattern(`(?:Make|Docker|Jenkins|Vagrant|Gem|Proc)file|` +
		`\.(?:env|gitignore|gitattributes|dockerignore|editorconfig|npmrc|bashrc|zshrc|profile|htaccess)`)
	product = content.Pattern(
		`(?i)^(?:node|next|nuxt|vue|react|angular|express|three|d3|chart|ember|backbone|deno|socket)\.js$`,
	)
)

// longest compiles a pattern that prefers the longest match: "a.csv" to "a.cs".
func longest(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp {
		re := regexp.MustCompile(pattern)
		re.Longest()
		return re
	})
}

// namesOf returns the URLs and file names in a text, each once: URLs first, else in their order.
func namesOf(s string) (names []string) {
	s = norm.NFC.String(s)
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	rest := address().ReplaceAllStringFunc(s, func(url string) string {
		trimmed := trimAddress(url)
		add(trimmed)
		return " " + url[len(trimmed):] // a path inside an address is no file name
	})
	for _, name := range fileNames(rest) {
		add(name)
	}
	return names
}

// trimAddress removes the punctuation of the sentence around an address: a final dot, and brackets that open before it.
func trimAddress(url string) string {
	for {
		last, size := utf8.DecodeLastRuneInString(url)
		open := map[rune]string{')': "(", ']': "["}[last]
		switch {
		case strings.ContainsRune(".,;:!?'*_/", last), strings.ContainsRune("…", last):
		case open != "" && strings.Count(url, open) < strings.Count(url, string(last)):
		default:
			return url
		}
		url = url[:len(url)-size]
	}
}

func fileNames(s string) (names []string) {
	type span struct{ from, to int }
	var spans []span
	for _, re := range []func() *regexp.Regexp{withExtension, oneLetter, rooted, bareNames} {
		for _, at := range re().FindAllStringIndex(s, -1) {
			for at[1] > at[0] && strings.ContainsRune(`./\-`, rune(s[at[1]-1])) {
				at[1]--
			}
			name := s[at[0]:at[1]]
			if name == "" || continues(s, at[0], at[1]) || product().MatchString(name) {
				continue
			}
			spans = append(spans, span{at[0], at[1]})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	end := 0
	for _, at := range spans { // of names within each other the longest counts
		if at.to > end {
			end = at.to
			names = append(names, s[at.from:at.to])
		}
	}
	return names
}

// continues reports whether s[from:to] is only a part of a word, as "a.js" is of "a.json5x", or of a mail address.
func continues(s string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:from])
	after, size := utf8.DecodeRuneInString(s[to:])
	if from > 0 && (wordRune(before) || strings.ContainsRune("@*$", before)) {
		return true
	}
	if to == len(s) {
		return false
	}
	next, _ := utf8.DecodeRuneInString(s[to+size:])
	return wordRune(after) || after == '@' || after == '.' && wordRune(next) || after == '('
}

// wordRune reports whether r continues a word. Scripts without spaces between words have no such limit.
func wordRune(r rune) bool {
	return r == '_' || (unicode.IsLetter(r) || unicode.IsDigit(r)) && !unspaced(r)
}

func unspaced(r rune) bool {
	return r > 0xe00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

// nameSet finds names in any of their spellings: a file also by the end of a longer path.
type nameSet map[string]bool

func (set nameSet) add(names []string) {
	for _, name := range names {
		name = normalized(name)
		set[name] = true
		for !strings.Contains(name, "://") {
			_, rest, ok := strings.Cut(name, "/")
			if !ok {
				break
			}
			set[rest] = true
			name = rest
		}
		if tail := tailOf(name); tail != "" {
			set[tail] = true
		}
	}
}

func (set nameSet) missing(wanted []string) (names []string) {
	for _, name := range wanted {
		// Without spaces between words nothing says where a name begins: its last two characters decide.
		if tail := tailOf(name); !set[normalized(name)] && !(tail != "" && set[tail]) {
			names = append(names, name)
		}
	}
	return names
}

// normalized returns a form of a name that does not depend on its separators, nor on what a URL ignores.
func normalized(name string) string {
	name = strings.ReplaceAll(strings.TrimPrefix(name, "./"), `\`, "/")
	scheme, rest, ok := strings.Cut(name, "://")
	if !ok {
		return name
	}
	host, path, _ := strings.Cut(rest, "/")
	return strings.ToLower(scheme+"://"+host) + "/" + path
}

// tailOf returns the last two characters of a stem that ends in a script without spaces, and the extension.
func tailOf(name string) string {
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return ""
	}
	stem := []rune(name[:dot])
	if len(stem) == 0 || !unspaced(stem[len(stem)-1]) {
		return ""
	}
	return string(stem[max(len(stem)-2, 0):]) + name[dot:]
}

var outputFormat = content.Pattern(
	`(?i)\b(?:as|into|als|nach|en|como|format|formato)\s+(?:an?\s+|une?\s+|eine?\s+)?\.?` +
		`(csv|tsv|xlsx|pdf|docx|pptx|json|ndjson|xml|html|md|txt|png|jpg|svg|yaml|sql|py)\b`,
)

// formatsIn returns the formats in which a text asks for a result, in lower case.
func formatsIn(s string) (formats []string) {
	for _, m := range outputFormat().FindAllStringSubmatch(s, -1) {
		formats = append(formats, strings.ToLower(m[1]))
	}
	return formats
}
