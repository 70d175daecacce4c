package secrets

import (
	"bytes"
	"slices"
	"strings"
)

// A name announces a secret if its last word, or its last two or three words joined, are in secretWords, or if its
// last word ends with one of secretEnds.
var (
	secretWords = []string{"password", "passwd", "passwort", "passphrase", "pwd", "pass", "secret", "apikey", "credential", "credentials", "accesskey", "secretkey",
		"privatekey", "signingkey", "encryptionkey", "masterkey", "accountkey", "authkey", "sharedaccesskey", "sharedkey", "keydata", "clientsecret", "secretaccesskey",
		"appkey"}
	secretEnds = []string{
		"password", "passwd", "secret", "apikey", "passphrase", "accesskey", "secretkey", "privatekey", "accountkey",
		"masterkey",
	}
	// neutralWords at the end of a name are ignored.
	neutralWords = []string{
		"value", "b64", "base64", "text", "prod", "production", "dev", "test", "live", "staging", "default", "new", "old",
		"current", "previous", "prev", "next", "base", "main", "primary", "secondary", "backup", "local", "ci", "qa", "uat",
		"stage", "sandbox", "root", "admin", "hex",
	}
	// otherWords at the end of a name say that its value belongs to a secret but is none, as in SECRET_NAME.
	otherWords = []string{
		"id", "ids", "name", "names", "file", "files", "filename", "path", "dir", "url", "uri", "host", "hash", "hashes",
		"digest", "md5", "sha", "sha1", "sha256", "sha512", "checksum", "sum", "integrity", "fingerprint", "thumbprint",
		"version", "arn", "ref", "type", "kind", "format", "len", "length", "size", "count", "pub", "public", "cert",
		"certificate", "field", "label", "hint", "policy", "age", "ttl", "expiry", "expires", "regex", "pattern",
		"prefix", "suffix", "header", "iv", "nonce", "etag", "uuid", "guid", "by", "at", "time", "date", "used", "expiration",
	}
)

// maxSuffix is the maximum number of words after the words that announce a secret, as in API_KEY_STRIPE.
const maxSuffix = 2

// classify returns the format of the secret that a name announces; nil if the name announces none. If loose is true,
// words of any meaning follow those that announce it.
func classify(name []byte) (f *Format, loose bool) {
	words := nameWords(name)
	suffix := 0
	for n := len(words); n > 0; n-- {
		last := words[n-1]
		two, three := "", ""
		if n > 1 {
			two = words[n-2] + last
		}
		if n > 2 {
			three = words[n-3] + two
		}
		switch {
		case slices.Contains(secretWords, last), slices.Contains(secretWords, two), slices.Contains(secretWords, three):
			return &assigned, suffix > 0
		case suffix == 0 && (last == "authorization" || last == "cookie"):
			return &authorization, false
		case slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(last, end) }):
			return &assigned, suffix > 0
		case strings.HasSuffix(last, "token"):
			return &assignedToken, suffix > 0
		case slices.Contains(neutralWords, last), isNumber(strings.TrimPrefix(last, "v")):
		case slices.Contains(secretWords, strings.TrimSuffix(last, "s")),
			slices.Contains(secretWords, strings.TrimSuffix(two, "s")):
			return &assigned, true
		case slices.Contains(otherWords, last) || suffix == maxSuffix:
			return nil, false
		default:
			suffix++
		}
	}
	return nil, false
}

func isNumber(word string) bool { return digits.run([]byte(word), 9) == len(word) }

// namesSecret reports whether a value is the name of a variable or a type after what it holds, such as
// HTTPPasswordMgr.
func namesSecret(t []byte) bool {
	words := nameWords(t)
	for i, w := range words {
		if strings.HasSuffix(w, "token") || len(w) > 5 && slices.Contains(secretWords, w) ||
			i > 0 && slices.Contains(secretWords, words[i-1]+w) ||
			slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(w, end) }) {
			return true
		}
	}
	return false
}

// isVariable reports whether a name is that of an environment variable that holds a secret. PWD holds a directory and
// PASS the result of a test.
func isVariable(name []byte) bool {
	return isUpper(name) && !slices.Contains([]string{"PWD", "OLDPWD", "PASS"}, string(name))
}

// isUpper reports whether a name has capital letters and no small ones, as the names of environment variables.
func isUpper(name []byte) bool {
	lower, upper, _, _ := countKinds(name)
	return upper > 0 && lower == 0
}

// nameWords returns the words of a name in lower case, at most the last six: "aws", "secret", "key" for
// "AWS_SecretKey".
func nameWords(name []byte) []string {
	var words []string
	end := len(name)
	add := func(i int) {
		if i < end && len(words) < 6 {
			words = append(words, string(bytes.ToLower(name[i:end])))
		}
	}
	for i := len(name) - 1; i >= 0; i-- {
		c := name[i]
		switch {
		case !alnum[c]:
			add(i + 1)
			end = i
		case c >= 'A' && c <= 'Z' &&
			(i+1 < end && name[i+1] >= 'a' && name[i+1] <= 'z' || i > 0 && name[i-1] >= 'a' && name[i-1] <= 'z'):
			add(i)
			end = i
		}
	}
	add(0)
	slices.Reverse(words)
	return words
}

// isSecretVariable reports whether a value in source code is a variable that is named after what it holds, such as
// testRSA2048PrivateKey.
func isSecretVariable(t []byte) bool {
	if !alnum[t[0]] || digits[t[0]] || nameSet.run(t, len(t)) < len(t) || bytes.IndexByte(t, '-') >= 0 {
		return false
	}
	words := nameWords(t)
	n := len(words)
	return n > 1 && (words[n-1] == "token" || slices.Contains(secretWords, words[n-1]) ||
		slices.Contains(secretWords, words[n-2]+words[n-1]))
}
