package chat

import (
	"strings"
	"testing"
)

func FuzzReadStream(f *testing.F) {
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n")
	f.Add(": ping\n\nevent: x\ndata:{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":3}]},\"finish_reason\":\"stop\"}]}")
	f.Fuzz(func(t *testing.T, stream string) {
		r, err := readStream(strings.NewReader(stream), nil)
		if err == nil && !strings.Contains(stream, "[DONE]") && r.FinishReason == "" {
			t.Errorf("%q has no end: %+v", stream, r)
		}
		if len(r.Text) > len(stream) {
			t.Errorf("%q gives more text: %q", stream, r.Text)
		}
	})
}
