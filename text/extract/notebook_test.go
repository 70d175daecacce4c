package extract

import (
	"errors"
	"testing"
)

func TestNotebook(t *testing.T) {
	x, err := read(t, "ipynb", []byte(`{"cells": [
		{"cell_type": "markdown", "source": ["# Geb\u00fchr\n", "Die Geb\u00fchr ist 93 Franken\n"]},
		{"cell_type": "code", "source": "for x in y:\n\n    print(x)", "outputs": [
			{"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]},
			{"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo="}},
			{"output_type": "execute_result", "data": {"text/html": "<b>7</b>", "text/plain": ["7"]}}]},
		{"cell_type": "code", "source": [], "outputs": [
			{"ename": "KeyError", "evalue": "'q'", "traceback": ["\u001b[0;31mKeyError\u001b[0m at 1", "line 2"]}]}
	], "nbformat": 4}`))
	want := "cell 1: # Gebühr\ncell 1: Die Gebühr ist 93 Franken\n" +
		"cell 2: for x in y:\ncell 2:     print(x)\n" +
		"cell 2, output: one\ncell 2, output: two\ncell 2, output: 7\n" +
		"cell 3, output: KeyError at 1\ncell 3, output: line 2\ncell 3, output: KeyError: 'q'\n" +
		"[1 output without text, such as pictures]\n"
	if got := show(x); err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	for _, bad := range []string{`{"worksheets": [{"cells": []}]}`, `{"cells": 1}`, `[]`, `{"cells": [`} {
		if _, err := read(t, "ipynb", []byte(bad)); !errors.Is(err, ErrBroken) {
			t.Errorf("%s: got %v, want %v", bad, err, ErrBroken)
		}
	}
}
