package upstream

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/tools"
)

// block is one content block of a result.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MIMEType string `json:"mimeType"`
	Resource struct {
		URI      string  `json:"uri"`
		MIMEType string  `json:"mimeType"`
		Text     *string `json:"text"`
		Blob     string  `json:"blob"`
	} `json:"resource"`
}

// maxPart is the largest image or sound that is passed on, in bytes. A larger one is stored.
const maxPart = 1 << 20

// result is a result that is written as output of a tool.
type result struct {
	tools.Verbatim
	out tools.Output
}

// Text over these sizes may become a receipt, without the structured content beside it.
const (
	smallLines = 50
	smallText  = 2000
)

// writeResult writes the result of a call. Structured content that the text repeats is the output itself; other content
// is stored beside a large text, and is the output where the text is small and the content is large.
func writeResult(raw json.RawMessage, out tools.Output) error {
	var all struct {
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structuredContent"`
		IsError    bool              `json:"isError"`
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return fmt.Errorf("the result of the server cannot be read: %w", err)
	}
	r := result{tools.Verbatim{Result: raw, Failed: all.IsError}, out}
	var texts []string
	for _, one := range all.Content {
		text, err := r.text(one)
		if err != nil {
			return err
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	r.Text = strings.Join(texts, "\n")
	large := len(r.Text) > smallText || strings.Count(r.Text, "\n") >= smallLines
	switch structured := string(all.Structured); {
	case structured == "" || structured == "null" || repeats(structured, r.Text):
	case r.Text == "" || sameJSON(r.Text, structured):
		r.Text = structured
	case large:
		if err := r.store([]byte(structured), "the structured content"); err != nil {
			return err
		}
	case len(structured) > smallText:
		out.Note("the server says: " + r.Text)
		r.Text = structured
	}
	if _, err := out.Write([]byte(r.Text)); err != nil {
		return err
	}
	out.Attach(r.Verbatim)
	return nil
}

// text returns the text of a content block. It writes images and sounds, and stores what is large or no text.
func (r *result) text(raw json.RawMessage) (string, error) {
	var b block
	if err := json.Unmarshal(raw, &b); err != nil {
		return "", fmt.Errorf("a part of the result cannot be read: %w", err)
	}
	switch {
	case b.Type == "text":
		return b.Text, nil
	case b.Type == "image", b.Type == "audio":
		data, err := base64.StdEncoding.DecodeString(b.Data)
		if err != nil {
			return "", fmt.Errorf("an image of the result cannot be read: %w", err)
		}
		if len(data) > maxPart {
			return "", r.store(data, b.MIMEType)
		}
		r.Parts++
		_, err = r.out.Part(b.MIMEType, b.Type).Write(data)
		return "", err
	case b.Type == "resource" && b.Resource.Text != nil:
		return "==> " + b.Resource.URI + " <==\n" + *b.Resource.Text, nil
	case b.Type == "resource":
		data, err := base64.StdEncoding.DecodeString(b.Resource.Blob)
		if err != nil {
			return "", fmt.Errorf("a resource of the result cannot be read: %w", err)
		}
		return "", r.store(data, b.Resource.URI)
	}
	return string(raw), nil // a link to a resource, or what is not known yet
}

// store stores bytes that are no text, and names them in a note.
func (r *result) store(data []byte, name string) error {
	r.Parts++ // the answer does not show it
	id, err := r.out.Store(tools.Stored{Text: data, Name: name})
	if err != nil {
		return fmt.Errorf("%s of the result (%d bytes) cannot be stored: %w", name, len(data), err)
	}
	r.out.Note(fmt.Sprintf("%s (%d bytes) is stored as obs:%s", name, len(data), strings.TrimPrefix(id, "obs:")))
	return nil
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

// sameJSON reports whether two texts are the same JSON value.
func sameJSON(a, b string) bool {
	var values [2]any
	for i, text := range []string{a, b} {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if d.Decode(&values[i]) != nil || d.More() {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}
