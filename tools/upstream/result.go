package upstream

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// block is one content block of a result.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MIMEType string `json:"mimeType"`
	Resource struct {
		URI  string  `json:"uri"`
		Text *string `json:"text"`
		Blob string  `json:"blob"`
	} `json:"resource"`
}

// Limits of images and sounds that are passed on, in bytes. What is more is stored.
const (
	maxPart  = 1 << 20
	maxParts = 8 << 20
)

// Sizes over which a text may become a receipt.
const (
	smallLines = 50
	smallText  = 2000
)

// maxShown is the size over which no answer shows a text whole, in bytes.
const maxShown = 1_000_000

// result is a result that is written as output of a tool.
type result struct {
	tools.Verbatim
	in    tools.Input
	out   tools.Output
	size  int  // of the images and sounds
	known int  // bytes of the result that are accounted for
	apart bool // a part of it is stored apart
}

// writeResult writes the result of a call. Structured content that says the same as the text replaces it. If they
// differ and both are small, both are shown; if one is large, it is shown and the other is stored. writeResult calls
// compare with a large text that has all of the result.
func writeResult(raw json.RawMessage, in tools.Input, out tools.Output, compare func(text string)) error {
	var all struct {
		Content    []json.RawMessage          `json:"content"`
		Structured json.RawMessage            `json:"structuredContent"`
		IsError    bool                       `json:"isError"`
		Meta       map[string]json.RawMessage `json:"_meta"`
	}
	const serverInfo = "io.modelcontextprotocol/serverInfo" // in each result of the stateless era
	r := result{Verbatim: tools.Verbatim{Result: raw}, in: in, out: out}
	if err := jsonv2.Unmarshal(raw, &all); err != nil { // also names that stand twice: readers differ in which counts
		r.Text, r.Altered = string(raw), true
		return r.write()
	}
	r.Failed = all.IsError
	var texts []string
	for _, one := range all.Content {
		r.known += len(one)
		text, err := r.text(one)
		if err != nil {
			return err
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	r.Text = strings.Join(texts, "\n")
	structured := string(all.Structured)
	r.known += len(structured) + len(all.Meta[serverInfo])
	if structured == "null" {
		structured = ""
	}
	// A small result is passed on as it is, if nothing in it must be masked or made visible.
	r.Altered = r.Altered || len(r.Text) > maxShown || !in.AsShown(r.Text) || !in.AsShown(string(raw)) ||
		len(raw)-r.known > smallText
	switch {
	case structured == "" || repeats(structured, r.Text):
	case r.Text == "" || sameJSON(r.Text, structured):
		r.Text = structured
	case isLarge(r.Text):
		if err := r.keep([]byte(structured), "the structured content"); err != nil {
			return err
		}
	case len(structured) > smallText:
		if err := r.keep([]byte(r.Text), "the text of the server"); err != nil {
			return err
		}
		r.Text = structured
	default:
		r.Beside = structured
	}
	if delete(all.Meta, serverInfo); len(all.Meta) > 0 && (r.Altered || isLarge(r.Text)) && len(raw)-r.known <= smallText {
		meta, _ := json.Marshal(all.Meta) // it came as JSON
		r.out.Note("_meta of the result: " + content.ClipBytes(string(meta), 400))
	}
	if len(raw)-r.known > smallText {
		if err := r.keep(raw, "the whole result, with members that are not known,"); err != nil {
			return err
		}
	}
	if r.Altered && r.Beside != "" {
		r.Text, r.Beside = r.Text+"\n"+r.Beside, ""
	}
	if isLarge(r.Text) && r.Parts == 0 && !r.apart {
		compare(r.Text)
	}
	return r.write()
}

func (r *result) write() error {
	_, err := io.WriteString(r.out, r.Text)
	r.out.Attach(r.Verbatim)
	return err
}

// isLarge reports whether a text may become a receipt.
func isLarge(text string) bool {
	return len(text) > smallText || strings.Count(text, "\n") >= smallLines
}

// text returns the text of a content block. It writes images and sounds, and stores what is large or no text.
func (r *result) text(raw json.RawMessage) (string, error) {
	var b block
	if jsonv2.Unmarshal(raw, &b) != nil {
		return string(raw), nil
	}
	switch {
	case b.Type == "text":
		return b.Text, nil
	case b.Type == "image", b.Type == "audio":
		data, err := base64.StdEncoding.DecodeString(b.Data)
		if err != nil {
			return string(raw), nil
		}
		if r.size += len(data); len(data) > maxPart || r.size > maxParts || b.MIMEType == "" {
			return r.store(data, b.Type+" "+b.MIMEType)
		}
		r.Parts++
		_, err = r.out.Part(b.MIMEType, b.Type).Write(data)
		return "", err
	case b.Type == "resource" && b.Resource.Text != nil:
		return "==> " + b.Resource.URI + " <==\n" + *b.Resource.Text, nil
	case b.Type == "resource" && b.Resource.Blob != "":
		data, err := base64.StdEncoding.DecodeString(b.Resource.Blob)
		if err != nil || len(b.Resource.Blob) <= smallText {
			return string(raw), nil
		}
		return r.store(data, b.Resource.URI)
	}
	return string(raw), nil // a link to a resource, or what is not known yet
}

// store stores bytes and returns a line that names them.
func (r *result) store(data []byte, name string) (string, error) {
	r.Altered, r.apart = true, true
	id, err := r.out.Store(tools.Stored{Text: data, Name: name})
	if err != nil {
		return "", fmt.Errorf("%s of the result (%d bytes) cannot be stored: %w", name, len(data), err)
	}
	return fmt.Sprintf("%s (%d bytes) is stored as obs:%s", name, len(data), strings.TrimPrefix(id, "obs:")), nil
}

// keep stores bytes and names them in a note.
func (r *result) keep(data []byte, name string) error {
	line, err := r.store(data, name)
	if err == nil {
		r.out.Note(line)
	}
	return err
}

// repeats reports whether structured content is an object with a text as its only member, as a server makes it that has
// nothing else to structure.
func repeats(structured, text string) bool {
	var object map[string]any
	if json.Unmarshal([]byte(structured), &object) != nil || len(object) != 1 {
		return false
	}
	for _, v := range object {
		if s, ok := v.(string); ok && s == text {
			return true
		}
	}
	return false
}

// sameJSON reports whether two texts are the same JSON value, and nothing else.
func sameJSON(a, b string) bool {
	var values [2]any
	for i, text := range []string{a, b} {
		var strict any
		if jsonv2.Unmarshal([]byte(text), &strict) != nil { // no name stands twice, and nothing follows
			return false
		}
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&values[i]); err != nil && !errors.Is(err, io.EOF) {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}
