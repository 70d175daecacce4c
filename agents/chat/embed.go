package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// beginning is the part in bytes that is embedded of a text that the endpoint refuses: any model takes that much.
const beginning = 500

// Embedder makes vectors of texts with one model of an endpoint. It is safe for concurrent use.
type Embedder struct {
	client *Client
	model  string
}

// NewEmbedder returns an Embedder for a model, as the endpoint knows it. It sends nothing.
func NewEmbedder(client *Client, model string) *Embedder { return &Embedder{client, model} }

// Model returns the model's name.
func (e *Embedder) Model() string { return e.model }

// Embed returns a vector of each text, in their order and of one length. Secrets in the texts are masked. If the
// endpoint refuses them, as it does where one is too long for the model, their beginnings are sent.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	all, err := e.request(ctx, texts)
	if isRefused(err) {
		short := make([]string, len(texts))
		for i, text := range texts {
			short[i] = content.ClipBytes(text, beginning)
		}
		all, err = e.request(ctx, short)
	}
	return all, err
}

// isRefused reports whether an endpoint refused what was sent: some servers answer 500 to a text that is too long.
func isRefused(err error) bool {
	s, ok := errors.AsType[*StatusError](err)
	return ok && slices.Contains([]int{
		http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
		http.StatusInternalServerError,
	}, s.Status)
}

func (e *Embedder) request(ctx context.Context, texts []string) (all [][]float32, err error) {
	masked := make([]string, len(texts))
	for i, text := range texts {
		text, _ = e.client.mask.String(text)
		masked[i] = BreakControls(text)
	}
	body, err := json.Marshal(map[string]any{"model": e.model, "input": masked})
	if err != nil {
		return nil, err
	}
	err = e.client.send(ctx, "/embeddings", body, func(resp *http.Response, in io.Reader) error {
		kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
		if kind != "application/json" && kind != "" {
			return notJSON(kind)
		}
		b, err := io.ReadAll(in)
		if err == nil {
			all, err = parseVectors(b, len(texts))
		}
		return err
	})
	if s, ok := errors.AsType[*StatusError](err); ok {
		s.setting = "--endpoint-embeddings"
	}
	return all, err
}

// parseVectors reads a reply with n vectors.
func parseVectors(b []byte, n int) ([][]float32, error) {
	var w struct {
		Data []struct {
			Index     *int            `json:"index"`
			Embedding json.RawMessage `json:"embedding"`
		} `json:"data"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, fmt.Errorf("its reply is no JSON: %w", err)
	}
	if len(w.Error) > 0 && string(w.Error) != "null" {
		return nil, reportedError(b, w.Error)
	}
	if len(w.Data) != n {
		return nil, fmt.Errorf("it returns %d vectors for %s", len(w.Data), content.Plural(int64(n), "text", "texts"))
	}
	all := make([][]float32, n)
	for i, d := range w.Data {
		if d.Index != nil {
			i = *d.Index
		}
		if i < 0 || i >= n || all[i] != nil {
			return nil, fmt.Errorf("it returns a vector with the index %d, twice or for no text", i)
		}
		// Numbers must be finite. NaN is no JSON; servers write null for it, which Unmarshal would skip.
		err := json.Unmarshal(d.Embedding, &all[i])
		if err != nil || len(all[i]) == 0 || bytes.Contains(d.Embedding, []byte("null")) {
			return nil, fmt.Errorf("it returns a vector that is not an array of finite numbers, but %q",
				content.ClipEnd(string(d.Embedding), 200))
		}
	}
	for _, v := range all {
		if len(v) != len(all[0]) {
			return nil, fmt.Errorf("it returns vectors of %d and of %d numbers", len(all[0]), len(v))
		}
	}
	return all, nil
}
