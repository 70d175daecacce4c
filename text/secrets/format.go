package secrets

// Format is one kind of secret, recognised by its text format.
type Format struct {
	Name     string // name shown in a mask: "aws-access-key-id"
	Of       string // description in words
	Source   string // publication of the format, or the basis of its derivation
	Keywords string // keywords of the filter, separated by "|"
	Shape    string // pattern after the keyword: literals and [ranges]{n,m}; a description if match is hand-written
	Before   string // pattern before the keyword, in the same syntax
	Check    string // further conditions in words, for docs/SECRETS.md

	bits   float64 // minimum entropy of the text after the keyword, in bits per byte
	inWord bool    // the secret may start within a word, because its keyword is rare enough
	fold   bool    // keywords match in any case
	match  matcher
	shape  func() shape // parsed Shape and Before; else the bytes after a short keyword, or nil
}

// matcher reports whether the keyword at from belongs to a secret, and returns the secret.
type matcher func(s *scan, h *hit, from int) (finding, bool)

// finding is a secret found in a text.
type finding struct {
	from, to int
	public   int // number of bytes at the start that identify the format and are not secret
	leadLen  int // number of bytes before the secret that identify it, such as a name; do not split the text there
	format   *Format
	block    bool      // the secret has several lines, and each is masked as one line
	more     bool      // the finding continues the previous one and is not counted again
	prefix   []byte    // prefix of each line of a block, such as "+"
	far      bool      // other secrets may stand between the name and the secret
	rest     []finding // further elements of the list, or lines of the block scalar
}
