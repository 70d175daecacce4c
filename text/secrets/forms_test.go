package secrets

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

const (
	letterSet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	alnumSet  = letterSet + "0123456789" // small letters and digits from 26 on
)

// randomText returns n random characters of a set.
func randomText(r *rand.Rand, set string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = set[r.IntN(len(set))]
	}
	return string(b)
}

func randomBase64(r *rand.Rand, e *base64.Encoding, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.IntN(256))
	}
	return e.EncodeToString(b)
}

// randomValues are the values that programs generate as passwords and keys. Each is the value of a password of any
// name.
var randomValues = map[string]func(r *rand.Rand) string{
	"letters and digits": func(r *rand.Rand) string { return randomText(r, alnumSet, 12+r.IntN(30)) },
	"letters":            func(r *rand.Rand) string { return randomText(r, letterSet, 16+r.IntN(20)) },
	"small letters":      func(r *rand.Rand) string { return randomText(r, alnumSet[26:], 16+r.IntN(20)) },
	"hex":                func(r *rand.Rand) string { return randomText(r, "0123456789abcdef", 24+r.IntN(104)) },
	"base64":             func(r *rand.Rand) string { return randomBase64(r, base64.StdEncoding, 16) },
	"longer base64":      func(r *rand.Rand) string { return randomBase64(r, base64.StdEncoding, 16+r.IntN(40)) },
	"base64 for URLs":    func(r *rand.Rand) string { return randomBase64(r, base64.RawURLEncoding, 16+r.IntN(40)) },
	"padded for URLs":    func(r *rand.Rand) string { return randomBase64(r, base64.URLEncoding, 16+r.IntN(40)) },
	"Laravel":            func(r *rand.Rand) string { return "base64:" + randomBase64(r, base64.StdEncoding, 32) },
	"dotted":             randomDotted,
}

func randomDotted(r *rand.Rand) string {
	part := func() string { return randomText(r, alnumSet, 6+r.IntN(20)) }
	return part() + "." + part() + "." + part()
}

var (
	variables = []string{
		"DB_PASSWORD", "JWT_SECRET", "SECRET_KEY_BASE", "APP_KEY", "API_KEY_STRIPE", "STRIPE_SECRET_KEY_LIVE",
		"API_KEY_V2", "MYSQL_ROOT_PASSWORD", "ENCRYPTION_KEY_PRIMARY", "SESSION_SECRET_2", "AWS_SECRET_ACCESS_KEY",
		"DB_PASSWORD_READONLY",
	}
	members = []string{
		"password", "dbPassword", "client_secret", "apiKey", "secret_key_base", "db-password", "passphrase",
	}
)

// fileForms are the places of a value in five types of file; %n is a name in capitals, %m another name, %s the value.
var fileForms = map[string][]string{
	"env": {
		"A=1\n%n=%s\nB=2\n", "export %n=%s\n", "%n='%s'\n", "%n=\"%s\"\n", "ENV %n=%s\n", "  - %n=%s\n",
		"# a file\n%n=%s",
	},
	"yaml": {
		"a: 1\n%m: %s\nb: 2\n", "db:\n  %m: '%s'\n", "db:\n  %m: \"%s\" # from the vault\n", "  %n: %s\n",
		"- %m: %s\n",
		"env:\n  - name: %n\n    value: %s\n  - name: B\n    value: two\n", "- name: %n\n  value: '%s'\n",
		"- name: \"%n\" # of the database\n  value: \"%s\"\n",
		"  env:\n  -  name: %n\n\n     description: a key\n     value: %s\n",
		"+  - name: %n\n+    value: %s\n", "- Name: %n\n  Value: %s\n", "%m: |\n  %s\nb: two\n",
		"a:\n  %m: >-\n    %s\n",
		"- %m: |+ # comment\n    %s\n\n  b: 1\n", "%n: |2-\n  %s\n", "a:\n  - %m: >\n\n\n      %s\n",
		"+  %m: |\n+    %s\n",
		"\"%m\": |-\n    %s", "parameters:\n- key: %n\n  value: %s\n",
		"- value: %s\n  name: %n\n", "- name: A\n  value: B\n- value: \"%s\"\n  name: %n\n",
		"- name: %n\n  value: |-\n    %s\n", "  2:   - name: %n\n  3:     value: %s\n", "12:%m: |\n13:  %s\n14:b: 1\n",
		"a.yaml:9:- name: %n\na.yaml:10:  value: %s\n", "- name: %n\r\n  value: %s\r\n", "%m: |\r\n  %s\r\n",
		"/0/name: %n\n/0/value: %s\n",
		"{\"line\":1,\"text\":\"- name: %n\"}\n{\"line\":2,\"text\":\"  value: %s\"}\n",
	},
	"json": {
		`{"a":1,"%m":"%s","b":2}`, "{\n  \"%m\": \"%s\"\n}\n", `{"name":"%n","value":"%s"}`,
		`[{"name": "%n", "value": "%s"}]`,
		"{\n  \"name\": \"%n\",\n  \"type\": \"text\",\n  \"value\": \"%s\"\n}\n",
		`{"key":"%m","enabled":true,"value":"%s"}`,
		`{"ParameterKey":"%n","ParameterValue":"%s"}`, `"{\"name\":\"%n\",\"value\":\"%s\"}"`,
		`{"text":"- name: %n\n  value: %s\n"}`, `{"value":"%s","name":"%n"}`,
		"{\n  \"value\": \"%s\",\n  \"key\": \"%n\"\n}\n",
	},
	"ini": {
		"[db]\n%m=%s\n", "%m = %s\nb = 2\n", "%m: %s\n", "spring.datasource.%m=%s\n", "%m = \"%s\"\n", "%m='%s'\n",
		"[[env]]\nname = \"%n\"\nvalue = \"%s\"\n",
	},
	"source": {
		"define('%n', '%s');\n", "define( \"%n\", \"%s\" );\n", "os.Setenv(\"%n\", \"%s\")\n", "const %m = \"%s\";\n",
		"  %m: '%s',\n", "x.%m := \"%s\"\n", "os.getenv(\"%n\", \"%s\")\n",
	},
	"xml": {
		`<add key="%m" value="%s"/>`, `<add key="%n" value="%s" />`, "<add key='%m'\n     value='%s' />\n",
		`<property name="%m" value="%s"/>`, `<property name="db.%m">%s</property>`,
		`<env name="%n" value="%s" force="true"/>`,
		"<property>\n  <name>db.%m</name>\n  <value>%s</value>\n</property>\n", "<%m>%s</%m>",
		`<entry key="%m">%s</entry>`,
		`<add key="%m" xdt:Transform="Replace" value="%s"/>`,
		`<add value="%s" key="%m"/>`, `<setting name="%m" serializeAs="String"><value>%s</value></setting>`,
		"<dict>\n<key>%m</key>\n<string>%s</string>\n</dict>\n",
	},
}

// addressForms are the places of a password in an address.
var addressForms = []string{
	"redis://:%s@host", "REDIS_URL=redis://:%s@10.0.0.1:6379/0", "amqp://:%s@mq:5672/%2f",
	"url: rediss://:%s@h.example.com",
	`{"url":"mongodb://:%s@a,b/db"}`, "root:%s@tcp(127.0.0.1:3306)/app?parseTime=true",
	`dsn := "app:%s@tcp(db:3306)/x"`,
	"DSN=user_1:%s@unix(/tmp/mysql.sock)/db", "dsn: 'app:%s@tcp([::1]:3306)/'",
}

// inBlocks masks a text that arrives in random blocks.
func inBlocks(r *rand.Rand, m *Masker, text string) string {
	return streamed(m.Stream().Next, text, func(left int) int {
		if r.IntN(2) == 0 {
			return min(left, 1+r.IntN(9))
		}
		return 1 + r.IntN(left)
	})
}

// streamed returns what next makes of a text that arrives in blocks; size chooses how many of the bytes left are next.
func streamed(next func(b []byte, final bool) (int, []byte), text string, size func(left int) int) string {
	var got, buf []byte
	for rest := text; rest != ""; {
		n := size(len(rest))
		buf, rest = append(buf, rest[:n]...), rest[n:]
		took, out := next(buf, rest == "")
		got = append(got, out...)
		buf = buf[:copy(buf, buf[took:])]
	}
	return string(got)
}

// TestNamedValuesAreMasked generates random values in each form that is recognized by a name or an address: 1,000 of
// each. Wherever blocks are cut, the result is the same.
func TestNamedValuesAreMasked(t *testing.T) {
	m := New()
	r := rand.New(rand.NewPCG(20, 26))
	n := 1000
	if testing.Short() {
		n = 100
	}
	check := func(what, text, value string) bool {
		got, found := m.String(text)
		ok := found > 0 && !strings.Contains(got, value)
		if !ok {
			t.Errorf("%s: %q became %q", what, text, got)
		}
		if strings.Count(got, "\n") != strings.Count(text, "\n") {
			t.Errorf("%s: lines changed: %q became %q", what, text, got)
		}
		if blocks := inBlocks(r, m, text); blocks != got {
			t.Errorf("%s in blocks: %q became %q, not %q", what, text, blocks, got)
			ok = false
		}
		return ok
	}
	for _, file := range slices.Sorted(maps.Keys(fileForms)) { // in one order: each run draws the same values
		forms := fileForms[file]
		for _, kind := range slices.Sorted(maps.Keys(randomValues)) {
			value, shown := randomValues[kind], 0
			for i := range n {
				form := forms[i%len(forms)]
				secret := value(r)
				text := strings.NewReplacer("%n", variables[r.IntN(len(variables))], "%m", members[r.IntN(len(members))], "%s",
					secret).Replace(form)
				if !check(fmt.Sprintf("%s, %s, %q", file, kind, form), text, secret) {
					if shown++; shown > 3 {
						break
					}
				}
			}
		}
	}
	for i := range n {
		secret := randomValues["letters and digits"](r)
		if i%2 == 0 {
			secret = randomText(r, alnumSet+"!#%+-_", 10+r.IntN(20)) + "x9"
		}
		form := addressForms[i%len(addressForms)]
		check(form, strings.ReplaceAll(form, "%s", secret), secret)
	}
	for range n { // tokens
		name := []string{"APP_TOKEN", "GITHUB_TOKEN", "ACCESS_TOKEN_MAIN"}[r.IntN(3)]
		secret := randomValues["dotted"](r)
		check("token", name+"="+secret+"\n", secret)
		check("token", "a: 1\n"+strings.ToLower(name)+": "+secret+"\n", secret)
	}
}

// TestBlocksOfLines masks each line of a block scalar that is one word, and nothing after it.
func TestBlocksOfLines(t *testing.T) {
	m := New()
	for in, want := range map[string]string{
		"a:\n  password: |\n    hunter2x9\n    tail\n\n    of words\n    x9y8z7\n  next: hunter3x9\n": "a:\n  password: |\n" +
			"    [masked: password 9 chars]\n    [masked]\n\n    of words\n    [masked]\n  next: hunter3x9\n",
		"- client_secret: >-\n    ${SECRET_1}\n    none\n":      "- client_secret: >-\n    ${SECRET_1}\n    none\n",
		"password: | # comment\n hunter2x9\nhunter3x9\n":        "password: | # comment\n [masked: password 9 chars]\nhunter3x9\n",
		"- password: |\n    hunter2x9\n- password: |\n  none\n": "- password: |\n    [masked: password 9 chars]\n- password: |\n  none\n",
		"the password: | is a sign\n  hunter2x9\n":              "the password: | is a sign\n  hunter2x9\n",
	} {
		if got, _ := m.String(in); got != want {
			t.Errorf("%q became\n%q, want\n%q", in, got, want)
		}
		s := m.Stream() // line by line, as rows
		got := ""
		for line := range strings.Lines(in) {
			got += string(s.Text([]byte(line)))
		}
		expect.Equal(t, got, want, "lines, %q became", in)
	}
}

// TestFormsInLongTexts masks long texts of all forms, also within lines longer than a block that a stream holds back.
func TestFormsInLongTexts(t *testing.T) {
	m := New()
	r := rand.New(rand.NewPCG(9, 1))
	var all []string
	for _, file := range []string{"env", "yaml", "json", "ini", "source", "xml"} {
		all = append(all, fileForms[file]...)
	}
	for range 60 {
		var text strings.Builder
		var hidden []string
		for range 40 {
			secret := randomValues["base64"](r)
			hidden = append(hidden, secret)
			form := all[r.IntN(len(all))]
			if strings.Count(strings.TrimSpace(form), "\n") > 0 || r.IntN(3) > 0 { // otherwise it follows words
				text.WriteString("\n")
			}
			text.WriteString(strings.NewReplacer("%n", variables[r.IntN(len(variables))], "%m",
				members[r.IntN(len(members))], "%s", secret).Replace(form))
			text.WriteString([]string{"\n", "\na line of words\n", "\n" + strings.Repeat("word and word ", 900)}[r.IntN(3)])
		}
		want, _ := m.String(text.String())
		for _, secret := range hidden {
			if strings.Contains(want, secret) {
				at := strings.Index(want, secret)
				t.Errorf("%q is shown in %q", secret, want[max(0, at-90):at+30])
			}
		}
		if got := inBlocks(r, m, text.String()); got != want {
			i := 0
			for i < min(len(got), len(want)) && got[i] == want[i] {
				i++
			}
			t.Fatalf("differs at %d: %.200q, want %.200q", i, got[max(0, i-90):], want[max(0, i-90):])
		}
	}
}

// TestPairsInJSON masks the value of a pair in arguments, whatever the value is.
func TestPairsInJSON(t *testing.T) {
	got := string(New().JSON([]byte(`{"env":[{"name":"DB_PASSWORD","value":"x"},{"name":"A","value":"b"}]}`)))
	expect.Equal(t, got, `{"env":[{"name":"DB_PASSWORD","value":"[masked: password]"},{"name":"A","value":"b"}]}`)
}

// TestValuesInShapesAndElements masks values as the shape of records and the records of XML show them.
func TestValuesInShapesAndElements(t *testing.T) {
	for form, secret := range map[string]bool{
		`{id: 1, password?: "%s"}`:                             true,
		`{"c":{"password":[{"#text":"%s"}]}}`:                  true,
		`{"c":{"password":[{"#text":"%s","@v":"1"}]}}`:         true,
		`{"property":[{"@name":"db.password","@value":"%s"}]}`: true,
		`{c: {password: {"#text": "%s"}}}`:                     true,
		`{c: {password: [1] {"#text": "%s"}}}`:                 true,
		`{"c":{"title":[{"#text":"%s"}]}}`:                     false,
		`{id: 1, title?: "%s"}`:                                false,
		`{"property":[{"@name":"title","@value":"%s"}]}`:       false,
	} {
		text := fmt.Sprintf(form, "Xk29dkq0Zq77")
		got, n := New().String(text)
		if want := strings.Replace(text, "Xk29dkq0Zq77", "[masked: password 12 chars]", 1); secret && got != want ||
			!secret && n > 0 {
			t.Errorf("%s became %s", text, got)
		}
	}
}

// TestOneValueInEachView: a value that is masked in one view of a file is masked in the others: as read, as a line that
// grep shows, and as a member of a record.
func TestOneValueInEachView(t *testing.T) {
	views := map[string][]string{
		"yaml": {
			"db:\n  password: %s\n", "3 (/db/password):   password: %s\n", `{"db":{"password":"%s"}}`, "/db/password: %s\n",
		},
		"ini": {"[db]\npassword = %s\n", "2 (/db/password): password = %s\n", `{"db":{"password":"%s"}}`},
		"xml": {"<password>%s</password>", `{"c":{"password":[{"#text":"%s"}]}}`},
		"env": {"PASSWORD=%s\n", "1 (/PASSWORD): PASSWORD=%s\n", `{"PASSWORD":"%s"}`},
		"properties": {
			"db.password %s\n", "db.password=%s\n", "1 (/db.password): db.password %s\n", `{"db.password":"%s"}`,
		},
	}
	for form, templates := range views {
		for value, masked := range map[string]bool{
			"hunter2hunter2": true, "S3cret!Pass99": true, "Tr0ub4dor&3": true, "pa:ss1wo2rd": true,
			"P@ssword!": true, "correct-horse": form == "env", "string": false, "<from vault>": false, "changeme": false,
			"${PW}": false, "required": false,
		} {
			if form == "properties" && value == "P@ssword!" {
				continue // letters after a blank may be words
			}
			for _, template := range templates {
				text := fmt.Sprintf(template, value)
				if got, n := New().String(text); (n == 1 && !strings.Contains(got, value)) != masked {
					t.Errorf("%s: %q became %q", form, text, got)
				}
			}
		}
	}
}

// TestForCall masks a row that is the value at the name with which the filter or the pointer of its call ends.
func TestForCall(t *testing.T) {
	for args, masked := range map[string]bool{
		`{"filter":".db.password"}`: true, `{"filter":".[] | .password?"}`: true,
		`{"filter":".[\"a\"].\"db.password\""}`: true,
		`{"at":"/db/password"}`:                 true, `{"filter":".db.user"}`: false,
		`{"filter":".password | length"}`: false,
		`{"filter":{"a":".password"}}`:    false, `{"filter":"."}`: false, `{}`: false, `[]`: false,
	} {
		m := New().ForCall([]byte(args))
		for row, secret := range map[string]bool{
			`"hunter2hunter2"`: masked, `"string"`: false, "hunter2hunter2": false, "7": false,
		} {
			if got := string(m.Middle().Text([]byte(row))); (got != row) != secret ||
				secret && !strings.HasPrefix(got, `"[masked: password 14 chars]`) {
				t.Errorf("%s: %s became %s", args, row, got)
			}
		}
	}
}
