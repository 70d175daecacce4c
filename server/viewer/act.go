package viewer

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/observations"
)

const maxName = 200 // bytes of the name of an observation

// actionsOf are what a person can do with an observation.
func (q *request) actionsOf(o *observations.Observation) any {
	id := string(o.ID)
	all := actions{Links: links{
		{Text: "download", To: q.url("obs/" + id + "/raw"), Download: true},
		{Text: "export", To: q.url("obs/"+id, "export", "1"), Download: true},
	}}
	if before := q.previous(o); before != "" {
		at := q.url("compare", "a", string(before), "b", id)
		all.Links = append(all.Links, link{Text: "compare with the previous one of this call", To: at})
	}
	if other := *q; q.who.Operator && !q.app {
		other.plain = !q.plain
		text := map[bool]string{true: "show masked", false: "show unmasked"}[q.plain]
		all.Links = append(all.Links, link{Text: text, To: other.with()})
	}
	if q.o.Store.Unwritable() != nil { // nothing of it can change
		return all
	}
	pin := q.button("pin", id)
	if o.Pinned {
		pin = q.button("unpin", id)
	}
	all.Links = append(all.Links, link{Text: "delete", To: q.url("obs/"+id, "ask", "delete")})
	all.Acts = []any{pin, q.button("rename", id, field{Name: "name", Label: "Name", Value: o.Name, Size: 20}),
		&form{To: q.url("compare"), Submit: "compare", Fields: []field{
			hidden("b", id), {Name: "a", Label: "With", Hint: "obs:ID", Size: 16},
		}}}
	return all
}

// button is a form that does something with an observation.
func (q *request) button(name, id string, fields ...field) *action {
	return &action{To: q.url("act"), Submit: name, Danger: name == "delete",
		Fields: append(fields, hidden("act", name), hidden("id", id), hidden("token", q.token))}
}

// previous returns the ID of the last observation of the same call before one; "" if there is none.
func (q *request) previous(o *observations.Observation) observations.ID {
	if len(o.Args) <= len("{}") { // what was piped into keep has no arguments, and nothing in common
		return ""
	}
	all, _ := q.o.Store.List(o.Owner, false) // without it there is no link
	for _, one := range all {                // the newest first
		if one.CallHash == o.CallHash && one.Created.Before(o.Created) {
			return one.ID
		}
	}
	return ""
}

// actions are links and forms in a row.
type actions struct {
	Links links
	Acts  []any
}

// act does what a form asks for, and returns the address of what shows it.
func (q *request) act() (href, error) {
	what := q.query.Get("act")
	if cause := q.o.Store.Unwritable(); cause != nil {
		return "", problemf(http.StatusConflict, "The store cannot be written to: %s.", cause)
	}
	if what == "save" {
		return q.save()
	}
	id, err := q.idOf(q.query.Get("id"))
	if err != nil {
		return "", err
	}
	switch what {
	case "pin", "unpin":
		return q.url("obs/" + string(id)), q.o.Store.Pin(q.who.Owner, id, what == "pin")
	case "rename":
		if name := q.query.Get("name"); len(name) > maxName {
			return "", problemf(http.StatusBadRequest, "The name has %d bytes, at most %d.", len(name), maxName)
		}
		return q.url("obs/" + string(id)), q.o.Store.Rename(q.who.Owner, id, q.query.Get("name"))
	case "delete":
		return q.url("obs"), q.o.Store.Remove(q.who.Owner, id)
	}
	return "", problemf(http.StatusBadRequest, "The form asks for nothing that is known.")
}

// save stores what an answer shows, whole.
func (q *request) save() (href, error) {
	var args map[string]any
	tool := q.query.Get("tool")
	if json.Unmarshal([]byte(q.query.Get("args")), &args) != nil || args == nil || tool != "grep" && tool != "jq" {
		return "", problemf(http.StatusBadRequest, "The form names no call.")
	}
	delete(args, "offset")
	args["save"] = true
	raw, _ := json.Marshal(args) // it was decoded from JSON
	a, err := q.call(tool, raw)
	if err != nil {
		return "", err
	}
	if len(a.Receipts) == 0 || a.Receipts[0].ObservationID == "" {
		text := "nothing was stored"
		if len(a.Blocks) > 0 {
			text, _, _ = strings.Cut(a.Blocks[0].Text, "\n")
		}
		return "", problemf(http.StatusConflict, "%s", text)
	}
	return q.url("obs/" + strings.TrimPrefix(a.Receipts[0].ObservationID, observations.Prefix)), nil
}

// failed returns the page of an error.
func (q *request) failed(err error) (*page, int) {
	var known *problem
	status := http.StatusInternalServerError
	switch {
	case errors.As(err, &known):
		status = known.status
	case errors.Is(err, observations.ErrNotFound), errors.Is(err, observations.ErrExpired):
		status = http.StatusNotFound
	}
	blocks := []any{note{err.Error(), "bad"}, links{{Text: "Overview", To: q.url("")}}}
	return &page{Title: http.StatusText(status), Blocks: blocks}, status
}

// raw sends the stored bytes of an observation, as they are: a download, or an image that a page shows.
func (q *request) raw(w http.ResponseWriter, r *http.Request) error {
	id, err := q.idOf(q.path[1])
	if err != nil {
		return err
	}
	o, err := q.open(q.ctx, observations.Prefix+string(id))
	if err != nil {
		return err
	}
	defer o.Close()
	head := w.Header()
	head.Set("Content-Security-Policy", look().boxed)
	kind, disposition := "application/octet-stream", "attachment"
	if t := o.imageType(); t != "" && q.query.Get("show") == "1" {
		kind, disposition = t, "inline"
	}
	head.Set("Content-Type", kind)
	head.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": o.o.File}))
	http.ServeContent(w, r, "", o.o.Created, io.NewSectionReader(o.Source, 0, o.Size))
	return nil
}
