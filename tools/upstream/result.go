package upstream

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

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

const (
	maxShown = 1_000_000 // size over which no answer shows a text whole, in bytes
	maxApart = 20        // resources of a result that are stored apart
	maxAside = 400       // size up to which a note shows what accompanies the output, in bytes
)

// lenient takes what some servers write: half characters, which are read as U+FFFD, and names that stand twice, of
// which the last one counts.
var lenient = jsonv2.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

// result is a result that is written as output of a tool.
type result struct {
	tools.Result
	in     tools.Input
	out    tools.Output
	output string // all text that is written
	parts  int    // images and sounds that are written
	size   int    // bytes of these
	known  int    // bytes of the result that are accounted for
	apart  bool   // a part of it is stored apart
}

// writeResult writes the result of a call. Structured content that says the same as the text replaces the text. If they
// differ and both are small, both are shown. If one is large, it is the output, and a note shows the other or says
// where it is stored. If the output is large and has all of the result, writeResult calls compare with it.
func writeResult(raw json.RawMessage, in tools.Input, out tools.Output, compare func(text string)) error {
	var all struct {
		Content    []json.RawMessage          `json:"content"`
		Structured json.RawMessage            `json:"structuredContent"`
		IsError    bool                       `json:"isError"`
		Meta       map[string]json.RawMessage `json:"_meta"`
	}
	const serverInfo = "io.modelcontextprotocol/serverInfo" // in each result of the stateless era
	r := result{Result: tools.Result{Raw: raw}, in: in, out: out}
	if jsonv2.Unmarshal(raw, &all) != nil { // readers differ in what they make of it
		switch value := jsontext.Value(raw); {
		case jsonv2.Unmarshal(raw, &all, lenient) != nil:
			r.output, r.Pass = string(raw), tools.PassNever
			return r.write()
		case value.IsValid(jsontext.AllowInvalidUTF8(true)):
			r.Pass = max(r.Pass, tools.PassNotStored) // the output has not all text of the result
			out.Note("half characters in the result of the server are shown as U+FFFD")
		default:
			r.Pass = tools.PassNever
			r.keep(raw, "the whole result, in which a name stands twice,")
		}
	}
	r.Failed = all.IsError
	texts := r.texts(all.Content)
	r.output = strings.Join(texts, "\n")
	structured := string(all.Structured)
	r.known += len(structured) + len(all.Meta[serverInfo])
	if structured == "null" {
		structured = ""
	}
	// A small result is passed on as it is, if nothing in it must be masked or made visible.
	if len(r.output) > maxShown || !in.AsShown(r.output) || !in.AsShown(string(raw)) {
		r.Pass = tools.PassNever
	}
	r.Text = r.output + "\n" + structured
	switch {
	case structured == "" && isLarge(r.output):
		r.splitOff(texts)
	case structured == "" || repeats(structured, r.output):
	case r.output == "" || sameJSON(r.output, structured):
		r.output = structured
	case isLarge(r.output):
		r.aside(structured, "the structured content")
	case len(structured) > smallText:
		r.aside(r.output, "the text of the server")
		r.output = structured
	default:
		r.Second = structured
	}
	delete(all.Meta, serverInfo)
	if meta, _ := json.Marshal(all.Meta); len(meta) <= smallText && in.AsShown(string(meta)) {
		r.Meta = all.Meta
	}
	if len(raw)-r.known > smallText {
		r.keep(raw, "the whole result, with members that are not known,")
	}
	if r.Pass == tools.PassNever && r.Second != "" {
		r.output, r.Second = r.output+"\n"+r.Second, ""
	}
	if isLarge(r.output) && r.parts == 0 && !r.apart && !r.Failed {
		compare(r.output)
	}
	return r.write()
}

// texts returns the texts of the content. If one resource is large, its text is the only one, and a note has the other
// texts. If several are, each is stored apart.
func (r *result) texts(content []json.RawMessage) (texts []string) {
	blocks, large := make([]block, len(content)), []int{}
	for i, one := range content {
		b := &blocks[i]
		if jsonv2.Unmarshal(one, b, lenient) != nil {
			*b = block{} // its JSON is its text
		}
		if b.Type == "resource" && b.Resource.Text != nil &&
			isLarge(*b.Resource.Text) && len(large) < maxApart {
			large = append(large, i)
		}
	}
	for i, one := range content {
		text := ""
		switch resource := blocks[i].Resource; {
		case !slices.Contains(large, i):
			text = r.text(one, blocks[i])
		case len(large) > 1:
			text = r.store([]byte(*resource.Text), resource.URI)
		}
		if r.known += len(one); text != "" {
			texts = append(texts, text)
		}
	}
	if len(large) != 1 {
		return texts
	}
	resource := blocks[large[0]].Resource
	r.Pass = max(r.Pass, tools.PassNotStored)
	r.out.Note("the output is the resource " + resource.URI)
	if len(texts) > 0 {
		r.aside(strings.Join(texts, "\n"), "the text beside it")
	}
	return []string{*resource.Text}
}

// splitOff makes the only text that is JSON the output, if the words around it are few: one JSON value can be asked by
// jq.
func (r *result) splitOff(texts []string) {
	isJSON := func(text string) bool {
		return isLarge(text) && strings.ContainsAny(text[:1], "{[") && json.Valid([]byte(text))
	}
	at := slices.IndexFunc(texts, isJSON)
	if len(texts) == 1 || at < 0 {
		return
	}
	words := strings.Join(slices.Delete(slices.Clone(texts), at, at+1), "\n")
	if len(words) > maxAside {
		return
	}
	r.aside(words, "the text beside it")
	r.output = texts[at]
	r.Pass = max(r.Pass, tools.PassNotStored)
}

// aside shows a short text in a note, and stores a longer one.
func (r *result) aside(text, name string) {
	r.apart = true
	if len(text) > maxAside {
		r.keep([]byte(text), name)
		return
	}
	r.out.Note(name + ": " + text)
}

func (r *result) write() error {
	_, err := io.WriteString(r.out, r.output)
	r.out.Pass(r.Result)
	return err
}

// isLarge reports whether a text may become a receipt.
func isLarge(text string) bool {
	return len(text) > smallText || strings.Count(text, "\n") >= smallLines
}

// text returns the text of a content block. It writes images and sounds, and stores what is large or no text.
func (r *result) text(raw json.RawMessage, b block) string {
	switch {
	case b.Type == "text":
		return b.Text
	case b.Type == "image", b.Type == "audio":
		data, err := base64.StdEncoding.DecodeString(b.Data)
		if err != nil {
			return string(raw)
		}
		if r.size += len(data); len(data) > maxPart || r.size > maxParts || b.MIMEType == "" {
			return r.store(data, b.Type+" "+b.MIMEType)
		}
		r.parts++
		_, _ = r.out.Part(b.MIMEType, b.Type).Write(data) // a note says what is not shown
		return ""
	case b.Type == "resource" && b.Resource.Text != nil:
		return "==> " + b.Resource.URI + " <==\n" + *b.Resource.Text
	case b.Type == "resource" && b.Resource.Blob != "":
		data, err := base64.StdEncoding.DecodeString(b.Resource.Blob)
		if err != nil || len(b.Resource.Blob) <= smallText {
			return string(raw)
		}
		return r.store(data, b.Resource.URI)
	}
	return string(raw) // a link to a resource, or what is not known yet
}

// store stores bytes and returns a line that says where. If it cannot store them, it sets NotStored: the server then
// passes the result on as it is, if it may.
func (r *result) store(data []byte, name string) string {
	if utf8.Valid(data) && r.in.Mask(string(data)) != string(data) {
		r.Pass = tools.PassNever
	}
	id, err := r.out.Store(tools.Stored{Text: data, Name: name})
	if err != nil {
		r.NotStored = true
		return fmt.Sprintf("%s (%d bytes) cannot be stored: %s", name, len(data), err)
	}
	r.Pass, r.apart = tools.PassNever, true
	return fmt.Sprintf("%s (%d bytes) is stored as obs:%s", name, len(data), strings.TrimPrefix(id, "obs:"))
}

// keep stores bytes and names them in a note.
func (r *result) keep(data []byte, name string) { r.out.Note(r.store(data, name)) }

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
