package corpus

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Secret is an invented credential: random characters in the format that its issuer publishes.
type Secret struct {
	Format string // the name of the format in text/secrets
	Text   string // the whole credential
	Hidden string // the part that must never be shown
	Line   string // Text with the context that the format needs (a header, an assignment)
}

//go:embed testdata/secret-forms.txt
var secretForms string

// Secrets returns one credential of each format; equal seeds give equal credentials.
func Secrets(seed uint64) []Secret {
	r := rand.New(rand.NewPCG(seed, 1))
	var all []Secret
	for line := range strings.Lines(secretForms) {
		if format, form, ok := strings.Cut(strings.TrimSpace(line), " "); ok && format != "#" {
			text := generate(r, form)
			all = append(all, Secret{format, text, longestRandom(text, form), text})
		}
	}
	word := func(n int) string { return generate(r, fmt.Sprintf("[a-z]{3}[A-Z]{2}[0-9]{2}[A-Za-z0-9]{%d}", n-7)) }
	line := func(format, before, secret, after string) {
		all = append(all, Secret{format, secret, secret, before + secret + after})
	}
	line("jwt", "", jwt(r), "")
	line("password", `password = "`, word(12), `"`)
	line("password", "DB_PASSWORD=", word(14)+"!x", "")
	line("password", `"client_secret": "`, word(32), `"`)
	line("password", "aws_secret_access_key = ", generate(r, "[A-Za-z0-9+]{38}7a"), "")
	line("password", "AccountKey=", generate(r, "[A-Za-z0-9+]{84}7a=="), ";EndpointSuffix=core.windows.net")
	line("token", "auth_token: ", word(32), "")
	line("url-password", "postgres://app:", word(16), "@db.internal:5432/app")
	line("url-password", "amqps://svc:", word(20), "@mq/vhost")
	line("authorization", "Authorization: Token ", word(40), "")
	line("bearer-token", "use Bearer ", word(40), " there")
	line("authorization", "Authorization: Basic ", base64.StdEncoding.EncodeToString([]byte("user:"+word(18))), "")
	line("basic-auth", "header 'Basic ", base64.StdEncoding.EncodeToString([]byte("svc:"+word(18))), "'")
	line("user-flag", "curl -u admin:", word(14), " https://x.test/")
	line("authorization", "Cookie: theme=dark; sid=", word(32), "; lang=en")
	return all
}

// generate returns a random text of a form: literal characters, and sets such as [a-z]{3}. A ~ is ignored; it keeps
// secret scanners from finding the form itself.
func generate(r *rand.Rand, form string) string {
	var b strings.Builder
	eachPart(form, func(literal byte, set string, n int) {
		if set == "" {
			b.WriteByte(literal)
			return
		}
		for range n {
			b.WriteByte(set[r.IntN(len(set))])
		}
	})
	return b.String()
}

// longestRandom returns the longest part of a text that a set of its form generated.
func longestRandom(text, form string) string {
	at, longest := 0, ""
	eachPart(form, func(_ byte, set string, n int) {
		if set == "" {
			n = 1
		} else if part := text[at : at+n]; n > len(longest) {
			longest = part
		}
		at += n
	})
	return longest
}

// eachPart calls part for each literal character of a form, with an empty set, and for each set with its count.
func eachPart(form string, part func(literal byte, set string, n int)) {
	for i := 0; i < len(form); i++ {
		switch form[i] {
		case '~':
		case '[':
			end := i + strings.IndexByte(form[i:], ']')
			ranges := form[i+1 : end]
			i = end
			n := 1
			if i+1 < len(form) && form[i+1] == '{' {
				end = i + strings.IndexByte(form[i:], '}')
				n, _ = strconv.Atoi(form[i+2 : end])
				i = end
			}
			part(0, expandSet(ranges), n)
		default:
			part(form[i], "", 1)
		}
	}
}

// expandSet returns the characters of a set such as A-Za-z0-9.
func expandSet(ranges string) string {
	var b strings.Builder
	for i := 0; i < len(ranges); i++ {
		if i+2 < len(ranges) && ranges[i+1] == '-' {
			for c := ranges[i]; c <= ranges[i+2]; c++ {
				b.WriteByte(c)
			}
			i += 2
			continue
		}
		b.WriteByte(ranges[i])
	}
	return b.String()
}

func jwt(r *rand.Rand) string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	return part(`{"alg":"HS256","typ":"JWT"}`) + "." + part(fmt.Sprintf(`{"sub":"%d","name":"Ada"}`, r.Uint64())) +
		"." + generate(r, "[A-Za-z0-9_-]{43}")
}

// PrivateKey returns a key block with the given number and width of lines of random base64, and these lines.
func PrivateKey(seed uint64, label string, lines, width int) (block string, body []string) {
	r := rand.New(rand.NewPCG(seed, 2))
	for i := range lines {
		n := width
		if i == lines-1 {
			n = 30
		}
		l := generate(r, fmt.Sprintf("[A-Za-z0-9+/]{%d}", n-3)) + "aZ8"
		if i == lines-1 {
			l += "=="
		}
		body = append(body, l)
	}
	const dashes = "-----"
	return dashes + "BEGIN " + label + dashes + "\n" + strings.Join(body, "\n") + "\n" + dashes + "END " + label + dashes +
		"\n", body
}
