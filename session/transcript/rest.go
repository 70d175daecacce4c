package transcript

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/session/jsontree"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// Rest is what a block holds besides its texts. It is counted as far as it is known. Compaction never replaces it.
type Rest struct {
	More      []Literal // texts that the model reads, such as that of a document or of a block of an unknown kind
	Images    int
	Encrypted int    // bytes of encrypted text, whose tokens are unknown
	Unknown   string // the type of a part that is not known: it is counted by its text
	Binary    string // a part whose tokens are unknown, such as a PDF or a file of the API; "" if there is none
}

// textKinds are the types of parts of which the model reads the member text alone.
var textKinds = map[string]bool{"text": true, "input_text": true, "output_text": true, "summary_text": true}

// knownKinds are the types of parts whose strings are all read by the model; knownEnds end the types of what tools of
// an API wrote.
var (
	knownKinds = map[string]bool{
		"document": true, "search_result": true, "thinking": true, redacted: true, "reasoning": true, audio: true,
		"reasoning_text": true, "compaction": true, "refusal": true, "tool_reference": true, "input_file": true,
		"file": true, "container_upload": true, "mcp_list_tools": true,
	}
	knownEnds = []string{"_tool_result", "_call", "_call_output"}
)

// Types of parts without a text.
const (
	redacted = "redacted_thinking"
	audio    = "input_audio"
)

// encrypted begins the names of members with text that only the API can read.
const encrypted = "encrypted_"

// imageKinds are the types of images.
var imageKinds = map[string]bool{
	"image": true, "input_image": true, "image_url": true, "computer_screenshot": true, "image_generation_call": true,
}

// notRead are members that say nothing to the model.
var notRead = map[string]bool{
	"type": true, "id": true, "tool_use_id": true, "call_id": true, "media_type": true, "mime_type": true, "role": true,
	"cache_control": true, "citations": true, "status": true, "signature": true, "phase": true,
}

// other adds a part that is no plain text.
func (t *Transcript) other(b *Block, n *jsontree.Node) {
	b.Other = true
	kind := n.Str("type")
	known := kind == "" || textKinds[kind] || knownKinds[kind] || imageKinds[kind] ||
		slices.ContainsFunc(knownEnds, func(end string) bool { return strings.HasSuffix(kind, end) })
	if !known {
		b.Unknown = kind
	}
	t.addRest(b, "", n)
}

// addRest adds a value to the rest of a block, by the name that it has.
func (t *Transcript) addRest(b *Block, name string, n *jsontree.Node) {
	if n == nil {
		return
	}
	r := &b.Rest
	kind, media := n.Str("type"), n.Str("media_type")+n.Str("mime_type")
	switch {
	case notRead[name]:
	case n.Kind == '"':
		t.addText(b, name, n)
	case imageKinds[kind], strings.HasPrefix(media, "image/"):
		r.Images++
	case kind == "base64", kind == audio:
		r.Binary = cmp.Or(media, kind)
	case name == "source" && (kind == "url" || kind == "file"):
		r.Binary = kind
	case kind == "thinking" && n.Str("thinking") == "": // the client keeps only what it was signed with
		t.addRest(b, encrypted, n.Get("signature"))
	case kind == redacted:
		t.addRest(b, encrypted, n.Get("data"))
	default:
		for _, m := range n.Members {
			t.addRest(b, m.Name, m.Value)
		}
		for _, item := range n.Items {
			t.addRest(b, name, item)
		}
	}
}

// addText adds a string by the name that it has.
func (t *Transcript) addText(b *Block, name string, n *jsontree.Node) {
	r, text := &b.Rest, n.Text
	switch {
	case strings.HasPrefix(name, encrypted):
		r.Encrypted += n.Size
	case name == "file_id":
		r.Binary = "file"
	case strings.HasPrefix(text, "data:image/"):
		r.Images++
	case name == "file_data", strings.HasPrefix(text, "data:") && strings.Contains(text[:min(len(text), 100)], ";base64,"):
		r.Binary = "base64"
	default:
		r.More = append(r.More, t.literal(b.Line, n))
	}
}

// Notes lists which parts of the blocks that are sent are counted by an estimate, or not at all.
func (t *Transcript) Notes() (all []string) {
	images, encrypted := 0, 0
	unknown, binary := map[string]bool{}, map[string]bool{}
	for i := range t.Blocks {
		b := &t.Blocks[i]
		if !b.Sent {
			continue
		}
		images, encrypted = images+b.Images, encrypted+b.Encrypted
		if b.Unknown != "" {
			unknown[b.Unknown] = true
		}
		if b.Binary != "" {
			binary[b.Binary] = true
		}
	}
	if len(unknown) > 0 {
		all = append(all, "blocks of unknown types are counted by their text: "+names(unknown))
	}
	if images > 0 {
		all = append(all, fmt.Sprintf("images are counted as %d tokens each: %d", tokens.Image, images))
	}
	if encrypted > 0 {
		all = append(all, fmt.Sprintf("encrypted text is not counted: %d bytes", encrypted))
	}
	if len(binary) > 0 {
		all = append(all, "files and binary data are not counted: "+names(binary))
	}
	if t.Again > 0 {
		all = append(all, fmt.Sprintf("lines that repeat the uuid of an earlier line are counted once: %d", t.Again))
	}
	return all
}

func names(set map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(set)), ", ") }

// joined returns texts, joined by line ends.
func joined(all []Literal) string {
	texts := make([]string, len(all))
	for i, l := range all {
		texts[i] = l.Text()
	}
	return strings.Join(texts, "\n")
}
